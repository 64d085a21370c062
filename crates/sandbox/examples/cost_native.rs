//! What isolation costs a native program: the same binary started bare and in the sandbox, in turn.
//! `cargo run --release -p rlef-sandbox --example cost_native -- [RUNS] [LANGUAGE FILE INPUT]`
//!
//! CPU time is that of all processes involved, this one included. What launchers have used is known when they have
//! ended; what setting up a sandbox and compiling take is measured by itself and taken off. The bare binary is made
//! by the same command, outside.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rlef_sandbox::{Candidate, Compiled, Config, Ending, Limits, Program, Sandbox};

const PROGRAM: &str = r#"
#include <stdio.h>
int main(void) {
    long n, x, sum = 0;
    if (scanf("%ld", &n) != 1) return 1;
    while (scanf("%ld", &x) == 1) sum += x;
    printf("%ld\n", sum % n);
}
"#;
const INPUT: &[u8] = b"7\n1 2 3 4 5 6\n";

/// CPU time of this process (all threads), or of every child that it has waited for.
fn cpu(who: UsageWho) -> Result<Duration, nix::Error> {
    let usage = getrusage(who)?;
    let sum = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(sum.unsigned_abs()))
}

fn both() -> Result<Duration, nix::Error> {
    Ok(cpu(UsageWho::RUSAGE_SELF)? + cpu(UsageWho::RUSAGE_CHILDREN)?)
}

fn compiled<'s>(
    sandbox: &'s Sandbox,
    program: &Program,
    input: &[u8],
) -> Result<Candidate<'s>, Box<dyn std::error::Error>> {
    match sandbox.compile(program)? {
        Compiled::Program(candidate) => {
            candidate.run(input, &Limits::with_cpu(Duration::from_secs(5)))?;
            Ok(candidate)
        }
        Compiled::Error(error) => Err(error.message.into()),
    }
}

/// Compiles outside, as the language's file says.
fn bare(language: &str, source: &Path, folder: &Path) -> Result<bool, std::io::Error> {
    let (compiler, flags): (&str, &[&str]) = match language {
        "c" => ("gcc", &["-std=gnu17", "-O2", "-w", "-pthread", "-lm"]),
        "cpp" => ("g++", &["-std=gnu++20", "-O2", "-w", "-pthread"]),
        _ => (
            "rustc",
            &[
                "-Copt-level=2",
                "-Ccodegen-units=1",
                "-Cstrip=symbols",
                "--edition=2021",
            ],
        ),
    };
    let status = Command::new(compiler)
        .arg(source)
        .args(flags)
        .arg("-o")
        .arg(folder.join("main"))
        .status()?;
    Ok(status.success())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let runs: u32 = arguments.next().map_or(Ok(400), |n| n.parse())?;
    let language = arguments.next().unwrap_or("c".into());
    let source = arguments
        .next()
        .map_or(Ok(PROGRAM.into()), std::fs::read_to_string)?;
    let input = arguments.next().map_or(Ok(INPUT.into()), std::fs::read)?;
    let program = Program {
        language: &language,
        source: &source,
    };
    let folder = tempfile::tempdir()?;
    let extension = if language == "rust" { "rs" } else { &language };
    let file = folder.path().join(format!("main.{extension}"));
    std::fs::write(&file, &source)?;
    assert!(
        bare(&language, &file, folder.path())?,
        "it does not compile"
    );
    let (binary, stdin) = (folder.path().join("main"), folder.path().join("input"));
    std::fs::write(&stdin, &input)?;

    // What launchers use for everything but the runs.
    let before = cpu(UsageWho::RUSAGE_CHILDREN)?;
    let sandbox = Sandbox::new(Config::default())?;
    compiled(&sandbox, &program, &input)?;
    drop(sandbox);
    let set_up = cpu(UsageWho::RUSAGE_CHILDREN)? - before;

    let before = cpu(UsageWho::RUSAGE_CHILDREN)?;
    let sandbox = Sandbox::new(Config::default())?;
    let candidate = compiled(&sandbox, &program, &input)?;
    let limits = Limits::with_cpu(Duration::from_secs(5));
    let (mut ours, mut theirs) = (Duration::ZERO, Duration::ZERO);
    let (mut our_wall, mut their_wall, mut inside) = (Vec::new(), Vec::new(), Vec::new());
    let asked = cpu(UsageWho::RUSAGE_CHILDREN)? - before;
    for _ in 0..runs {
        let (used, now) = (both()?, Instant::now());
        let output = Command::new(&binary)
            .stdin(std::fs::File::open(&stdin)?)
            .stderr(Stdio::null())
            .output()?;
        their_wall.push(now.elapsed());
        theirs += both()? - used;
        let (used, now) = (both()?, Instant::now());
        let outcome = candidate.run(&input, &limits)?;
        our_wall.push(now.elapsed());
        ours += both()? - used;
        inside.push(outcome.cpu);
        assert_eq!(outcome.ending, Ending::Exited(0));
        assert_eq!(outcome.stdout, output.stdout);
    }
    let before = cpu(UsageWho::RUSAGE_CHILDREN)?;
    drop(candidate);
    drop(sandbox);
    let launchers = cpu(UsageWho::RUSAGE_CHILDREN)? - before;
    let ours = (ours + asked + launchers).saturating_sub(set_up);
    println!(
        "{language}; {runs} runs of each in turn: CPU mean, ratio to bare; wall median; the program's own CPU, median"
    );
    println!(
        "bare    {:9.3?} 1.000  {:9.3?}",
        theirs / runs,
        median(&mut their_wall)
    );
    println!(
        "sandbox {:9.3?} {:.3}  {:9.3?}  {:9.3?}",
        ours / runs,
        ours.as_secs_f64() / theirs.as_secs_f64(),
        median(&mut our_wall),
        median(&mut inside)
    );
    Ok(())
}
