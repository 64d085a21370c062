//! Program × tests → a verdict for each.
//!
//! Every verdict is formed here, in the trusted process, from how the program ended and from the bytes it wrote to
//! stdout. What it wrote to stderr is shown to people and models; it decides only between two ways of failing. The
//! expected output never reaches the program.
//!
//! What this does not do: choose tests, write feedback, give rewards.

use std::cell::LazyCell;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rlef_problems::{Problem, TestCase};
use rlef_sandbox::{Ending, Limits, Outcome, Returned};
use serde::{Deserialize, Serialize};

use crate::cache::{Cache, Key, Ran, Value};
use crate::compare::{compare, usable};
use crate::config::JudgeConfig;
use crate::executor::{BoxError, Candidate, Executor};
use crate::fault::Fault;
use crate::parallel::map_in_order;
use crate::report::{Detail, Report, TestResult, Verdict};
use crate::value;

/// "CPU time limit exceeded", signal(7). 24 on x86-64 and ARM.
const SIGXCPU: i32 = 24;

/// When to stop running tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After the first test that is not accepted.
    AtFirstFailure,
    /// Run every test.
    Never,
}

/// One program to judge, for [`Judge::judge_many`].
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The problem: its limits and checker.
    pub problem: &'a Problem,
    /// The program's source.
    pub code: &'a str,
    /// The tests to run.
    pub tests: &'a [TestCase],
    /// When to stop.
    pub stop: Stop,
}

/// What a judge has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct JudgeStats {
    /// Programs run in the sandbox.
    pub runs: u64,
    /// Syntax checks made in the sandbox.
    pub syntax_checks: u64,
    /// Runs and checks answered from memory.
    pub cache_hits: u64,
    /// Tries that ended in a fault, those that a retry made good included.
    pub failed_tries: u64,
    /// Faults returned to the caller after all retries.
    pub faults: u64,
}

#[derive(Debug, Default)]
struct Counters {
    runs: AtomicU64,
    syntax_checks: AtomicU64,
    cache_hits: AtomicU64,
    failed_tries: AtomicU64,
    faults: AtomicU64,
}

/// Judges programs; shared by any number of threads.
pub struct Judge {
    executor: Box<dyn Executor>,
    config: JudgeConfig,
    cache: Option<Mutex<Cache>>,
    counters: Counters,
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judge")
            .field("config", &self.config)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Judge {
    /// A judge that runs programs with `executor`.
    ///
    /// # Errors
    /// [`Fault::Setting`] if a setting is out of range.
    pub fn new(executor: impl Executor + 'static, config: JudgeConfig) -> Result<Self, Fault> {
        config.check()?;
        let cache = config
            .cache
            .then(|| Mutex::new(Cache::new(config.cache_bytes)));
        Ok(Self {
            executor: Box::new(executor),
            config,
            cache,
            counters: Counters::default(),
        })
    }

    /// The settings it works with.
    pub fn config(&self) -> &JudgeConfig {
        &self.config
    }

    /// What it has done so far.
    pub fn stats(&self) -> JudgeStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        JudgeStats {
            runs: read(&self.counters.runs),
            syntax_checks: read(&self.counters.syntax_checks),
            cache_hits: read(&self.counters.cache_hits),
            failed_tries: read(&self.counters.failed_tries),
            faults: read(&self.counters.faults),
        }
    }

    /// Whether programs for `problem` can be judged at all: its limits can be kept and its checker compares.
    ///
    /// # Errors
    /// [`Fault::Limits`] or [`Fault::Checker`].
    pub fn check(&self, problem: &Problem) -> Result<(), Fault> {
        let limits = self.config.limits_for(problem)?;
        self.executor
            .check(&limits)
            .map_err(|error| Fault::Limits {
                problem: problem.id.clone(),
                what: error.to_string(),
            })?;
        usable(&problem.checker, problem.function.is_some()).map_err(|source| Fault::Checker {
            problem: problem.id.clone(),
            source,
        })
    }

