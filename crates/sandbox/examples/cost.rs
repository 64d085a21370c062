//! What isolation costs: a small program in the sandbox against the same interpreter started on the same file, in
//! turn. `cargo run --release -p rlef-sandbox --example cost -- [RUNS] [INTERPRETER]`
//!
//! CPU time is that of all processes involved, this one included: the launcher and what it has waited for are
//! counted when it has ended, so the sandbox's share includes setting up its slot.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rlef_sandbox::{Config, Ending, Limits, Sandbox};

const PROGRAM: &str =
    "n = int(input())\nnumbers = [int(x) for x in input().split()]\nprint(sum(numbers) % n)\n";
const INPUT: &[u8] = b"7\n1 2 3 4 5 6\n";

/// CPU time of this process (all threads) and of every child it has waited for.
fn cpu() -> Result<Duration, nix::Error> {
    let mut sum = 0;
    for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
        let usage = getrusage(who)?;
        sum += usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    }
    Ok(Duration::from_micros(sum.unsigned_abs()))
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let runs: u32 = arguments.next().map_or(Ok(200), |n| n.parse())?;
    let python = arguments.next().unwrap_or("python3".into());
    let asked = Command::new(&python)
        .args(["-c", "import sys; print(sys.executable)"])
        .output()?;
    let real = String::from_utf8(asked.stdout)?.trim().to_owned();
    let folder = tempfile::tempdir()?;
    let (file, input) = (folder.path().join("main.py"), folder.path().join("input"));
    std::fs::write(&file, PROGRAM)?;
    std::fs::write(&input, INPUT)?;
    let start = Instant::now();
    let sandbox = Sandbox::new(Config {
        interpreter: Some(python.into()),
        ..Config::default()
    })?;
    println!(
        "{real}, Python {}; Sandbox::new took {:?}",
        sandbox.python_version(),
        start.elapsed()
    );

    let limits = Limits::with_cpu(Duration::from_secs(5));
    let (mut bare_cpu, mut bare, mut boxed, mut inside) = (Duration::ZERO, vec![], vec![], vec![]);
    let before = cpu()?;
    for _ in 0..runs {
        let (start, used) = (Instant::now(), cpu()?);
        let output = Command::new(&real)
            .arg(&file)
            .stdin(std::fs::File::open(&input)?)
            .stderr(Stdio::null())
            .output()?;
        bare.push(start.elapsed());
        bare_cpu += cpu()? - used;
        assert_eq!(output.stdout, b"0\n");
        let start = Instant::now();
        let outcome = sandbox.run(PROGRAM, INPUT, &limits)?;
        boxed.push(start.elapsed());
        inside.push(outcome.cpu);
        assert_eq!(
            (outcome.ending, outcome.stdout),
            (Ending::Exited(0), b"0\n".to_vec())
        );
    }
    drop(sandbox);
    let boxed_cpu = cpu()? - before - bare_cpu;
    let ratio = boxed_cpu.as_secs_f64() / bare_cpu.as_secs_f64();
    println!("runs {runs}, each in turn      CPU mean      wall median");
    println!(
        "bare {real} file: {:?}  {:?}",
        bare_cpu / runs,
        median(&mut bare)
    );
    println!(
        "sandbox: {:?}  {:?}  (the program itself, CPU median: {:?})",
        boxed_cpu / runs,
        median(&mut boxed),
        median(&mut inside)
    );
    println!("CPU ratio {ratio:.3}");
    Ok(())
}
