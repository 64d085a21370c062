//! Tests that are Python: assertions that call a function with literals and compare what it returns with a literal. They
//! become data; nothing is executed, and a test that is more than that is refused.

use super::literal::{Cursor, Literal, Tuples};
use crate::TestCase;

/// A call and what it must return.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) function: String,
    pub(super) arguments: Vec<Literal>,
    pub(super) expected: Literal,
    /// Absolute and relative, as far as the assertion allows one.
    pub(super) tolerance: (f64, f64),
}

impl Call {
    /// The test, with its arguments and value as JSON.
    pub(super) fn test(&self, name: String, tuples_as_lists: bool) -> Result<TestCase, String> {
        let tuples = if tuples_as_lists {
            Tuples::AsArrays
        } else {
            Tuples::Refused
        };
        let mut input = String::new();
        Literal::List(self.arguments.clone()).write_json(tuples, &mut input)?;
        let mut output = String::new();
        self.expected.write_json(Tuples::AsArrays, &mut output)?;
        Ok(TestCase {
            name,
            input,
            output,
        })
    }
}

/// The calls of a text of assertions, as in `def check(candidate):` or a list of lines.
///
/// # Errors
/// The first line that is anything else.
pub(super) fn calls(code: &str) -> Result<Vec<Call>, String> {
    let mut cursor = Cursor::new(code);
    let mut calls = Vec::new();
    loop {
        cursor.blank();
        if cursor.rest.is_empty() {
            return Ok(calls);
        }
        let start = cursor.rest;
        let line = |what: String| {
            let number = code
                .get(..code.len() - start.len())
                .unwrap_or_default()
                .matches('\n')
                .count()
                + 1;
            format!("line {number}: {what}")
        };
        if cursor.word("assert") {
            calls.extend(assertion(&mut cursor).map_err(line)?);
            end_of_line(&mut cursor).map_err(line)?;
        } else if cursor.word("METADATA") {
            if !cursor.take("=") {
                return Err(line("is no assertion".to_owned()));
            }
            cursor.literal().map_err(line)?;
        } else if cursor.word("def")
            || cursor.word("import")
            || cursor.word("from")
            || cursor.word("pass")
        {
            // A function of its own that is called in assertions is met there and refused.
            cursor.rest = cursor
                .rest
                .find('\n')
                .and_then(|end| cursor.rest.get(end..))
                .unwrap_or_default();
        } else if start.starts_with(['"', '\'']) {
            cursor.literal().map_err(line)?;
        } else {
            let shown: String = start.chars().take_while(|&c| c != '\n').take(60).collect();
            return Err(line(format!(
                "`{shown}` is no assertion that compares a call with a literal"
            )));
        }
    }
}

/// After the message, if there is one.
fn end_of_line(cursor: &mut Cursor<'_>) -> Result<(), String> {
    let rest = cursor.rest.trim_start_matches([' ', '\t']);
    let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let line = line.trim_end();
    // The message may be computed; it says nothing about what is right.
    if line.is_empty() || line.starts_with([',', '#', ';']) {
        cursor.rest = after;
        return Ok(());
    }
    Err(follows(line))
}

