//! What a problem must fulfil beyond its types.

mod function;
mod name;
mod values;

pub(crate) use name::is_hidden;

use crate::{Checker, CheckerError, Problem, Solution, TestCase};
use serde::de::IgnoredAny;
use std::collections::HashSet;

/// Verdicts that a solution may name; `NOT_AC` is any failure.
pub const VERDICTS: [&str; 8] = ["AC", "WA", "RTE", "TLE", "MLE", "OLE", "CE", "NOT_AC"];

/// Longest time limit, in seconds: a day. Beyond it, sums of durations could overflow.
const LONGEST_S: f64 = 86_400.0;

/// A field of a problem that makes no sense.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("field `{field}`: {problem}")]
pub struct Invalid {
    /// The field, as in `wrong_solutions[2].expected`.
    pub field: String,
    /// What is wrong and what would be right.
    pub problem: String,
}

fn invalid<T>(field: impl Into<String>, problem: impl Into<String>) -> Result<T, Invalid> {
    Err(Invalid {
        field: field.into(),
        problem: problem.into(),
    })
}

impl Problem {
    /// Checks everything that the types do not: an id and a statement, limits above 0, both lists of tests filled and
    /// their names unique, no characters in ids and names of tests that cannot be seen, solutions whose verdict fits
    /// their list, tolerances in their range, and for a function arguments that Python can read and results that a
    /// program can return. A `custom` checker is valid here; judging with it is an error.
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.id.is_empty() {
            return invalid("id", "is empty");
        }
        if let Some(what) = name::hidden(&self.id).or_else(|| name::blank(&self.id)) {
            return invalid("id", what);
        }
        if self.statement.trim().is_empty() {
            return invalid("statement", "is empty; the model would be told nothing");
        }
        if !(self.time_limit_s > 0.0 && self.time_limit_s <= LONGEST_S) {
            return invalid(
                "time_limit_s",
                format!(
                    "is {}; must be above 0, at most {LONGEST_S}",
                    self.time_limit_s
                ),
            );
        }
        if self.memory_limit_mb == 0 {
            return invalid("memory_limit_mb", "is 0; must be above 0");
        }
        match self.checker.check() {
            Err(error @ CheckerError::Tolerance { field, .. }) => {
                return invalid(format!("checker.{field}"), error.to_string());
            }
            Err(error @ CheckerError::Group) => {
                return invalid("checker.groups", error.to_string());
            }
            _ => {}
        }
        if let Checker::Validator(validator) = &self.checker
            && let Some((field, problem)) = validator.wrong()
        {
            return invalid(field, problem);
        }
        self.check_function()?;
        check_tests("public_tests", &self.public_tests)?;
        check_tests("private_tests", &self.private_tests)?;
        check_names("generated_tests", &self.generated_tests)?;
        check_solutions("solutions", &self.solutions, true)?;
        check_solutions("wrong_solutions", &self.wrong_solutions, false)
    }
}

impl Problem {
    /// A function and the checker for values belong together, and its tests are JSON that some program can pass.
    fn check_function(&self) -> Result<(), Invalid> {
        let by_value = matches!(self.checker, Checker::Value { .. });
        let Some(called) = &self.function else {
            return if by_value {
                invalid(
                    "checker",
                    "compares values, but there is no `function` to return any",
                )
            } else {
                Ok(())
            };
        };
        if !by_value {
            return invalid(
                "checker",
                "must be of kind `value`, as the tests call a function",
            );
        }
        if let Some(what) = called.split('.').find_map(function::unusable) {
            return invalid("function", what);
        }
        for (list, tests) in [
            ("public_tests", &self.public_tests),
            ("private_tests", &self.private_tests),
            ("generated_tests", &self.generated_tests),
        ] {
            for (at, test) in tests.iter().enumerate() {
                let array: Result<Vec<IgnoredAny>, _> = serde_json::from_str(&test.input);
                if let Err(error) = array {
                    let what = format!("must be the arguments as a JSON array: {error}");
                    return invalid(format!("{list}[{at}].input"), what);
                }
                if let Err(what) = values::check_arguments(&test.input) {
                    return invalid(format!("{list}[{at}].input"), what);
                }
                let value: Result<IgnoredAny, _> = serde_json::from_str(&test.output);
                if let Err(error) = value {
                    let what = format!("must be JSON: {error}");
                    return invalid(format!("{list}[{at}].output"), what);
                }
                if let Err(what) = values::check_expected(&test.output) {
                    return invalid(format!("{list}[{at}].output"), what);
                }
            }
        }
        Ok(())
    }
}

fn check_tests(list: &str, tests: &[TestCase]) -> Result<(), Invalid> {
    if tests.is_empty() {
        return invalid(list, "is empty; a problem needs public and private tests");
    }
    check_names(list, tests)
}

fn check_names(list: &str, tests: &[TestCase]) -> Result<(), Invalid> {
    let mut names = HashSet::new();
    for (at, test) in tests.iter().enumerate() {
        if let Some(what) = name::hidden(&test.name) {
            return invalid(format!("{list}[{at}].name"), what);
        }
        // A test without a name is known by its place.
        if !test.name.is_empty() && !names.insert(&test.name) {
            return invalid(
                format!("{list}[{at}].name"),
                format!("`{}` is the name of an earlier test", test.name),
            );
        }
    }
    Ok(())
}

fn check_solutions(list: &str, solutions: &[Solution], right: bool) -> Result<(), Invalid> {
    for (at, solution) in solutions.iter().enumerate() {
        let expected = solution.expected.as_str();
        if !VERDICTS.contains(&expected) {
            let known = VERDICTS.join(", ");
            return invalid(
                format!("{list}[{at}].expected"),
                format!("`{expected}` is no verdict; known: {known}"),
            );
        }
        if (expected == "AC") != right {
            let other = if right {
                "wrong_solutions"
            } else {
                "solutions"
            };
            return invalid(
                format!("{list}[{at}].expected"),
                format!("is `{expected}`; it belongs in `{other}`"),
            );
        }
        if solution.code.trim().is_empty() {
            return invalid(format!("{list}[{at}].code"), "is empty");
        }
    }
    Ok(())
}
