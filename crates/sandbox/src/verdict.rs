//! How a run ended, from what the supervisor did and saw: one pure function, so that every case can be tested.

use std::time::Duration;

use crate::{Ending, Fault, Limits};

/// Why a run is to end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Output,
    Cpu,
    Memory,
    Wall { cpu: Duration, waited: Duration },
}

/// The first that applies: what we ended it for, what it used, how it ended itself.
pub(crate) fn judge(
    stop: Option<Stop>,
    status: i32,
    cpu: Duration,
    wall: Duration,
    stderr: &[u8],
    limits: &Limits,
    signs: &[String],
) -> Result<Ending, Fault> {
    if stop == Some(Stop::Cpu) || cpu >= limits.cpu {
        return Ok(Ending::CpuLimit);
    }
    match stop {
        Some(Stop::Memory) => return Ok(Ending::MemoryLimit),
        // It was ready to run for a good part of the time but got no CPU: with one it might have ended in time.
        Some(Stop::Wall { cpu, waited }) if waited > limits.wall / 4 => {
            return Err(Fault::Overloaded { wall, cpu, waited });
        }
        Some(Stop::Wall { .. }) => return Ok(Ending::WallLimit),
        _ => {}
    }
    if libc::WIFSIGNALED(status) {
        return Ok(match libc::WTERMSIG(status) {
            libc::SIGSYS => Ending::Forbidden(None),
            // The kernel's own limit, far above ours, or a program that says so itself.
            libc::SIGXCPU => Ending::CpuLimit,
            _ if told(stderr, signs) => Ending::MemoryLimit,
            signal => Ending::Signalled(signal),
        });
    }
    match libc::WEXITSTATUS(status) {
        code if code != 0 && (out_of_memory(stderr) || told(stderr, signs)) => {
            Ok(Ending::MemoryLimit)
        }
        code => Ok(Ending::Exited(code)),
    }
}

/// Whether the last line of a traceback is that of a MemoryError. A program can print the same; as it must also
/// have failed, it gains nothing.
fn out_of_memory(stderr: &[u8]) -> bool {
    let end = stderr.trim_ascii_end();
    let line = end.rsplit(|b| *b == b'\n').next().unwrap_or_default();
    let name = line.split(|b| *b == b':').next().unwrap_or_default();
    name == b"MemoryError" || name.ends_with(b"._ArrayMemoryError")
}

/// Whether the last of stderr has one of the signs by which a language tells that memory has run out. As above, who
/// only prints it must fail as well.
fn told(stderr: &[u8], signs: &[String]) -> bool {
    let end = &stderr[stderr.len().saturating_sub(LAST_WORDS)..];
    let has = |sign: &String| end.windows(sign.len().max(1)).any(|w| w == sign.as_bytes());
    signs.iter().any(has)
}

/// How much of the end of stderr is searched, in bytes: a runtime's last words and a stack trace.
const LAST_WORDS: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn exited(code: i32) -> i32 {
        code << 8
    }

    #[test]
    fn the_first_reason_counts() {
        let limits = Limits::with_cpu(Duration::from_secs(1));
        let ms = Duration::from_millis;
        let judged = |stop, status, cpu, stderr: &str| {
            let signs = ["std::bad_alloc".to_owned()];
            let stderr = stderr.as_bytes();
            judge(stop, status, cpu, ms(1500), stderr, &limits, &signs).ok()
        };
        let thrown = "terminate called after throwing an instance of 'std::bad_alloc'\n";
        let aborted = |stderr| judged(None, libc::SIGABRT, ms(10), stderr);
        assert_eq!(aborted(thrown), Some(Ending::MemoryLimit));
        assert_eq!(aborted(""), Some(Ending::Signalled(libc::SIGABRT)));
        assert_eq!(
            judged(None, exited(0), ms(10), thrown),
            Some(Ending::Exited(0))
        );
        assert_eq!(judged(None, exited(0), ms(10), ""), Some(Ending::Exited(0)));
        assert_eq!(
            judged(None, exited(0), ms(1001), ""),
            Some(Ending::CpuLimit)
        );
        assert_eq!(
            judged(Some(Stop::Cpu), libc::SIGKILL, ms(990), ""),
            Some(Ending::CpuLimit)
        );
        assert_eq!(
            judged(None, libc::SIGXCPU, ms(990), ""),
            Some(Ending::CpuLimit)
        );
        assert_eq!(
            judged(None, libc::SIGXCPU, ms(90), ""),
            Some(Ending::CpuLimit)
        );
        assert_eq!(
            judged(None, libc::SIGSYS, ms(10), ""),
            Some(Ending::Forbidden(None))
        );
        assert_eq!(
            judged(None, exited(1), ms(10), "Traceback\nMemoryError\n"),
            Some(Ending::MemoryLimit)
        );
        assert_eq!(
            judged(None, exited(0), ms(10), "MemoryError\n"),
            Some(Ending::Exited(0))
        );
        assert_eq!(
            judged(None, exited(1), ms(10), "MemoryError\nmore"),
            Some(Ending::Exited(1))
        );
        let idle = Stop::Wall {
            cpu: ms(5),
            waited: ms(20),
        };
        assert_eq!(
            judged(Some(idle), libc::SIGKILL, ms(5), ""),
            Some(Ending::WallLimit)
        );
        let starved = Stop::Wall {
            cpu: ms(300),
            waited: ms(2000),
        };
        assert_eq!(judged(Some(starved), libc::SIGKILL, ms(300), ""), None);
    }

    #[test]
    fn memory_errors_are_known_by_their_last_line() {
        assert!(out_of_memory(b"MemoryError"));
        assert!(out_of_memory(b"x\nMemoryError: cannot\n\n"));
        assert!(out_of_memory(
            b"numpy.core._exceptions._ArrayMemoryError: Unable"
        ));
        assert!(!out_of_memory(b"NotMemoryError"));
        assert!(!out_of_memory(b"MemoryErrors"));
        assert!(!out_of_memory(b""));
    }
}