/// After `assert`; none for one that says nothing.
fn assertion(cursor: &mut Cursor<'_>) -> Result<Option<Call>, String> {
    // Some tests hold `assert True` to be seen when they run.
    let mut ahead = cursor.clone();
    if ahead.word("True") && end_of_line(&mut ahead.clone()).is_ok() {
        *cursor = ahead;
        return Ok(None);
    }
    if cursor.word("abs") {
        return within(cursor).map(Some);
    }
    let mut ahead = cursor.clone();
    if ahead.word("math") && ahead.take(".") && ahead.word("isclose") {
        *cursor = ahead;
        return close(cursor).map(Some);
    }
    let mut ahead = cursor.clone();
    // The literal may stand first.
    if let Ok(expected) = ahead.literal()
        && ahead.take("==")
    {
        *cursor = ahead;
        let (function, arguments) = call(cursor)?;
        return Ok(Some(Call {
            function,
            arguments,
            expected,
            tolerance: (0.0, 0.0),
        }));
    }
    if cursor.clone().word("not") {
        return Err(UNCOMPARED.to_owned());
    }
    let (function, arguments) = call(cursor)?;
    if !(cursor.take("==") || cursor.word("is")) {
        let rest = cursor.rest.trim_start_matches([' ', '\t']);
        let bare = rest.is_empty() || rest.starts_with(['\n', ',', '#']);
        return Err(if bare {
            UNCOMPARED.to_owned()
        } else {
            follows(rest)
        });
    }
    let expected = cursor.literal()?;
    Ok(Some(Call {
        function,
        arguments,
        expected,
        tolerance: (0.0, 0.0),
    }))
}

/// Any value may count as true or false, so this is no value to expect.
const UNCOMPARED: &str = "takes what is returned as true or false without comparing it";

fn follows(rest: &str) -> String {
    let line = rest.lines().next().unwrap_or_default().trim_end();
    format!("`{}` follows", line.chars().take(60).collect::<String>())
}

/// `f(…)` with literals.
fn call(cursor: &mut Cursor<'_>) -> Result<(String, Vec<Literal>), String> {
    let name = cursor
        .name()
        .ok_or_else(|| "compares something else than a call".to_owned())?;
    if [
        "set", "sorted", "list", "tuple", "len", "sum", "str", "round", "all", "any", "math",
        "lambda",
    ]
    .contains(&name)
    {
        return Err(format!(
            "calls `{name}` on what is returned, which is no comparison with a literal"
        ));
    }
    if !cursor.take("(") {
        return Err(format!("`{name}` is not called"));
    }
    let mut arguments = Vec::new();
    loop {
        if cursor.take(")") {
            break;
        }
        arguments.push(
            cursor.literal().map_err(|error| {
                format!("argument {} of `{name}`: {error}", arguments.len() + 1)
            })?,
        );
        if !cursor.take(",") {
            if !cursor.take(")") {
                return Err(format!(
                    "argument {} of `{name}` is no literal value",
                    arguments.len()
                ));
            }
            break;
        }
    }
    Ok((name.to_owned(), arguments))
}

fn tolerance(cursor: &mut Cursor<'_>) -> Result<f64, String> {
    match cursor.literal()? {
        Literal::Float(number) if number.is_finite() && number >= 0.0 => Ok(number),
        Literal::Int(digits) => digits.parse().map_err(|_| "has no tolerance".to_owned()),
        _ => Err("has no tolerance".to_owned()),
    }
}

/// `abs(f(…) - 1.5) < 1e-6`
fn within(cursor: &mut Cursor<'_>) -> Result<Call, String> {
    let wrong =
        || "takes the absolute value of something else than a difference from a literal".to_owned();
    if !cursor.take("(") {
        return Err(wrong());
    }
    let (function, arguments) = call(cursor)?;
    if !cursor.take("-") {
        return Err(wrong());
    }
    let expected = cursor.literal()?;
    if !cursor.take(")") || !(cursor.take("<=") || cursor.take("<")) {
        return Err(wrong());
    }
    let abs = tolerance(cursor)?;
    Ok(Call {
        function,
        arguments,
        expected,
        tolerance: (abs, 0.0),
    })
}

/// `math.isclose(f(…), 1.5, rel_tol=1e-3)`
fn close(cursor: &mut Cursor<'_>) -> Result<Call, String> {
    let wrong = || "calls `isclose` with something else than a call and a literal".to_owned();
    if !cursor.take("(") {
        return Err(wrong());
    }
    let (function, arguments) = call(cursor)?;
    if !cursor.take(",") {
        return Err(wrong());
    }
    let expected = cursor.literal()?;
    // Python's own default.
    let (mut abs, mut rel) = (0.0, 1e-9);
    while cursor.take(",") {
        match cursor.name() {
            Some("rel_tol") if cursor.take("=") => rel = tolerance(cursor)?,
            Some("abs_tol") if cursor.take("=") => abs = tolerance(cursor)?,
            _ => return Err(wrong()),
        }
    }
    if !cursor.take(")") {
        return Err(wrong());
    }
    Ok(Call {
        function,
        arguments,
        expected,
        tolerance: (abs, rel),
    })
}

