//! One program on one problem: test by test to a report.

use std::cell::Cell;

use rlef_problems::{Checker, Problem, TestCase};
use rlef_sandbox::{Ending, Limits, Program};

use crate::cache::Ran;
use crate::compare::compare;
use crate::ending::{ending_verdict, may_be_compile_error};
use crate::fault::Fault;
use crate::judge::{Judge, Stop, add, never_ran, test_name};
use crate::report::{Detail, Report, Verdict};
use crate::running::{Made, Tried};
use crate::value;

/// A program that is to be judged on the tests of a problem, made by [`Judge::judging`].
pub struct Judging<'a> {
    judge: &'a Judge,
    problem: &'a Problem,
    program: Program<'a>,
    /// Filled when the first test has to be run, not for a program whose every outcome is remembered.
    made: Made<'a>,
    /// A program that has exited with status 0 once, or passed the check once, parses; so does one that has been compiled.
    parses: Cell<bool>,
}

impl<'a> Judging<'a> {
    pub(crate) fn new(judge: &'a Judge, problem: &'a Problem, program: Program<'a>) -> Self {
        Self {
            judge,
            problem,
            program,
            made: Made::new(),
            parses: Cell::new(!program.is_python()),
        }
    }

    /// As [`Judge::judge_program`].
    ///
    /// # Errors
    /// As there.
    pub fn tests(&self, tests: &[TestCase], stop: Stop) -> Result<Report, Fault> {
        let report = self.judged(tests, stop);
        if report.is_err() {
            add(&self.judge.counters.faults);
        }
        report
    }

    fn judged(&self, tests: &[TestCase], stop: Stop) -> Result<Report, Fault> {
        let (judge, problem, program) = (self.judge, self.problem, &self.program);
        if tests.is_empty() {
            return Err(Fault::NoTests {
                problem: problem.id.clone(),
            });
        }
        // Asked before anything runs: a program that crashes must not hide that its output could not be judged.
        judge.check(problem)?;
        let limits = judge.limits(problem, program.language)?;
        let mut results = Vec::with_capacity(tests.len());
        for (index, test) in tests.iter().enumerate() {
            let name = test_name(test, index);
            let fault = |(tries, source)| Fault::Execution {
                problem: problem.id.clone(),
                test: name.clone(),
                tries,
                source,
            };
            let function = problem.function.as_deref();
            let ran = judge.ran(program, &self.made, function, test, &limits);
            let ran = match ran.map_err(fault)? {
                Tried::Ran(ran) => ran,
                Tried::CompileError(message) => {
                    return Ok(judge.compile_error(tests, &never_ran(), &message));
                }
            };
            let outcome = &ran.outcome;
            if outcome.ending == Ending::Exited(0) {
                self.parses.set(true);
            }
            if !self.parses.get() && may_be_compile_error(outcome) {
                match judge.syntax(program, &limits).map_err(fault)? {
                    Some(message) => return Ok(judge.compile_error(tests, &ran, &message)),
                    None => self.parses.set(true),
                }
            }
            let (verdict, detail) = self.verdict(test, &name, &ran, &limits)?;
            results.push(judge.result(name, index, verdict, detail, &ran));
            if verdict != Verdict::Accepted && stop == Stop::AtFirstFailure {
                break;
            }
        }
        Ok(Report {
            results,
            total: tests.len(),
        })
    }

    fn verdict(
        &self,
        test: &TestCase,
        name: &str,
        ran: &Ran,
        limits: &Limits,
    ) -> Result<(Verdict, Detail), Fault> {
        let (problem, outcome) = (self.problem, &ran.outcome);
        let unusable = |source| Fault::Checker {
            problem: problem.id.clone(),
            source,
        };
        match (ending_verdict(outcome, limits), &ran.returned) {
            (Some(failure), _) => Ok(failure),
            (None, Some(returned)) => {
                value::compare(&problem.checker, &test.output, returned).map_err(unusable)
            }
            (None, None) => match problem.checker.for_test(&test.name) {
                Checker::Validator(validator) => {
                    (self.judge).validated(problem, validator, test, name, &outcome.stdout)
                }
                checker => compare(checker, &test.output, &outcome.stdout).map_err(unusable),
            },
        }
    }
}
