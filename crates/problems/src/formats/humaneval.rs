//! HumanEval, HumanEval+, MBPP and MBPP+: a function a problem, tested by Python code that is read as data (see
//! [`super::asserts`]). The releases of EvalPlus with `base_input` and `plus_input` name no expected values, which would
//! have to be computed; the ones with a field `test` (`evalplus/humanevalplus`, `evalplus/mbppplus`) hold both.

use super::asserts::{Call, calls, tabled};
use super::functions::{named, solution, split_tests};
use crate::import::{ImportError, ImportOptions, id_of};
use crate::records::{Convert, Converted, FieldError, Record, RecordRows};
use crate::{Checker, Problem, TestCase};
use serde_json::{Map, Value};
use std::path::Path;

/// Seconds a test, the least that EvalPlus gives.
const TIME_LIMIT_S: f64 = 4.0;

/// Which of the two families.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    HumanEval,
    Mbpp,
}

pub(crate) fn rows(
    path: &Path,
    options: &ImportOptions,
    set: Set,
) -> Result<RecordRows<Functions>, ImportError> {
    let convert = Functions {
        set,
        time_limit_s: options.time_limit_s.unwrap_or(TIME_LIMIT_S),
        memory_limit_mb: options.memory_limit_mb,
        tuples_as_lists: options.tuples_as_lists,
    };
    RecordRows::open(path, options, |_| convert)
}

pub(crate) struct Functions {
    pub(super) set: Set,
    pub(super) time_limit_s: f64,
    pub(super) memory_limit_mb: u64,
    pub(super) tuples_as_lists: bool,
}

impl Convert for Functions {
    fn convert(&self, _row: u64, mut record: Record) -> Converted {
        if record.has("plus_input") && !record.has("test") {
            let message = "comes without expected values, which would have to be computed; take the release with a \
                           field `test` (evalplus/humanevalplus or evalplus/mbppplus on the Hub)";
            return Err(FieldError::new("plus_input", message));
        }
        let mut problem = match self.set {
            Set::HumanEval => self.humaneval(&mut record)?,
            Set::Mbpp => self.mbpp(&mut record)?,
        };
        record.keep(&mut problem.meta, &["source_file"]);
        Ok((problem, Vec::new()))
    }
}

impl Functions {
    fn humaneval(&self, record: &mut Record) -> Result<Problem, FieldError> {
        let id = record.required("task_id")?;
        let prompt = record.required("prompt")?;
        let function = record.required("entry_point")?;
        let code = record.required("test")?;
        let calls = tabled(&code, &function).unwrap_or_else(|| calls(&code));
        let calls = calls.map_err(|what| FieldError::new("test", what))?;
        let checker = checker(&calls)?;
        let tests = self.tests(&calls, "test", &["candidate", &function])?;
        let mut meta = Map::new();
        // Examples stand in the prompt as Python, so tests are looked for as Python would show them.
        let (public_tests, private_tests) =
            split_tests(tests, &examples(&prompt, &function), &mut meta);
        let canonical = record.text("canonical_solution")?.unwrap_or_default();
        let solutions = if canonical.trim().is_empty() {
            Vec::new()
        } else {
            vec![solution(
                "canonical.py",
                format!("{}\n{canonical}", prompt.trim_end()),
            )]
        };
        Ok(Problem {
            id: id_of(&id),
            name: function.clone(),
            statement: format!(
                "Complete the function `{function}`.\n\n```python\n{}\n```\n",
                prompt.trim()
            ),
            function: Some(function),
            public_tests,
            private_tests,
            solutions,
            meta,
            ..self.empty(checker)
        })
    }

