//! `rlef run`: one program in the sandbox.

use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rlef_sandbox::{Compiled, Ending, External, Fault, Limits, Outcome, Program};
use serde::Serialize;

use crate::args::{Backend, Run};
use crate::parts;
use crate::text;

/// Exit code of a program that a compiler refuses (EX_DATAERR).
const DOES_NOT_COMPILE: i32 = 65;

/// Most that a program is given to read. Beyond it something else was meant, such as a device that never ends.
const LONGEST_INPUT: u64 = 1 << 30;

pub fn run(args: &Run) -> Result<ExitCode> {
    let source = parts::program(&args.file)?;
    let stdin = if args.file == Path::new("-") {
        vec![]
    } else {
        input()?
    };
    let mut limits = Limits::with_cpu(args.cpu);
    limits.memory_bytes = args.memory << 20;
    if let Some(wall) = args.wall {
        limits.wall = wall;
    }
    limits.check()?;
    let language = parts::language(args.language.as_deref(), &args.file);
    let program = Program {
        language: &language,
        source: &source,
    };
    let outcome = match &args.backend {
        Some(_) if !program.is_python() => {
            bail!("--backend runs Python programs only, not {language}")
        }
        Some(Backend(command)) => External::new(command.clone())
            .and_then(|external| external.run(&source, &stdin, &limits)),
        None => sandboxed(args, &program, &stdin, &limits),
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return Ok(super::fault(&error.into())),
    };
    let code = exit_code(outcome.ending);
    if args.json {
        let report = Report::new(&outcome, code);
        text::print(&format!("{}\n", serde_json::to_string(&report)?))?;
    } else {
        pass_on(&outcome)?;
    }
    Ok(ExitCode::from(code))
}

fn sandboxed(
    args: &Run,
    program: &Program,
    stdin: &[u8],
    limits: &Limits,
) -> Result<Outcome, Fault> {
    let sandbox = parts::sandbox(args.python.python.as_deref(), &args.python.packages)?;
    sandbox.check(limits)?;
    match sandbox.compile(program)? {
        Compiled::Program(program) => program.run(stdin, limits),
        // As an interpreter would have it: the message on stderr, and a failure.
        Compiled::Error(error) => Ok(Outcome {
            ending: Ending::Exited(DOES_NOT_COMPILE),
            stdout: vec![],
            stderr: error.message.into_bytes(),
            cpu: Duration::ZERO,
            wall: Duration::ZERO,
            peak_memory_bytes: None,
        }),
    }
}

/// Everything on stdin: the program gets it as a whole.
fn input() -> Result<Vec<u8>> {
    let stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        crate::say_err!("reading the program's stdin; ctrl-D ends it");
    }
    let mut bytes = vec![];
    let read = stdin.take(LONGEST_INPUT + 1).read_to_end(&mut bytes);
    read.context("cannot read stdin")?;
    if bytes.len() as u64 > LONGEST_INPUT {
        bail!("stdin is longer than {} MiB", LONGEST_INPUT >> 20);
    }
    Ok(bytes)
}

/// Signals that name a limit of ours, as shells count them: 128 + signal.
fn exit_code(ending: Ending) -> u8 {
    let signal = |number: i32| 128 + (number & 0x7f) as u8;
    match ending {
        Ending::Exited(status) => (status & 0xff) as u8,
        Ending::Signalled(number) => signal(number),
        // As timeout(1) has it.
        Ending::CpuLimit | Ending::WallLimit => 124,
        // SIGKILL, SIGXFSZ and SIGSYS.
        Ending::MemoryLimit => signal(9),
        Ending::OutputLimit => signal(25),
        Ending::Forbidden(_) => signal(31),
    }
}

/// The program's stdout and stderr to ours, then a line on how it ended.
fn pass_on(outcome: &Outcome) -> Result<()> {
    let passed = text::pass(&outcome.stdout);
    let mut err = vec![];
    err.extend_from_slice(&outcome.stderr);
    if outcome.stderr.last().is_some_and(|&b| b != b'\n') {
        err.push(b'\n');
    }
    let memory = outcome
        .peak_memory_bytes
        .map(|bytes| format!(", {:.1} MiB", bytes as f64 / f64::from(1 << 20)))
        .unwrap_or_default();
    writeln!(
        err,
        "rlef: {}, {:.3} s CPU, {:.3} s wall{memory}",
        outcome.ending,
        outcome.cpu.as_secs_f64(),
        outcome.wall.as_secs_f64()
    )?;
    // Nobody is left to be told that stderr cannot be written.
    let _ = std::io::stderr().lock().write_all(&err);
    passed
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    /// `ending`, and where it has one, `detail`: exit status, signal or system call.
    #[serde(flatten)]
    ending: Ending,
    /// What this command exits with.
    exit_code: u8,
    stdout: String,
    stderr: String,
    cpu_s: f64,
    wall_s: f64,
    peak_memory_bytes: Option<u64>,
}

impl Report {
    fn new(outcome: &Outcome, exit_code: u8) -> Self {
        Self {
            ending: outcome.ending,
            exit_code,
            stdout: String::from_utf8_lossy(&outcome.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&outcome.stderr).into_owned(),
            cpu_s: outcome.cpu.as_secs_f64(),
            wall_s: outcome.wall.as_secs_f64(),
            peak_memory_bytes: outcome.peak_memory_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_has_its_code() {
        let codes = [
            (Ending::Exited(0), 0),
            (Ending::Exited(7), 7),
            (Ending::Signalled(11), 139),
            (Ending::CpuLimit, 124),
            (Ending::WallLimit, 124),
            (Ending::MemoryLimit, 137),
            (Ending::OutputLimit, 153),
            (Ending::Forbidden(Some(41)), 159),
        ];
        for (ending, code) in codes {
            assert_eq!(exit_code(ending), code, "{ending}");
        }
    }
}
