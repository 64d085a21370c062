//! What judging costs: a program on the tests of a problem, by the judge and by an interpreter started for each test;
//! tests a second on all cores, CPU time for a problem with 200 tests, and memory over many tests.
//!
//! `cargo run --release -p rlef-benches --bin judge -- [--rounds 3] [--memory-tests 100000] [--peer COMMAND]`

mod peers;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use rlef_benches::{adopt_orphans, children, circumstances, cpu, said, tree_cpu};
use rlef_judge::{Job, Judge, JudgeConfig, Report, Stop};
use rlef_problems::{Checker, Problem, TestCase};
use rlef_sandbox::{Config, PYTHON, Sandbox};

use peers::{Bare, Peer};

/// Measures the judge beside other ways of judging.
#[derive(Debug, Parser)]
struct Arguments {
    /// Rounds; the ways take turns.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Programs that are judged at once in a round, each on 200 tests.
    #[arg(long, default_value_t = 8)]
    programs: usize,
    /// Tests over which memory is watched; 0 leaves that out.
    #[arg(long, default_value_t = 100_000)]
    memory_tests: usize,
    /// Another judge: a command that is given the program's file, a folder of `N.in` and `N.out`, the number of tests and
    /// the number of workers, and that prints how many tests were accepted.
    #[arg(long)]
    peer: Option<String>,
}

/// Tests of a problem.
const TESTS: usize = 200;

/// Reads numbers, uses the standard library, prints a line for each.
const PROGRAM: &str = include_str!("../../../../crates/cli/src/commands/sandbox/sample.py");

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    adopt_orphans()?;
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    println!("# What judging costs\n\n{}", circumstances());
    println!(
        "{}. The program of the sandbox's own benchmark on {TESTS} tests; CPU time of all processes involved.\n",
        said("python3", &["--version"])
    );
    println!(
        "    cargo run --release -p rlef-benches --bin judge -- --rounds {} --programs {} --memory-tests {}\n",
        arguments.rounds, arguments.programs, arguments.memory_tests
    );
    if let Some(peer) = &arguments.peer {
        println!("with `--peer \"{peer}\"`.\n");
    }
    let bare = Bare::new(PROGRAM, TESTS)?;
    let problem = problem(&bare);
    let peer = match &arguments.peer {
        Some(command) => Some(Peer::new(command, &bare)?),
        None => None,
    };
    let mut rows: Vec<(String, Vec<Cost>)> = vec![
        ("`python3` for each test".into(), vec![]),
        ("**rlef**".into(), vec![]),
    ];
    rows.extend(peer.iter().map(|peer| (peer.name(), vec![])));
    for _ in 0..arguments.rounds.max(1) {
        for (at, (_, costs)) in rows.iter_mut().enumerate() {
            costs.push(match at {
                // One program: it takes that much longer.
                0 => cost(TESTS, || bare.judge(workers).and_then(|()| used()))?,
                1 => cost(arguments.programs * TESTS, || {
                    judged(&problem, arguments.programs, workers)
                })?,
                _ => match &peer {
                    Some(peer) => cost(TESTS, || peer.judge(workers).and_then(|()| used()))?,
                    None => bail!("there is no other judge"),
                },
            });
        }
    }
    println!("{workers} workers, mean of {} rounds.\n", arguments.rounds);
    println!(
        "| way | tests a second | CPU ms a test | CPU s for a problem with {TESTS} tests | ratio |\n|---|---|---|---|---|"
    );
    let mean = |costs: &[Cost], of: fn(&Cost) -> f64| {
        costs.iter().map(of).sum::<f64>() / costs.len().max(1) as f64
    };
    let base = rows
        .first()
        .map_or(f64::NAN, |(_, costs)| mean(costs, Cost::cpu_ms));
    for (name, costs) in &rows {
        let cpu_ms = mean(costs, Cost::cpu_ms);
        println!(
            "| {name} | {:.0} | {cpu_ms:.1} | {:.2} | {:.2} |",
            mean(costs, Cost::rate),
            cpu_ms * TESTS as f64 / 1e3,
            cpu_ms / base
        );
    }
    if arguments.memory_tests > 0 {
        memory(&problem, arguments.memory_tests, workers)?;
    }
    Ok(())
}