    fn mbpp(&self, record: &mut Record) -> Result<Problem, FieldError> {
        let id = match record.take("task_id") {
            Some(Value::Number(number)) => format!("mbpp-{number}"),
            Some(Value::String(id)) if id.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("mbpp-{id}")
            }
            Some(Value::String(id)) => id_of(&id),
            _ => {
                return Err(FieldError::new(
                    "task_id",
                    "is missing; this format needs it",
                ));
            }
        };
        let text = match record.text("text")? {
            Some(text) => text,
            None => record.required("prompt")?,
        };
        if record
            .text("test_setup_code")?
            .is_some_and(|code| !code.trim().is_empty())
        {
            return Err(FieldError::new(
                "test_setup_code",
                "must run before the tests, and tests are read as data here",
            ));
        }
        let mut asserts = texts(record, "test_list")?;
        let count = asserts.len();
        asserts.extend(texts(record, "challenge_test_list")?);
        let mut base = Vec::new();
        for (at, code) in asserts.iter().enumerate() {
            let found =
                calls(code).map_err(|what| FieldError::new(format!("test_list[{at}]"), what))?;
            base.extend(found);
        }
        let function = match base.first() {
            Some(call) => call.function.clone(),
            None => return Err(FieldError::new("test_list", "holds no assertion")),
        };
        let plus = match record.text("test")?.filter(|code| !code.trim().is_empty()) {
            None => Vec::new(),
            Some(code) => tabled(&code, &function)
                .unwrap_or_else(|| calls(&code))
                .map_err(|what| FieldError::new("test", what))?,
        };
        let checker = checker(if plus.is_empty() { &base } else { &plus })?;
        let mut public_tests = self.tests(&base, "test_list", &[&function])?;
        let private_tests = if plus.is_empty() {
            // The first is shown with the description, the others are hidden.
            public_tests.split_off(public_tests.len().min(1))
        } else {
            self.tests(&plus, "test", &["candidate", &function])?
        };
        let shown = asserts
            .iter()
            .take(count)
            .next()
            .cloned()
            .unwrap_or_default();
        let code = record.text("code")?.unwrap_or_default();
        Ok(Problem {
            id,
            name: function.clone(),
            statement: format!(
                "{}\n\nThe function is called `{function}`; for example, this holds:\n\n```python\n{}\n```\n",
                text.trim(),
                shown.trim()
            ),
            function: Some(function),
            public_tests: named(public_tests, "public"),
            private_tests: named(private_tests, "private"),
            solutions: if code.trim().is_empty() {
                Vec::new()
            } else {
                vec![solution("code.py", code)]
            },
            ..self.empty(checker)
        })
    }

    fn empty(&self, checker: Checker) -> Problem {
        Problem {
            id: String::new(),
            name: String::new(),
            statement: String::new(),
            time_limit_s: self.time_limit_s,
            memory_limit_mb: self.memory_limit_mb,
            checker,
            function: None,
            public_tests: Vec::new(),
            private_tests: Vec::new(),
            generated_tests: Vec::new(),
            solutions: Vec::new(),
            wrong_solutions: Vec::new(),
            meta: Map::new(),
        }
    }

    fn tests(
        &self,
        calls: &[Call],
        field: &str,
        functions: &[&str],
    ) -> Result<Vec<TestCase>, FieldError> {
        let mut tests = Vec::with_capacity(calls.len());
        for (at, call) in calls.iter().enumerate() {
            let place = || format!("{field}[{at}]");
            if !functions.contains(&call.function.as_str()) {
                return Err(FieldError::new(
                    place(),
                    format!(
                        "calls `{}`, which is not the function to be written",
                        call.function
                    ),
                ));
            }
            let test = call.test(String::new(), self.tuples_as_lists);
            tests.push(test.map_err(|what| FieldError::new(place(), what))?);
        }
        Ok(tests)
    }
}

/// One rule for all tests of a problem: the widest tolerance that all of them allow is the smallest.
fn checker(calls: &[Call]) -> Result<Checker, FieldError> {
    let first = calls.first().map_or((0.0, 0.0), |call| call.tolerance);
    if calls.iter().any(|call| call.tolerance != first) {
        return Err(FieldError::new(
            "test",
            "its assertions have different tolerances, and a problem has one",
        ));
    }
    Ok(Checker::Value {
        abs: first.0,
        rel: first.1,
        numbers_by_value: true,
    })
}

fn texts(record: &mut Record, field: &str) -> Result<Vec<String>, FieldError> {
    let list = record.list(field)?;
    list.into_iter()
        .enumerate()
        .map(|(at, item)| match item {
            Value::String(text) => Ok(text),
            other => Err(crate::records::wrong(
                format!("{field}[{at}]"),
                "a text",
                &other,
            )),
        })
        .collect()
}

/// The examples in a docstring as `[arguments] value` in JSON, to be found by tests.
fn examples(prompt: &str, function: &str) -> String {
    let mut found = String::new();
    let mut lines = prompt.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((_, shown)) = line.split_once(">>>") else {
            continue;
        };
        let Some(value) = lines.peek().map(|value| value.trim()) else {
            continue;
        };
        let assertion = format!("assert {} == {value}", shown.trim());
        if let Ok(calls) = calls(&assertion)
            && let [call] = calls.as_slice()
            && call.function == function
            && let Ok(test) = call.test(String::new(), true)
        {
            found.push_str(&format!("{} {}\n", test.input, test.output));
        }
    }
    found
}
