//! What the data sets of Python problems have in common: limits in words, which tests are shown, solutions as lists.

use crate::records::{FieldError, wrong};
use crate::{Solution, TestCase};
use serde_json::{Map, Value};

/// The most tests that are looked for in a statement; the examples are the first ones.
const MOST_SHOWN: usize = 10;

/// Tests of a data set that does not say which ones may be shown: public are the first ones whose input and output stand
/// in the statement, in this order, and where there is none of these the first. One at least stays private, if there
/// are two. How it was decided goes to `meta`.
pub(super) fn split_tests(
    mut tests: Vec<TestCase>,
    statement: &str,
    meta: &mut Map<String, Value>,
) -> (Vec<TestCase>, Vec<TestCase>) {
    let statement = folded(statement);
    let shown = |test: &TestCase| {
        // What is longer is no example, and looking for it would take long.
        if test.input.len() + test.output.len() > 4096 {
            return false;
        }
        let (input, output) = (folded(&test.input), folded(&test.output));
        if input.is_empty() || output.is_empty() {
            return false;
        }
        statement.match_indices(&input).take(20).any(|(at, _)| {
            statement
                .get(at + input.len()..)
                .is_some_and(|rest| rest.contains(&output))
        })
    };
    let mut count = tests
        .iter()
        .take(MOST_SHOWN)
        .take_while(|test| shown(test))
        .count();
    count = count.min(tests.len().saturating_sub(1));
    meta.insert(
        "public_tests_from".to_owned(),
        if count > 0 { "statement" } else { "first" }.into(),
    );
    if count == 0 {
        count = tests.len().min(1);
    }
    let private = tests.split_off(count);
    (named(tests, "public"), named(private, "private"))
}

/// With names by their kind and place.
pub(super) fn named(mut tests: Vec<TestCase>, kind: &str) -> Vec<TestCase> {
    for (at, test) in tests.iter_mut().enumerate() {
        test.name = format!("{kind}/{}", at + 1);
    }
    tests
}

/// White space as single blanks.
fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Accepted Python programs from a list of texts; empty ones are left out.
pub(super) fn solutions(value: Option<Value>, field: &str) -> Result<Vec<Solution>, FieldError> {
    let list = match value {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(wrong(field, "a list of programs", &other)),
    };
    let mut all = Vec::new();
    for (at, code) in list.into_iter().enumerate() {
        match code {
            Value::String(code) if code.trim().is_empty() => {}
            Value::String(code) => all.push(solution(&format!("solution-{}.py", at + 1), code)),
            other => return Err(wrong(format!("{field}[{at}]"), "a text", &other)),
        }
    }
    Ok(all)
}

pub(super) fn solution(file: &str, code: String) -> Solution {
    Solution {
        file: file.to_owned(),
        language: "python".to_owned(),
        class: None,
        expected: "AC".to_owned(),
        code,
    }
}

/// A statement with the code to start from.
pub(super) fn with_starter(statement: &str, starter: &str) -> String {
    if starter.trim().is_empty() {
        return statement.to_owned();
    }
    format!(
        "{}\n\n## Starter code\n\n```python\n{}\n```\n",
        statement.trim_end(),
        starter.trim_end()
    )
}

/// `2.0 seconds`, `256.0 megabytes`, `1500 ms`: the number in seconds or MiB. None where it is no such text.
pub(super) fn quantity(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let factor = match unit
        .trim()
        .to_ascii_lowercase()
        .trim_end_matches(['.', 's'])
    {
        "" | "second" | "sec" | "megabyte" | "mb" | "mib" | "mebibyte" => 1.0,
        "m" | "millisecond" | "msec" => 0.001,
        "kilobyte" | "kb" | "kib" => 1.0 / 1024.0,
        "gigabyte" | "gb" | "gib" => 1024.0,
        "byte" | "b" => 1.0 / f64::from(1 << 20),
        _ => return None,
    };
    let value = number * factor;
    (value > 0.0 && value.is_finite()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(input: &str, output: &str) -> TestCase {
        TestCase {
            name: String::new(),
            input: input.to_owned(),
            output: output.to_owned(),
        }
    }

    #[test]
    fn examples_of_the_statement_are_public() {
        let statement = "Sum.\n\nInput\n1 2\n\nOutput\n3\n\nInput\n5  5\nOutput\n10\n";
        let tests = vec![
            test("1 2\n", "3\n"),
            test("5 5\n", "10\n"),
            test("9 9\n", "18\n"),
            test("", "0\n"),
        ];
        let mut meta = Map::new();
        let (public, private) = split_tests(tests.clone(), statement, &mut meta);
        assert_eq!((public.len(), private.len()), (2, 2));
        assert_eq!(private[0].name, "private/1");
        assert_eq!(meta["public_tests_from"], "statement");
        // The output must come after the input.
        let (public, _) = split_tests(vec![test("10", "3"), test("1", "2")], statement, &mut meta);
        assert_eq!(public.len(), 1);
        assert_eq!(meta["public_tests_from"], "first");
        let (public, private) = split_tests(tests[..1].to_vec(), statement, &mut meta);
        assert_eq!((public.len(), private.len()), (1, 0));
        assert_eq!(split_tests(Vec::new(), "", &mut meta), (vec![], vec![]));
    }

    #[test]
    fn quantities_have_units() {
        for (text, wanted) in [
            ("2.0 seconds", Some(2.0)),
            ("1 second", Some(1.0)),
            ("500 ms", Some(0.5)),
            ("256.0 megabytes", Some(256.0)),
            ("1 GB", Some(1024.0)),
            ("65536 KB", Some(64.0)),
            ("", None),
            ("None", None),
            ("3 apples", None),
            ("0 seconds", None),
        ] {
            assert_eq!(quantity(text), wanted, "{text}");
        }
    }
}
