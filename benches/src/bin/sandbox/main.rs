//! What isolation costs: one program, in turn, bare, in this sandbox and in others, by the CPU time of every process
//! involved, as a ratio to the bare interpreter in the same run.
//!
//! `cargo run --release -p rlef-benches --bin sandbox -- [--runs 200] [--python PATH]`

mod native;
mod rates;
mod ways;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use rlef_benches::{adopt_orphans, circumstances, cpu, said};

use ways::{Setting, Way};

/// Measures the cost of a test in the sandbox and in others.
#[derive(Debug, Parser)]
struct Arguments {
    /// Runs of each way, in turn.
    #[arg(long, default_value_t = 200)]
    runs: u32,
    /// The interpreter.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// An interpreter with numpy: a program that uses it is measured as well.
    #[arg(long)]
    numpy: Option<PathBuf>,
    /// Seconds for each measurement of tests a second.
    #[arg(long, default_value_t = 4)]
    seconds: u64,
}

/// Reads 200 numbers, uses the standard library, prints eight lines.
const PROGRAM: &str = include_str!("../../../../crates/cli/src/commands/sandbox/sample.py");

/// Reads the same numbers and multiplies matrices.
const NUMPY: &str = include_str!("numpy.py");

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if arguments.runs == 0 {
        bail!("--runs must be at least 1");
    }
    adopt_orphans()?;
    let setting = Setting::new(&arguments.python, &[], PROGRAM, input())?;
    println!("# The sandbox's cost\n\n{}", circumstances());
    println!(
        "{}, {}. The program reads 200 numbers, uses two modules and prints eight lines. CPU time of all processes \
         involved, mean of {} runs of each way in turn.\n",
        setting.python.display(),
        said(&setting.python.to_string_lossy(), &["--version"]),
        arguments.runs
    );
    println!(
        "    cargo run --release -p rlef-benches --bin sandbox -- --runs {} --python {}{}\n",
        arguments.runs,
        arguments.python.display(),
        if arguments.numpy.is_some() {
            " --numpy PYTHON"
        } else {
            ""
        }
    );
    cost(&setting, arguments.runs, false)?;
    if let Some(python) = &arguments.numpy {
        let setting = Setting::new(python, &["numpy"], NUMPY, input())?;
        println!(
            "A program with numpy {}, the sandbox made with `packages = [\"numpy\"]`:\n",
            said(
                &python.to_string_lossy(),
                &["-c", "import numpy; print(numpy.__version__)"]
            )
        );
        cost(&setting, arguments.runs, true)?;
    }
    native::measure(&setting.python, &input(), arguments.runs)?;
    rates::measure(&setting, Duration::from_secs(arguments.seconds))
}

fn input() -> Vec<u8> {
    let numbers: Vec<String> = (0..200).map(|i| (i * 7919 % 1000).to_string()).collect();
    format!("{}\n{}\n", numbers.len(), numbers.join(" ")).into_bytes()
}

/// The table of costs.
fn cost(setting: &Setting, runs: u32, two: bool) -> Result<()> {
    let mut ways = Way::all(setting, two)?;
    let mut used = vec![Duration::ZERO; ways.len()];
    let count = ways.len();
    for round in 0..runs as usize {
        for at in 0..count {
            // Another one first each round: none always comes after the same other.
            let at = (at + round) % count;
            let (Some(way), Some(sum)) = (ways.get_mut(at), used.get_mut(at)) else {
                continue;
            };
            let before = cpu()?;
            way.run(setting).with_context(|| way.name.clone())?;
            *sum += cpu()?.saturating_sub(before);
        }
        if round % 20 == 19 {
            eprintln!("{} of {runs} rounds", round + 1);
        }
    }
    let mut rows = vec![];
    for (way, sum) in ways.into_iter().zip(used) {
        let all = sum + way.launchers_cpu();
        let ms = all.as_secs_f64() * 1e3 / f64::from(runs * way.tests);
        rows.push((way.name, ms));
    }
    let bare = rows.first().map_or(f64::NAN, |row| row.1);
    println!("| way | CPU ms a test | ratio to bare |\n|---|---|---|");
    for (name, ms) in rows {
        println!("| {name} | {ms:.2} | {:.3} |", ms / bare);
    }
    println!();
    Ok(())
}
