//! What the ending of a run alone says.

use rlef_sandbox::{Ending, Limits, Outcome};

use crate::report::{Detail, Verdict};

/// "CPU time limit exceeded", signal(7). 24 on x86-64 and ARM.
const SIGXCPU: i32 = 24;

/// The verdict that the ending alone gives; `None`: it ended well, so the output decides.
pub(crate) fn ending_verdict(outcome: &Outcome, limits: &Limits) -> Option<(Verdict, Detail)> {
    let failure = match outcome.ending {
        _ if outcome.stdout.len() as u64 > limits.output_bytes => {
            (Verdict::OutputLimit, Detail::None)
        }
        Ending::OutputLimit => (Verdict::OutputLimit, Detail::None),
        Ending::CpuLimit | Ending::WallLimit => (Verdict::TimeLimit, Detail::None),
        // The kernel's own CPU limit, whose clock runs a little ahead of the sandbox's.
        Ending::Signalled(SIGXCPU) => (Verdict::TimeLimit, Detail::Signal(SIGXCPU)),
        // It finished, but after its time was up.
        Ending::Exited(_) | Ending::Signalled(_) if outcome.cpu >= limits.cpu => {
            (Verdict::TimeLimit, Detail::None)
        }
        Ending::MemoryLimit => (Verdict::MemoryLimit, Detail::None),
        Ending::Forbidden(call) => (Verdict::Forbidden, Detail::SystemCall(call)),
        Ending::Signalled(signal) => (Verdict::RuntimeError, Detail::Signal(signal)),
        Ending::Exited(0) => return None,
        Ending::Exited(status) if last_line(&outcome.stderr).starts_with("MemoryError") => {
            (Verdict::MemoryLimit, Detail::ExitStatus(status))
        }
        Ending::Exited(status) => (Verdict::RuntimeError, Detail::ExitStatus(status)),
    };
    Some(failure)
}

/// Whether a run under `generous` limits ended by itself, after the time that `limits` give was up: how much time it took
/// may then have been the doing of the machine.
pub(crate) fn was_near(outcome: &Outcome, limits: &Limits, generous: &Limits) -> bool {
    let by_itself = matches!(outcome.ending, Ending::Exited(_) | Ending::Signalled(_));
    by_itself && outcome.cpu >= limits.cpu && outcome.cpu < generous.cpu
}

/// Whether it is worth asking the compiler. Said of the program's own stderr, so it decides nothing else: a program
/// that fakes such an error is found to parse and keeps its runtime error.
pub(crate) fn may_be_compile_error(outcome: &Outcome) -> bool {
    if !matches!(outcome.ending, Ending::Exited(status) if status != 0) {
        return false;
    }
    let text = String::from_utf8_lossy(&outcome.stderr);
    [
        "SyntaxError",
        "IndentationError",
        "TabError",
        "null bytes",
        "during compilation",
    ]
    .iter()
    .any(|sign| text.contains(sign))
}

fn last_line(stderr: &[u8]) -> String {
    let end = &stderr[stderr.len().saturating_sub(1024)..];
    let text = String::from_utf8_lossy(end);
    text.trim_end()
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .to_owned()
}