/// The calls of EvalPlus's tests, which hold their data as `inputs = […]` and `results = […]` and compare in a loop.
/// None: the text is no such test.
pub(super) fn tabled(code: &str, function: &str) -> Option<Result<Vec<Call>, String>> {
    let after = |name: &str| {
        let start = format!("{name} = ");
        let at = code.match_indices(&start).find(|(at, _)| {
            let line = code
                .get(..*at)
                .and_then(|before| before.rsplit('\n').next())
                .unwrap_or_default();
            line.trim().is_empty()
        });
        at.and_then(|(at, _)| code.get(at + start.len()..))
    };
    let inputs = after("inputs")?;
    Some(read_table(code, inputs, after("results"), function))
}

fn read_table(
    code: &str,
    inputs: &str,
    results: Option<&str>,
    function: &str,
) -> Result<Vec<Call>, String> {
    let Some(results) = results else {
        return Err("expected values come from a reference that would have to be run".to_owned());
    };
    let list = |text: &str, name: &str| match Cursor::new(text).literal() {
        Ok(Literal::List(items)) => Ok(items),
        Ok(_) => Err(format!("`{name}` is no list")),
        Err(error) => Err(format!("`{name}`: {error}")),
    };
    let (inputs, results) = (list(inputs, "inputs")?, list(results, "results")?);
    if inputs.len() != results.len() {
        return Err(format!(
            "has {} inputs and {} results",
            inputs.len(),
            results.len()
        ));
    }
    // How they are compared: only the usual way is read.
    let rule = code
        .rsplit_once("zip(inputs, results)")
        .map(|(_, rule)| rule.trim_start_matches(['(', ')', ':', ' ', '\n', '\t']));
    let mut rule = Cursor::new(rule.unwrap_or_default());
    let usual = rule.word("assertion") && rule.take("(");
    let called = rule.name();
    let named = called == Some("candidate") || called == Some(function);
    if !(usual
        && named
        && rule.take("(")
        && rule.take("*")
        && rule.word("inp")
        && rule.take(")")
        && rule.take(",")
        && rule.word("exp")
        && rule.take(","))
    {
        return Err("results are compared by code of its own".to_owned());
    }
    // As EvalPlus does: without a tolerance of its own, floating-point numbers have 1e-6.
    let atol = tolerance(&mut rule)?;
    let abs = if atol == 0.0 { 1e-6 } else { atol };
    inputs
        .into_iter()
        .zip(results)
        .enumerate()
        .map(|(at, (arguments, expected))| match arguments {
            Literal::List(arguments) | Literal::Tuple(arguments) => Ok(Call {
                function: function.to_owned(),
                arguments,
                expected,
                tolerance: (abs, 1e-7),
            }),
            _ => Err(format!(
                "`inputs`, item {}, is no list of arguments",
                at + 1
            )),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(code: &str) -> Vec<(String, String, String)> {
        let calls = calls(code).unwrap_or_else(|error| panic!("{code}: {error}"));
        let test = |call: Call| {
            let test = call.test(String::new(), true).expect("JSON");
            (call.function, test.input, test.output)
        };
        calls.into_iter().map(test).collect()
    }

    #[test]
    fn assertions_become_calls() {
        let code = "METADATA = {'author': 'x'}\n\n\ndef check(candidate):\n    # first\n    assert candidate([1, 2],\n        'a') == (1, [2]), \"why\" + str(1)\n    assert candidate() == False\n    assert candidate(-1.5) is True\n    assert [3] == candidate(None)\n    assert candidate(2) is None # so\n    assert True, 'seen'\n";
        let text = |parts: [&str; 3]| {
            (
                parts[0].to_owned(),
                parts[1].to_owned(),
                parts[2].to_owned(),
            )
        };
        assert_eq!(
            shown(code),
            [
                text(["candidate", "[[1, 2], \"a\"]", "[1, [2]]"]),
                text(["candidate", "[]", "false"]),
                text(["candidate", "[-1.5]", "true"]),
                text(["candidate", "[null]", "[3]"]),
                text(["candidate", "[2]", "null"]),
            ]
        );
        let near =
            calls("assert abs(f(1) - 0.5) < 1e-6\nassert math.isclose(f(2), 3, rel_tol=0.001)")
                .expect("calls");
        assert_eq!(
            (near[0].tolerance, near[1].tolerance),
            ((1e-6, 0.0), (0.0, 0.001))
        );
    }

    #[test]
    fn what_is_more_than_that_is_refused() {
        for (code, words) in [
            (
                "for x in y:\n    assert f(x) == 1",
                ["line 1", "for x in y"],
            ),
            (
                "assert f(1) == 1\nassert f(g(2)) == 1",
                ["line 2", "argument 1"],
            ),
            ("assert set(f(1)) == {1}", ["line 1", "`set`"]),
            ("assert f(1) == 1 + 1", ["line 1", "follows"]),
            ("assert f(1) > 1", ["line 1", "follows"]),
            ("assert f(1)[0] == 1", ["line 1", "follows"]),
            ("assert f(1) == 1 and f(2) == 2", ["line 1", "follows"]),
            ("assert not f(1) == 1", ["line 1", "true or false"]),
            ("assert not f(1)", ["line 1", "true or false"]),
            ("assert f(1), 'why'", ["line 1", "true or false"]),
            ("x = 1\nassert f(1) == 1", ["line 1", "x = 1"]),
            ("assert f(n=1) == 1", ["line 1", "argument 1"]),
            ("assert x == 1", ["line 1", "not called"]),
            ("assert abs(f(1)) < 1", ["line 1", "absolute"]),
        ] {
            let error = calls(code).expect_err(code);
            assert!(
                words.iter().all(|word| error.contains(word)),
                "{code}: {error}"
            );
        }
    }

    #[test]
    fn tables_of_inputs_and_results_are_read() {
        let code = "import numpy as np\n\ndef assertion(out, exp, atol):\n    pass\n\ndef check(candidate):\n    inputs = [[[1, 2], 0.5], [[], 1]]\n    results = [True, [1.5]]\n    for i, (inp, exp) in enumerate(zip(inputs, results)):\n        assertion(candidate(*inp), exp, 0)\n";
        let calls = tabled(code, "f").expect("a table").expect("calls");
        assert_eq!(calls.len(), 2);
        assert_eq!(calls[1].expected, Literal::List(vec![Literal::Float(1.5)]));
        assert_eq!(calls[0].tolerance, (1e-6, 1e-7));
        for (from, to, word) in [
            ("results = [True, [1.5]]", "", "reference"),
            (
                "candidate(*inp), exp",
                "set(candidate(*inp)), exp",
                "code of its own",
            ),
            ("[True, [1.5]]", "[True]", "2 inputs and 1 results"),
            ("[[], 1]]", "[[], inf]]", "`inputs`"),
            ("[[], 1]]", "3]", "item 2"),
        ] {
            let error = tabled(&code.replace(from, to), "f")
                .expect("a table")
                .expect_err(to);
            assert!(error.contains(word), "{error}");
        }
        assert!(tabled("assert f(1) == 2", "f").is_none());
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(code in "(assert |not |f\\(|abs\\(|==|<|-|,|\\)|[\\[\\]'\"1.e #\n]|inputs = |results = |zip\\(inputs, results\\)|\\PC){0,40}") {
            let _ = calls(&code);
            let _ = tabled(&code, "f");
        }
    }
}