/// What so many tests took.
struct Cost {
    tests: usize,
    wall: Duration,
    cpu: Duration,
}

impl Cost {
    fn rate(&self) -> f64 {
        self.tests as f64 / self.wall.as_secs_f64()
    }

    fn cpu_ms(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e3 / self.tests as f64
    }
}

/// `work` says what processes that are still there have used.
fn cost(tests: usize, work: impl FnOnce() -> Result<Used>) -> Result<Cost> {
    let (start, before) = (Instant::now(), cpu()?);
    let used = work()?;
    Ok(Cost {
        tests,
        wall: start.elapsed(),
        cpu: used.at.saturating_sub(before) + used.below,
    })
}

/// CPU time at the end of some work.
struct Used {
    /// As [`cpu`] tells it.
    at: Duration,
    /// Of processes that have not been waited for.
    below: Duration,
}

fn used() -> Result<Used> {
    Ok(Used {
        below: tree_cpu(&children()),
        at: cpu()?,
    })
}

fn problem(bare: &Bare) -> Problem {
    let tests = bare.tests.iter().enumerate();
    let tests = tests.map(|(at, (input, output))| TestCase {
        name: (at + 1).to_string(),
        input: input.clone(),
        output: output.clone(),
    });
    Problem {
        id: "sample".into(),
        name: String::new(),
        statement: "Read numbers.".into(),
        time_limit_s: 5.0,
        memory_limit_mb: 256,
        checker: Checker::default(),
        function: None,
        public_tests: vec![],
        private_tests: tests.collect(),
        generated_tests: vec![],
        solutions: vec![],
        wrong_solutions: vec![],
        meta: serde_json::Map::new(),
    }
}

fn judge() -> Result<Judge> {
    let config = JudgeConfig {
        cache: false,
        ..JudgeConfig::default()
    };
    Ok(Judge::new(Sandbox::new(Config::default())?, config)?)
}

/// The judge with all that it needs, its making included. What its sandboxes have used is read while they are there.
fn judged(problem: &Problem, programs: usize, workers: usize) -> Result<Used> {
    let judge = judge()?;
    all_pass(&judge, problem, programs, workers)?;
    used()
}

fn all_pass(judge: &Judge, problem: &Problem, programs: usize, workers: usize) -> Result<()> {
    let job = Job {
        problem,
        language: PYTHON,
        code: PROGRAM,
        tests: &problem.private_tests,
        stop: Stop::AtFirstFailure,
    };
    for report in judge.judge_many(&vec![job; programs], workers) {
        let report: Report = report.context("the judge failed")?;
        if !report.all_passed() {
            bail!("a right program was not accepted: {:?}", report.verdict());
        }
    }
    Ok(())
}

/// What this process and everything below it holds, in MiB.
fn held() -> f64 {
    let mut left = vec![std::process::id() as i32];
    let mut kib = 0.0;
    while let Some(pid) = left.pop() {
        let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        // What others hold too counts in parts, where that can be read; a closed process tells what is resident.
        let text = rollup.unwrap_or(status);
        let line = text
            .lines()
            .find(|l| l.starts_with("Pss:") || l.starts_with("VmRSS:"));
        let number = line.and_then(|l| l.split_whitespace().nth(1)?.parse::<f64>().ok());
        kib += number.unwrap_or(0.0);
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
        for task in tasks.into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(task.path().join("children"));
            let children = children.unwrap_or_default();
            left.extend(
                children
                    .split_whitespace()
                    .filter_map(|n| n.parse::<i32>().ok()),
            );
        }
    }
    kib / 1024.0
}

/// Tests between two looks at the memory.
const STEP: usize = 10_000;

fn memory(problem: &Problem, tests: usize, workers: usize) -> Result<()> {
    let judge = judge()?;
    println!(
        "\nMemory of the judge with its sandboxes, between programs:\n\n| tests | MiB |\n|---|---|"
    );
    let start = Instant::now();
    let mut done = 0;
    while done < tests {
        let programs = (STEP / TESTS).max(workers);
        all_pass(&judge, problem, programs, workers)?;
        done += programs * TESTS;
        println!("| {done} | {:.1} |", held());
    }
    println!("\n{done} tests in {:.0} s.", start.elapsed().as_secs_f64());
    Ok(())
}
