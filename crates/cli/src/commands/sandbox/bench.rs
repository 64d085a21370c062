//! `rlef sandbox bench`: a program in the sandbox against the bare interpreter, on the user's own machine.
//!
//! Cost is CPU time of all processes involved, which a busy machine changes little. A launcher and what it has started
//! are accounted for when they have ended, so what the sandbox has used is known when it is taken down; setting it up
//! is measured by itself and taken off.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rlef_sandbox::{Config, Ending, Limits, Sandbox};
use serde_json::json;

use crate::args::Bench;
use crate::{parts, text};

/// What a solution to a small problem is like: reads some numbers, uses the standard library, prints a few lines.
const PROGRAM: &str = include_str!("sample.py");

pub fn run(args: &Bench) -> Result<ExitCode> {
    let source = match &args.file {
        Some(file) => parts::program(file)?,
        None => PROGRAM.to_owned(),
    };
    let input = match &args.input {
        Some(file) => parts::text(file)?,
        None => sample_input(),
    };
    let python = args
        .python
        .python
        .clone()
        .unwrap_or_else(|| "python3".into());
    let bench = Bare::new(&python, source, input)?;
    let half = args.seconds.div_f64(2.0);
    let config = Config {
        interpreter: args.python.python.clone(),
        packages: args.python.packages.clone(),
        ..Config::default()
    };
    let cost = bench.cost(&config, half)?;
    let rates = bench.rates(&config, half)?;
    if args.json {
        let report = json!({
            "runs": cost.runs,
            "bare_cpu_s": cost.bare.as_secs_f64(),
            "sandbox_cpu_s": cost.sandbox.as_secs_f64(),
            "ratio": cost.ratio(),
            "workers": rates.workers,
            "bare_per_s": rates.bare,
            "sandbox_per_s": rates.sandbox,
        });
        text::print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        let rows = [
            ["", "CPU a run", "runs a second"],
            [
                "bare interpreter",
                &format!("{:.2} ms", cost.bare.as_secs_f64() * 1e3),
                &format!("{:.0}", rates.bare),
            ],
            [
                "sandbox",
                &format!("{:.2} ms", cost.sandbox.as_secs_f64() * 1e3),
                &format!("{:.0}", rates.sandbox),
            ],
            [
                "sandbox / bare",
                &format!("{:.2}", cost.ratio()),
                &format!("{:.1}", rates.sandbox / rates.bare),
            ],
        ]
        .map(|row| row.map(str::to_owned).to_vec());
        text::print(&text::columns(&rows, ""))?;
        crate::say!(
            "\n{} runs of each in turn; then {} at once for {:.0} s each",
            cost.runs,
            rates.workers,
            half.as_secs_f64() / 2.0
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn sample_input() -> String {
    let numbers: Vec<String> = (0..200).map(|i| (i * 7919 % 1000).to_string()).collect();
    format!("{}\n{}\n", numbers.len(), numbers.join(" "))
}

/// CPU time of this process (all threads) and of every child that it has waited for.
fn cpu() -> Result<Duration> {
    let mut sum = 0;
    for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
        let usage = getrusage(who)?;
        sum += usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    }
    Ok(Duration::from_micros(sum.unsigned_abs()))
}

/// The program as a file for the bare interpreter.
struct Bare {
    python: PathBuf,
    folder: tempfile::TempDir,
    source: String,
    input: String,
    output: Vec<u8>,
}

/// CPU time of a run.
struct Cost {
    runs: u32,
    bare: Duration,
    sandbox: Duration,
}

impl Cost {
    fn ratio(&self) -> f64 {
        self.sandbox.as_secs_f64() / self.bare.as_secs_f64().max(1e-9)
    }
}

/// Runs a second on all cores.
struct Rates {
    workers: usize,
    bare: f64,
    sandbox: f64,
}

impl Bare {
    fn new(python: &Path, source: String, input: String) -> Result<Self> {
        // What the name leads to in the end: a version manager's script in between is not the interpreter's cost.
        let asked = Command::new(python)
            .args(["-c", "import sys; print(sys.executable)"])
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {}", python.display()))?;
        let real = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim());
        let folder = tempfile::tempdir().context("cannot make a folder for the program")?;
        std::fs::write(folder.path().join("main.py"), &source)?;
        std::fs::write(folder.path().join("input"), &input)?;
        let mut bare = Self {
            python: real,
            folder,
            source,
            input,
            output: vec![],
        };
        bare.output = bare.run()?;
        Ok(bare)
    }

    fn run(&self) -> Result<Vec<u8>> {
        let output = Command::new(&self.python)
            .arg(self.folder.path().join("main.py"))
            .stdin(std::fs::File::open(self.folder.path().join("input"))?)
            .output()
            .with_context(|| format!("cannot start {}", self.python.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("the program fails outside of the sandbox: {}", said.trim());
        }
        Ok(output.stdout)
    }

    fn sandboxed(&self, sandbox: &Sandbox) -> Result<()> {
        let limits = Limits::with_cpu(Duration::from_secs(20));
        let outcome = sandbox.run(&self.source, self.input.as_bytes(), &limits)?;
        if outcome.ending != Ending::Exited(0) || outcome.stdout != self.output {
            let said = String::from_utf8_lossy(&outcome.stderr);
            bail!(
                "in the sandbox the program does something else ({}): {}",
                outcome.ending,
                said.trim()
            );
        }
        Ok(())
    }

    /// In turn, one at a time.
    fn cost(&self, config: &Config, time: Duration) -> Result<Cost> {
        let before = cpu()?;
        let sandbox = Sandbox::new(config.clone())?;
        self.sandboxed(&sandbox)?;
        drop(sandbox);
        let set_up = cpu()? - before;
        let whole = cpu()?;
        let sandbox = Sandbox::new(config.clone())?;
        self.sandboxed(&sandbox)?;
        let (mut runs, mut bare) = (0, Duration::ZERO);
        let end = Instant::now() + time;
        while runs < 20 || Instant::now() < end {
            let start = cpu()?;
            self.run()?;
            bare += cpu()? - start;
            self.sandboxed(&sandbox)?;
            runs += 1;
        }
        drop(sandbox);
        let sandboxed = (cpu()? - whole).saturating_sub(bare).saturating_sub(set_up);
        Ok(Cost {
            runs,
            bare: bare / runs,
            sandbox: sandboxed / runs,
        })
    }

    /// As many at once as there are cores.
    fn rates(&self, config: &Config, time: Duration) -> Result<Rates> {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let sandbox = Sandbox::new(config.clone())?;
        let each = time.div_f64(2.0);
        Ok(Rates {
            workers,
            bare: rate(workers, each, &|| self.run().map(|_| ()))?,
            sandbox: rate(workers, each, &|| self.sandboxed(&sandbox))?,
        })
    }
}

/// Runs a second that `workers` threads get through.
fn rate(workers: usize, time: Duration, work: &(dyn Fn() -> Result<()> + Sync)) -> Result<f64> {
    // One each first, so that what is made only once is there.
    let done = AtomicUsize::new(0);
    let round = |until: Option<Instant>| -> Result<()> {
        loop {
            work()?;
            done.fetch_add(1, Ordering::Relaxed);
            if until.is_none_or(|at| Instant::now() >= at) {
                return Ok(());
            }
        }
    };
    let all = |until| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(|| round(until))).collect();
            threads.into_iter().try_for_each(|t| match t.join() {
                Ok(result) => result,
                Err(_) => bail!("a thread of the measurement ended early"),
            })
        })
    };
    all(None)?;
    done.store(0, Ordering::Relaxed);
    let start = Instant::now();
    all(Some(start + time))?;
    Ok(done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64())
}
