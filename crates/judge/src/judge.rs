//! Program × tests → a verdict for each.
//!
//! Every verdict is formed here, in the trusted process, from how the program ended and from the bytes it wrote to
//! stdout. What it wrote to stderr is shown to people and models; it decides only between two ways of failing. The
//! expected output never reaches the program.
//!
//! What this does not do: choose tests, write feedback, give rewards.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use rlef_problems::{Problem, TestCase};
use rlef_sandbox::{Ending, Limits, Outcome, Program, Returned};
use serde::{Deserialize, Serialize};

use crate::cache::{Cache, Ran};
use crate::compare::usable;
use crate::config::JudgeConfig;
use crate::executor::Executor;
use crate::fault::Fault;
use crate::judging::Judging;
use crate::parallel::map_in_order;
use crate::report::{Detail, Report, TestResult, Verdict};
use crate::validator::Validators;
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
    /// Runs made again because the first ended a little after its time was up.
    pub confirmations: u64,
    /// Runs of output validators.
    pub validations: u64,
    /// Tries that ended in a fault, those that a retry made good included.
    pub failed_tries: u64,
    /// Faults returned to the caller after all retries.
    pub faults: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) runs: AtomicU64,
    pub(crate) syntax_checks: AtomicU64,
    pub(crate) cache_hits: AtomicU64,
    pub(crate) confirmations: AtomicU64,
    pub(crate) validations: AtomicU64,
    pub(crate) failed_tries: AtomicU64,
    pub(crate) faults: AtomicU64,
}

/// Judges programs; shared by any number of threads.
pub struct Judge {
    pub(crate) executor: Box<dyn Executor>,
    pub(crate) config: JudgeConfig,
    pub(crate) cache: Option<Mutex<Cache>>,
    pub(crate) counters: Counters,
    pub(crate) validators: Validators,
    /// Read by whoever runs a program, written to by whoever must run one alone.
    pub(crate) gate: RwLock<()>,
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
            validators: Validators::new(),
            gate: RwLock::new(()),
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
            confirmations: read(&self.counters.confirmations),
            validations: read(&self.counters.validations),
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
    /// [`Fault::Limits`], [`Fault::Calls`] or [`Fault::Checker`]; [`Fault::Validator`] or [`Fault::NoValidator`] if its
    /// output validator cannot be run, as far as that is known without making it ready ([`Judge::ready`]).
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
        })?;
        self.check_validator(problem)
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
        self.judging(problem, *program).tests(tests, stop)
    }

    /// A program on a problem, to be judged on several lists of tests: as so many calls of [`Judge::judge_program`], but
    /// it is compiled only once.
    pub fn judging<'a>(&'a self, problem: &'a Problem, program: Program<'a>) -> Judging<'a> {
        Judging::new(self, problem, program)
    }

    /// Judges many programs on up to `workers` threads; the results come in the order of the jobs.
    pub fn judge_many(&self, jobs: &[Job<'_>], workers: usize) -> Vec<Result<Report, Fault>> {
        map_in_order(jobs.to_vec(), workers, |job| {
            let (language, source) = (job.language, job.code);
            let program = Program { language, source };
            self.judge_program(job.problem, &program, job.tests, job.stop)
        })
    }

    pub(crate) fn compile_error(&self, tests: &[TestCase], ran: &Ran, message: &str) -> Report {
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

    pub(crate) fn result(
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

    pub(crate) fn limits(&self, problem: &Problem, language: &str) -> Result<Limits, Fault> {
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
}

/// Stands for the runs of a program that there is none of.
pub(crate) fn never_ran() -> Ran {
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

pub(crate) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn test_name(test: &TestCase, index: usize) -> String {
    if test.name.is_empty() {
        (index + 1).to_string()
    } else {
        test.name.clone()
    }
}