    /// Runs `code` on `tests` under the limits and with the checker of `problem`.
    ///
    /// If `code` does not parse, every test gets [`Verdict::CompileError`], also with [`Stop::AtFirstFailure`].
    ///
    /// # Errors
    /// A [`Fault`] if a test could not be judged, retries included, or if there is no test. A fault says nothing about
    /// the program and must not be counted as a failure.
    pub fn judge(
        &self,
        problem: &Problem,
        code: &str,
        tests: &[TestCase],
        stop: Stop,
    ) -> Result<Report, Fault> {
        let report = self.judge_tests(problem, code, tests, stop);
        if report.is_err() {
            add(&self.counters.faults);
        }
        report
    }

    /// Judges many programs on up to `workers` threads; the results come in the order of the jobs.
    pub fn judge_many(&self, jobs: &[Job<'_>], workers: usize) -> Vec<Result<Report, Fault>> {
        map_in_order(jobs.to_vec(), workers, |job| {
            self.judge(job.problem, job.code, job.tests, job.stop)
        })
    }

    fn judge_tests(
        &self,
        problem: &Problem,
        code: &str,
        tests: &[TestCase],
        stop: Stop,
    ) -> Result<Report, Fault> {
        if tests.is_empty() {
            return Err(Fault::NoTests {
                problem: problem.id.clone(),
            });
        }
        // Asked before anything runs: a program that crashes must not hide that its output could not be judged.
        self.check(problem)?;
        let limits = self.config.limits_for(problem)?;
        let unusable = |source| Fault::Checker {
            problem: problem.id.clone(),
            source,
        };
        let mut results = Vec::with_capacity(tests.len());
        // Made when the first test has to be run, not for a program whose every outcome is remembered.
        let candidate = LazyCell::new(|| self.executor.candidate(code));
        // A program that has exited with status 0 once, or passed the check once, parses.
        let mut parses = false;
        for (index, test) in tests.iter().enumerate() {
            let name = test_name(test, index);
            let fault = |(tries, source)| Fault::Execution {
                problem: problem.id.clone(),
                test: name.clone(),
                tries,
                source,
            };
            let ran = self
                .ran(code, &candidate, problem.function.as_deref(), test, &limits)
                .map_err(fault)?;
            let outcome = &ran.outcome;
            parses |= outcome.ending == Ending::Exited(0);
            if !parses && may_be_compile_error(outcome) {
                match self.syntax(code, &limits).map_err(fault)? {
                    Some(message) => return Ok(self.compile_error(tests, &ran, &message)),
                    None => parses = true,
                }
            }
            let (verdict, detail) = match (ending_verdict(outcome, &limits), &ran.returned) {
                (Some(failure), _) => failure,
                (None, None) => {
                    compare(&problem.checker, &test.output, &outcome.stdout).map_err(unusable)?
                }
                (None, Some(returned)) => {
                    value::compare(&problem.checker, &test.output, returned).map_err(unusable)?
                }
            };
            results.push(self.result(name, index, verdict, detail, &ran));
            if verdict != Verdict::Accepted && stop == Stop::AtFirstFailure {
                break;
            }
        }
        Ok(Report {
            results,
            total: tests.len(),
        })
    }

    fn compile_error(&self, tests: &[TestCase], ran: &Ran, message: &str) -> Report {
        let results = tests.iter().enumerate().map(|(index, test)| {
            let detail = Detail::Compiler(message.to_owned());
            self.result(
                test_name(test, index),
                index,
                Verdict::CompileError,
                detail,
                ran,
            )
        });
        Report {
            results: results.collect(),
            total: tests.len(),
        }
    }

    fn result(
        &self,
        name: String,
        index: usize,
        verdict: Verdict,
        detail: Detail,
        ran: &Ran,
    ) -> TestResult {
        let outcome = &ran.outcome;
        let start = &outcome.stdout[..outcome.stdout.len().min(self.config.kept_stdout_bytes)];
        let cut = outcome
            .stderr
            .len()
            .saturating_sub(self.config.kept_stderr_bytes);
        TestResult {
            name,
            index,
            verdict,
            stdout: start.to_vec(),
            stdout_len: outcome.stdout.len(),
            returned: match &ran.returned {
                Some(Returned::Value(value)) => {
                    Some(value::shown(value, self.config.kept_stdout_bytes))
                }
                _ => None,
            },
            stderr: outcome.stderr[cut..].to_vec(),
            cpu: outcome.cpu,
            wall: outcome.wall,
            detail,
        }
    }

    /// Runs the program or calls its function, or remembers having done so.
    fn ran<'c>(
        &self,
        code: &str,
        candidate: &impl Deref<Target = Box<dyn Candidate + 'c>>,
        function: Option<&str>,
        test: &TestCase,
        limits: &Limits,
    ) -> Result<Arc<Ran>, (u32, BoxError)> {
        let key = self
            .cache
            .is_some()
            .then(|| Key::run(code, function, &test.input, limits));
        if let Some(Value::Ran(ran)) = self.remembered(key.as_ref()) {
            return Ok(ran);
        }
        let ran = Arc::new(self.retrying(limits, |limits| {
            add(&self.counters.runs);
            let Some(function) = function else {
                let outcome = candidate.run(test.input.as_bytes(), limits)?;
                return Ok(Ran {
                    outcome,
                    returned: None,
                    returned_bytes: 0,
                });
            };
            let called = candidate.call(function, &test.input, limits)?;
            Ok(Ran {
                returned_bytes: value::size(&called.returned),
                outcome: called.outcome,
                returned: Some(called.returned),
            })
        })?);
        self.remember(key, || Value::Ran(Arc::clone(&ran)));
        Ok(ran)
    }

