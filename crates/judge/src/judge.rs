//! Program × tests → a verdict for each.
//!
//! Every verdict is formed here, in the trusted process, from how the program ended and from the bytes it wrote to
//! stdout. What it wrote to stderr is shown to people and models; it decides only between two ways of failing. The
//! expected output never reaches the program.
//!
//! What this does not do: choose tests, write feedback, give rewards.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rlef_problems::{Problem, TestCase};
use rlef_sandbox::{Ending, Limits, Outcome, Program, Returned};
use serde::{Deserialize, Serialize};

use crate::cache::{Cache, Key, Ran, Value};
use crate::compare::{compare, usable};
use crate::config::JudgeConfig;
use crate::ending::{ending_verdict, may_be_compile_error};
use crate::executor::{BoxError, Candidate, Compiled, Executor};
use crate::fault::Fault;
use crate::parallel::map_in_order;
use crate::report::{Detail, Report, TestResult, Verdict};
use crate::value;

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
    /// The language it is written in, by the sandbox's name for it: [`rlef_sandbox::PYTHON`], `cpp` …
    pub language: &'a str,
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
    /// Syntax checks and compilations made in the sandbox.
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

    /// Whether programs in this language can be run here: it is known, and its tools are installed.
    pub fn can_run(&self, language: &str) -> bool {
        self.executor.can_run(language)
    }

    /// Whether programs for `problem` can be judged at all: its limits can be kept and its checker compares.
    ///
    /// # Errors
    /// [`Fault::Limits`], [`Fault::Calls`] or [`Fault::Checker`].
    pub fn check(&self, problem: &Problem) -> Result<(), Fault> {
        let limits = self.config.limits_for(problem)?;
        self.executor
            .check(&limits)
            .map_err(|error| Fault::Limits {
                problem: problem.id.clone(),
                what: error.to_string(),
            })?;
        if problem.function.is_some() && !self.executor.calls() {
            return Err(Fault::Calls {
                problem: problem.id.clone(),
            });
        }
        usable(&problem.checker, problem.function.is_some()).map_err(|source| Fault::Checker {
            problem: problem.id.clone(),
            source,
        })
    }

    /// As [`Judge::judge_program`], for a Python program.
    ///
    /// # Errors
    /// As there.
    pub fn judge(
        &self,
        problem: &Problem,
        code: &str,
        tests: &[TestCase],
        stop: Stop,
    ) -> Result<Report, Fault> {
        self.judge_program(problem, &Program::python(code), tests, stop)
    }

    /// Runs a program on `tests` under the limits and with the checker of `problem`.
    ///
    /// If it does not parse or compile, every test gets [`Verdict::CompileError`], also with [`Stop::AtFirstFailure`].
    ///
    /// # Errors
    /// A [`Fault`] if a test could not be judged, retries included, or if there is no test. A fault says nothing about
    /// the program and must not be counted as a failure.
    pub fn judge_program(
        &self,
        problem: &Problem,
        program: &Program,
        tests: &[TestCase],
        stop: Stop,
    ) -> Result<Report, Fault> {
        let report = self.judge_tests(problem, program, tests, stop);
        if report.is_err() {
            add(&self.counters.faults);
        }
        report
    }

    /// Judges many programs on up to `workers` threads; the results come in the order of the jobs.
    pub fn judge_many(&self, jobs: &[Job<'_>], workers: usize) -> Vec<Result<Report, Fault>> {
        map_in_order(jobs.to_vec(), workers, |job| {
            let (language, source) = (job.language, job.code);
            let program = Program { language, source };
            self.judge_program(job.problem, &program, job.tests, job.stop)
        })
    }

    fn judge_tests(
        &self,
        problem: &Problem,
        program: &Program,
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
        let limits = self.limits(problem, program.language)?;
        let unusable = |source| Fault::Checker {
            problem: problem.id.clone(),
            source,
        };
        let mut results = Vec::with_capacity(tests.len());
        // Made when the first test has to be run, not for a program whose every outcome is remembered.
        let made = OnceCell::new();
        // A program that has exited with status 0 once, or passed the check once, parses; so does one that has been
        // compiled.
        let mut parses = !program.is_python();
        for (index, test) in tests.iter().enumerate() {
            let name = test_name(test, index);
            let fault = |(tries, source)| Fault::Execution {
                problem: problem.id.clone(),
                test: name.clone(),
                tries,
                source,
            };
            let ran = self
                .ran(program, &made, problem.function.as_deref(), test, &limits)
                .map_err(fault)?;
            let ran = match ran {
                Tried::Ran(ran) => ran,
                Tried::CompileError(message) => {
                    return Ok(self.compile_error(tests, &never_ran(), &message));
                }
            };
            let outcome = &ran.outcome;
            parses |= outcome.ending == Ending::Exited(0);
            if !parses && may_be_compile_error(outcome) {
                match self.syntax(program, &limits).map_err(fault)? {
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

    fn limits(&self, problem: &Problem, language: &str) -> Result<Limits, Fault> {
        let factor = match self.config.language_time_factors.get(language) {
            Some(factor) => *factor,
            None => self
                .executor
                .time_factor(language)
                .map_err(|source| Fault::Language {
                    problem: problem.id.clone(),
                    language: language.to_owned(),
                    tries: 1,
                    source,
                })?,
        };
        self.config.limits_with(problem, factor)
    }

    /// Makes the program ready, or remembers that it does not compile.
    fn make<'a>(
        &'a self,
        program: &Program<'a>,
        limits: &Limits,
    ) -> Result<Compiled<'a>, (u32, BoxError)> {
        if program.is_python() {
            return Ok(Compiled::Program(self.executor.candidate(program.source)));
        }
        let key = self.cache.is_some().then(|| Key::syntax(program, limits));
        if let Some(Value::Syntax(Some(message))) = self.remembered(key.as_ref()) {
            return Ok(Compiled::Error(message));
        }
        let made = self.retrying(limits, |_| {
            add(&self.counters.syntax_checks);
            self.executor.compile(*program)
        })?;
        if let Compiled::Error(message) = &made {
            self.remember(key, || Value::Syntax(Some(message.clone())));
        }
        Ok(made)
    }

    /// Runs the program or calls its function, or remembers having done so.
    fn ran<'a>(
        &'a self,
        program: &Program<'a>,
        made: &OnceCell<Box<dyn Candidate + 'a>>,
        function: Option<&str>,
        test: &TestCase,
        limits: &Limits,
    ) -> Result<Tried, (u32, BoxError)> {
        let key = self
            .cache
            .is_some()
            .then(|| Key::run(program, function, &test.input, limits));
        if let Some(Value::Ran(ran)) = self.remembered(key.as_ref()) {
            return Ok(Tried::Ran(ran));
        }
        let candidate = match made.get() {
            Some(candidate) => candidate,
            None => match self.make(program, limits)? {
                Compiled::Program(candidate) => made.get_or_init(|| candidate),
                Compiled::Error(message) => return Ok(Tried::CompileError(message)),
            },
        };
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
        Ok(Tried::Ran(ran))
    }

    /// Checks whether the program parses, or remembers having checked it.
    fn syntax(
        &self,
        program: &Program,
        limits: &Limits,
    ) -> Result<Option<String>, (u32, BoxError)> {
        let key = self.cache.is_some().then(|| Key::syntax(program, limits));
        if let Some(Value::Syntax(message)) = self.remembered(key.as_ref()) {
            return Ok(message);
        }
        let message = self.retrying(limits, |limits| {
            add(&self.counters.syntax_checks);
            self.executor.syntax_check(program.source, limits)
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

/// What came of a test.
enum Tried {
    Ran(Arc<Ran>),
    /// There is nothing to run.
    CompileError(String),
}

/// Stands for the runs of a program that there is none of.
fn never_ran() -> Ran {
    Ran {
        outcome: Outcome {
            ending: Ending::Exited(1),
            stdout: Vec::new(),
            stderr: Vec::new(),
            cpu: Duration::ZERO,
            wall: Duration::ZERO,
            peak_memory_bytes: None,
        },
        returned: None,
        returned_bytes: 0,
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
