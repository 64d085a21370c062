//! The judge with an executor that plays programs by script, so that every ending can be had at will.

mod faults;
mod near;
mod settings;
mod threads;
mod verdicts;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rlef_judge::{BoxError, Executor, Judge, JudgeConfig, Report, Stop};
use rlef_problems::{Checker, Problem, TestCase};
use rlef_sandbox::{Ending, Limits, Outcome};

/// What the "program" says is what happens: the source is a list of lines, each `INPUT: ENDING STDOUT`.
#[derive(Default)]
struct Fake {
    runs: AtomicUsize,
    checks: AtomicUsize,
    /// So many tries end in a fault first.
    faults: AtomicUsize,
    /// The wall-clock limit of each try.
    walls: Mutex<Vec<Duration>>,
}

fn outcome(ending: Ending, stdout: &str, stderr: &str, cpu_ms: u64) -> Outcome {
    Outcome {
        ending,
        stdout: stdout.replace("\\n", "\n").into(),
        stderr: stderr.into(),
        cpu: Duration::from_millis(cpu_ms),
        wall: Duration::from_millis(cpu_ms + 1),
        peak_memory_bytes: None,
    }
}

impl Fake {
    fn fails(&self) -> Result<(), BoxError> {
        let left = self
            .faults
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        left.map_or(Ok(()), |_| Err("no more file descriptors".into()))
    }
}

impl Executor for Fake {
    fn run(&self, source: &str, stdin: &[u8], limits: &Limits) -> Result<Outcome, BoxError> {
        self.walls.lock().unwrap().push(limits.wall);
        self.runs.fetch_add(1, Ordering::SeqCst);
        self.fails()?;
        let stdin = String::from_utf8_lossy(stdin);
        let line = source
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{stdin}: ")))
            .ok_or("the script has no line for this input")?;
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        Ok(match what {
            "print" => outcome(Ending::Exited(0), rest, "", 10),
            "slow-print" => outcome(Ending::Exited(0), rest, "", 1000),
            "print-and-fail" => outcome(Ending::Exited(3), rest, "", 10),
            "error" => outcome(
                Ending::Exited(1),
                "",
                &format!("Traceback (most recent call last):\n{rest}\n"),
                10,
            ),
            "syntax-error" => outcome(Ending::Exited(1), "", "SyntaxError: invalid syntax\n", 10),
            "xcpu" => outcome(Ending::Signalled(24), rest, "", 990),
            "signal" => outcome(Ending::Signalled(11), rest, "", 10),
            "cpu" => outcome(Ending::CpuLimit, rest, "", 1000),
            "wall" => outcome(Ending::WallLimit, rest, "", 10),
            "memory" => outcome(Ending::MemoryLimit, rest, "", 10),
            "output" => outcome(Ending::OutputLimit, rest, "", 10),
            "forbidden" => outcome(Ending::Forbidden(Some(101)), rest, "", 10),
            other => return Err(format!("unknown {other}").into()),
        })
    }

    fn syntax_check(&self, source: &str, _: &Limits) -> Result<Option<String>, BoxError> {
        self.checks.fetch_add(1, Ordering::SeqCst);
        self.fails()?;
        Ok(source
            .contains("does not parse")
            .then(|| "invalid syntax (main.py, line 1)".to_owned()))
    }
}

fn problem() -> Problem {
    let test = |n: u32| TestCase {
        name: if n == 2 {
            String::new()
        } else {
            format!("t{n}")
        },
        input: n.to_string(),
        output: format!("{}\n", n * n),
    };
    Problem {
        id: "square".into(),
        name: String::new(),
        statement: "Print the square.".into(),
        time_limit_s: 1.0,
        memory_limit_mb: 64,
        checker: Checker::Lines,
        function: None,
        public_tests: (1..=3).map(test).collect(),
        private_tests: (4..=5).map(test).collect(),
        generated_tests: Vec::new(),
        solutions: Vec::new(),
        wrong_solutions: Vec::new(),
        meta: serde_json::Map::new(),
    }
}

fn quick() -> JudgeConfig {
    JudgeConfig {
        retry_pause_ms: 0,
        ..JudgeConfig::default()
    }
}

fn judge_with(config: JudgeConfig) -> (Arc<Fake>, Judge) {
    let fake = Arc::new(Fake::default());
    let judge = Judge::new(Arc::clone(&fake), config).unwrap();
    (fake, judge)
}

fn public(judge: &Judge, code: &str) -> Report {
    let problem = problem();
    judge
        .judge(&problem, code, &problem.public_tests, Stop::Never)
        .unwrap()
}
