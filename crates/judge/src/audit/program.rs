//! One program on all tests of its problem.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rlef_problems::{Problem, Solution, TestCase};
use rlef_sandbox::Program;

use super::AuditConfig;
use crate::fault::Fault;
use crate::judge::{Judge, Stop};
use crate::judging::Judging;
use crate::report::{TestResult, Verdict};

/// What a program did on one test.
#[derive(Debug, Clone)]
pub(super) struct OnTest {
    pub(super) verdict: Verdict,
    /// The first difference, the exit status …
    pub(super) detail: String,
    pub(super) cpu: Duration,
    /// Of what it printed or returned.
    output: u64,
}

/// What a program did on the tests; none where it was not run any more.
#[derive(Debug, Clone)]
pub(super) struct Run(pub(super) Vec<Option<OnTest>>);

impl Run {
    /// The first test that is not accepted, by its place.
    pub(super) fn first_failure(&self) -> Option<(usize, &OnTest)> {
        let ran = self.0.iter().enumerate();
        ran.filter_map(|(place, test)| Some((place, test.as_ref()?)))
            .find(|(_, test)| test.verdict != Verdict::Accepted)
    }

    /// As a judge of packages has it: that of the first failure.
    pub(super) fn verdict(&self) -> Verdict {
        self.first_failure()
            .map_or(Verdict::Accepted, |(_, test)| test.verdict)
    }

    /// The first test whose output is not the same in both.
    pub(super) fn first_difference(&self, other: &Self) -> Option<usize> {
        let pairs = self.0.iter().zip(&other.0);
        pairs
            .map(|pair| matches!(pair, (Some(a), Some(b)) if a.output != b.output))
            .position(|differs| differs)
    }

    pub(super) fn slowest(&self) -> Option<(usize, Duration)> {
        let ran = self.0.iter().enumerate();
        ran.filter_map(|(place, test)| Some((place, test.as_ref()?.cpu)))
            .max_by_key(|(place, cpu)| (*cpu, std::cmp::Reverse(*place)))
    }
}

/// What came of running a program as often as it should be.
#[derive(Debug)]
pub(super) enum Tried {
    /// Once or more.
    Ran(Vec<Run>),
    /// The machinery failed.
    Fault(Fault),
    /// Its language is not run here.
    NotRunnable,
    /// There were enough programs without it.
    LeftOut,
    /// The audit was stopped before it was through.
    Stopped,
}

/// Runs the program `repeats` times on all tests.
pub(super) fn run(
    judge: &Judge,
    problem: &Problem,
    solution: &Solution,
    tests: &[TestCase],
    repeats: u32,
    config: &AuditConfig,
    stop: &AtomicBool,
) -> Tried {
    let mut runs = Vec::new();
    let language = solution.language.to_ascii_lowercase();
    let program = Program {
        language: &language,
        source: &solution.code,
    };
    // Compiled once for all of them.
    let judging = judge.judging(problem, program);
    for _ in 0..repeats.max(1) {
        match once(&judging, tests, config, stop) {
            Ok(Some(run)) => runs.push(run),
            Ok(None) => return Tried::Stopped,
            Err(fault) => return Tried::Fault(fault),
        }
    }
    Tried::Ran(runs)
}

/// Tests that a program which has failed one is run on before it is looked at again.
const AT_ONCE: usize = 16;

/// All tests are run, as each verdict tells something of its test; only a program that met the time limit often enough
/// is left in peace. None: it was stopped.
fn once(
    judging: &Judging,
    tests: &[TestCase],
    config: &AuditConfig,
    stop: &AtomicBool,
) -> Result<Option<Run>, Fault> {
    let mut done: Vec<Option<OnTest>> = Vec::with_capacity(tests.len());
    let mut time_limits = 0;
    while done.len() < tests.len() {
        if stop.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let rest = tests.get(done.len()..).unwrap_or_default();
        // The first failure tells whether it is a slow one; others are let run on, though not to the end at once, as
        // they may become slow.
        let (when, rest) = match done.last() {
            Some(Some(last)) if last.verdict != Verdict::TimeLimit => {
                (Stop::Never, rest.get(..AT_ONCE).unwrap_or(rest))
            }
            _ => (Stop::AtFirstFailure, rest),
        };
        let report = judging.tests(rest, when)?;
        if report.results.is_empty() {
            break;
        }
        for result in &report.results {
            time_limits += usize::from(result.verdict == Verdict::TimeLimit);
            done.push(Some(on_test(result)));
        }
        if time_limits >= config.time_limits.max(1) {
            break;
        }
    }
    done.resize(tests.len(), None);
    Ok(Some(Run(done)))
}

fn on_test(result: &TestResult) -> OnTest {
    let mut hasher = DefaultHasher::new();
    (&result.stdout, result.stdout_len, &result.returned).hash(&mut hasher);
    OnTest {
        verdict: result.verdict,
        detail: result.detail.to_string(),
        cpu: result.cpu,
        output: hasher.finish(),
    }
}