    /// Checks whether the program parses, or remembers having checked it.
    fn syntax(&self, code: &str, limits: &Limits) -> Result<Option<String>, (u32, BoxError)> {
        let key = self.cache.is_some().then(|| Key::syntax(code, limits));
        if let Some(Value::Syntax(message)) = self.remembered(key.as_ref()) {
            return Ok(message);
        }
        let message = self.retrying(limits, |limits| {
            add(&self.counters.syntax_checks);
            self.executor.syntax_check(code, limits)
        })?;
        self.remember(key, || Value::Syntax(message.clone()));
        Ok(message)
    }

    fn remembered(&self, key: Option<&Key>) -> Option<Value> {
        let value = lock(self.cache.as_ref()?).get(key?)?;
        add(&self.counters.cache_hits);
        Some(value)
    }

    fn remember(&self, key: Option<Key>, value: impl FnOnce() -> Value) {
        if let (Some(cache), Some(key)) = (&self.cache, key) {
            lock(cache).put(key, value());
        }
    }

    /// Tries up to `1 + retries` times; gives the number of tries and the last error if all fail.
    ///
    /// Each retry has twice the wall-clock time: the usual fault is a machine so busy that a program could not use its
    /// CPU time, which stays the limit that counts.
    fn retrying<T>(
        &self,
        limits: &Limits,
        attempt: impl Fn(&Limits) -> Result<T, BoxError>,
    ) -> Result<T, (u32, BoxError)> {
        let mut limits = *limits;
        let mut tries = 0;
        loop {
            tries += 1;
            match attempt(&limits) {
                Ok(value) => return Ok(value),
                Err(error) => {
                    add(&self.counters.failed_tries);
                    if tries > self.config.retries {
                        return Err((tries, error));
                    }
                    let pause = self
                        .config
                        .retry_pause_ms
                        .saturating_mul(1 << (tries - 1).min(6));
                    std::thread::sleep(Duration::from_millis(pause.min(5_000)));
                    limits.wall = limits.wall.saturating_mul(2);
                }
            }
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A thread that panicked inside the cache left at worst a wrong byte count, which only moves the bound.
fn lock(cache: &Mutex<Cache>) -> MutexGuard<'_, Cache> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

fn test_name(test: &TestCase, index: usize) -> String {
    if test.name.is_empty() {
        (index + 1).to_string()
    } else {
        test.name.clone()
    }
}

/// The verdict that the ending alone gives; `None`: it ended well, so the output decides.
fn ending_verdict(outcome: &Outcome, limits: &Limits) -> Option<(Verdict, Detail)> {
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

/// Whether it is worth asking the compiler. Said of the program's own stderr, so it decides nothing else: a program
/// that fakes such an error is found to parse and keeps its runtime error.
fn may_be_compile_error(outcome: &Outcome) -> bool {
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
