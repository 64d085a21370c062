//! Rows in the shapes of the data sets, written for these tests.

use super::apps::{self, Apps};
use super::humaneval::{self, Functions};
use crate::import::Imported;
use crate::records::{Convert, Converted, FieldError, Record};
use crate::{Checker, Format, ImportOptions, import};
use base64::Engine as _;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::Write as _;

fn record(value: Value) -> Record {
    match value {
        Value::Object(fields) => Record::new(fields),
        _ => panic!("an object"),
    }
}

/// Everything that a file of one row gives.
fn imported(value: &Value, options: &ImportOptions) -> Result<(Format, Imported), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("test.jsonl");
    std::fs::write(&file, format!("{value}\n")).expect("written");
    let mut all = Vec::new();
    let mut keep = |imported: Imported| {
        all.push(imported);
        Ok(())
    };
    let summary =
        import(&file, options, &mut keep, &mut |_| {}).map_err(|error| error.to_string())?;
    Ok((summary.formats[0], all.remove(0)))
}

fn pickled(json: &str) -> String {
    // As `pickle.dumps(text)` of Python 3 writes a long text: outside of its frame.
    let mut pickle = b"\x80\x04X".to_vec();
    pickle.extend_from_slice(&u32::try_from(json.len()).expect("short").to_le_bytes());
    pickle.extend_from_slice(json.as_bytes());
    pickle.extend_from_slice(b"\x94.");
    packed(&pickle)
}

fn packed(pickle: &[u8]) -> String {
    let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(pickle).expect("packed");
    base64::engine::general_purpose::STANDARD.encode(writer.finish().expect("packed"))
}

fn livecodebench() -> Value {
    json!({
        "question_title": "A. Sum", "question_content": "Add.", "platform": "codeforces", "question_id": "1873_A",
        "contest_id": "1873", "contest_date": "2023-08-21T00:00:00", "starter_code": "", "difficulty": "easy",
        "public_test_cases": json!([{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]).to_string(),
        "private_test_cases": pickled(&json!([{"input": "2 2\n", "output": "4\n", "testtype": "stdin"}]).to_string()),
        "metadata": "{}",
    })
}

#[test]
fn livecodebench_with_pickled_tests() {
    let (format, found) = imported(&livecodebench(), &ImportOptions::default()).expect("a problem");
    assert_eq!(format, Format::LiveCodeBench);
    assert_eq!(
        (found.problem.id.as_str(), found.problem.time_limit_s),
        ("1873_A", 6.0)
    );
    assert_eq!(found.problem.private_tests[0].output, "4\n");
    assert_eq!(found.problem.meta["contest_date"], "2023-08-21T00:00:00");
    let same = |a: &str, b: &str| {
        found
            .problem
            .checker
            .compare(a.as_bytes(), b.as_bytes())
            .expect("usable")
            .is_same()
    };
    assert!(same("1.0 2\n", "1 2.00") && !same("1 2", "1\n2") && !same("0.1", "0.10000001"));
}

#[test]
fn livecodebench_with_a_function() {
    let mut row = livecodebench();
    let test = |input: &str, output: &str| {
        json!([{"input": input, "output": output, "testtype": "functional"}]).to_string()
    };
    row["public_test_cases"] = test("[1, 2]\n\"a\"", "[2, 1]").into();
    row["private_test_cases"] = test("[]\n\"b\"", "[]").into();
    row["metadata"] = json!({"func_name": "turn"}).to_string().into();
    row["starter_code"] = "class Solution:\n    def turn(self, x, y):\n        ".into();
    let (_, found) = imported(&row, &ImportOptions::default()).expect("a problem");
    assert_eq!(found.problem.function.as_deref(), Some("turn"));
    assert_eq!(found.problem.public_tests[0].input, "[[1, 2], \"a\"]");
    assert!(matches!(found.problem.checker, Checker::Value { .. }));
    assert!(found.problem.statement.contains("def turn(self"));
    row["metadata"] = "{}".into();
    assert!(
        imported(&row, &ImportOptions::default())
            .expect_err("no name")
            .contains("`func_name`")
    );
}

#[test]
fn a_pickle_that_is_more_than_a_text_is_refused_and_none_swells() {
    for (private, word) in [
        (packed(b"cos\nsystem\n(S'id'\ntR."), "instruction 'c'"),
        (packed(b"\x80\x04N."), "instruction 'N'"),
        ("no base64!".to_owned(), "base64"),
        (
            base64::engine::general_purpose::STANDARD.encode("no zlib"),
            "unpack",
        ),
        (pickled("not json"), "no JSON"),
        (packed(&vec![0; 2 << 20]), "more than 1048576 bytes"),
        (
            json!([{"input": "1", "output": "1", "testtype": "functional"}]).to_string(),
            "one kind",
        ),
        (
            json!([{"input": "1", "output": "1", "testtype": "other"}]).to_string(),
            "`other`",
        ),
        (
            json!([{"input": "1", "testtype": "stdin"}]).to_string(),
            "private_test_cases[0].output",
        ),
    ] {
        let mut row = livecodebench();
        row["private_test_cases"] = private.into();
        let options = ImportOptions {
            max_problem_bytes: 1 << 20,
            ..ImportOptions::default()
        };
        let error = imported(&row, &options).expect_err(word);
        assert!(
            error.contains(word) && error.contains("private_test_cases"),
            "{error}"
        );
    }
}

fn apps() -> Value {
    json!({
        "problem_id": 7, "question": "Double n.\n\nExample input\n2\n\nExample output\n4\n",
        "solutions": json!(["print(2 * int(input()))", " "]).to_string(),
        "input_output": json!({"inputs": ["2\n", "3\n", ["4", "x"]], "outputs": ["4\n", "6\n", ["8"]]}).to_string(),
        "difficulty": "introductory", "url": "https://example.org/7", "starter_code": "",
    })
}

fn convert_apps(set: apps::Set, row: Value) -> Converted {
    Apps {
        set,
        time_limit_s: 4.0,
        memory_limit_mb: 1024,
    }
    .convert(1, record(row))
}

#[test]
fn apps_with_programs() {
    let (format, found) = imported(&apps(), &ImportOptions::default()).expect("a problem");
    assert_eq!(format, Format::Apps);
    assert_eq!(
        (found.problem.id.as_str(), found.problem.public_tests.len()),
        ("apps-7", 1)
    );
    assert_eq!(found.problem.private_tests[1].input, "4\nx\n");
    assert_eq!(found.problem.solutions.len(), 1);
    assert_eq!(found.problem.meta["public_tests_from"], "statement");
}

#[test]
fn apps_with_functions() {
    let with = |inputs: Value, outputs: Value| {
        let mut row = apps();
        row["input_output"] = json!({"fn_name": "f", "inputs": inputs, "outputs": outputs});
        convert_apps(apps::Set::Apps, row)
    };
    let (problem, _) = with(json!([[1, [2]], [2, []]]), json!([[3], [[4]]])).expect("a problem");
    problem.validate().expect("valid");
    assert_eq!(
        (
            problem.public_tests[0].input.as_str(),
            problem.public_tests[0].output.as_str()
        ),
        ("[1,[2]]", "3")
    );
    assert_eq!(problem.private_tests[0].output, "[4]");
    // Not all are lists of one, so none is unwrapped.
    let (problem, _) = with(json!([[1], [2]]), json!([[3], 4])).expect("a problem");
    assert_eq!(problem.public_tests[0].output, "[3]");
    let error = with(json!([[{"1": 2}]]), json!([[1]])).expect_err("keys");
    assert!(
        error.field == "input_output.inputs[0]" && error.message.contains("keys are numbers"),
        "{error:?}"
    );
    let error = with(json!(["1"]), json!([[1]])).expect_err("no list");
    assert!(error.message.contains("list of the arguments"), "{error:?}");
}

#[test]
fn mistakes_in_apps_are_named() {
    for (field, value, wrong, word) in [
        ("input_output", json!("{"), "input_output", "no JSON"),
        (
            "input_output",
            json!({"inputs": ["1"], "outputs": []}),
            "input_output",
            "1 inputs but 0 outputs",
        ),
        (
            "input_output",
            json!({"inputs": [true], "outputs": ["1"]}),
            "input_output.inputs[0]",
            "a text",
        ),
        ("solutions", json!("[1]"), "solutions[0]", "a text"),
        ("solutions", json!("x"), "solutions", "no JSON"),
        ("question", Value::Null, "question", "missing"),
    ] {
        let mut row = apps();
        row[field] = value;
        let FieldError { field, message } = convert_apps(apps::Set::Apps, row).expect_err(word);
        assert!(
            field == wrong && message.contains(word),
            "{field}: {message}"
        );
    }
    // Without tests it is dropped, not a mistake.
    let mut row = apps();
    row["input_output"] = "".into();
    assert!(
        imported(&row, &ImportOptions::default())
            .expect_err("nothing")
            .contains("1 dropped")
    );
}

#[test]
fn taco_with_limits_in_words() {
    let mut row = apps();
    row["problem_id"] = Value::Null;
    for (field, value) in [
        ("time_limit", "2.0 seconds"),
        ("memory_limit", "256.0 megabytes"),
        ("raw_tags", "['math']"),
        ("skill_types", "[]"),
        ("name", "Twice"),
        ("url", "https://example.org/a b"),
    ] {
        row[field] = value.into();
    }
    let (format, found) = imported(&row, &ImportOptions::default()).expect("a problem");
    assert_eq!(format, Format::Taco);
    assert_eq!(
        (found.problem.id.as_str(), found.problem.name.as_str()),
        ("taco-example.org/a-b", "Twice")
    );
    assert_eq!(
        (found.problem.time_limit_s, found.problem.memory_limit_mb),
        (2.0, 256)
    );
}

fn humaneval() -> Value {
    json!({
        "task_id": "HumanEval/0", "entry_point": "add",
        "prompt": "def add(x, y):\n    \"\"\"Adds.\n    >>> add(1, 2)\n    3\n    \"\"\"\n",
        "canonical_solution": "    return x + y\n",
        "test": "\n\nMETADATA = {}\n\n\ndef check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(2, 2) == 4, 'no'\n    assert candidate(-1, 1) == 0\n",
    })
}

fn functions(set: humaneval::Set, row: Value) -> Converted {
    let convert = Functions {
        set,
        time_limit_s: 4.0,
        memory_limit_mb: 1024,
        tuples_as_lists: false,
    };
    convert.convert(1, record(row))
}

#[test]
fn humaneval_by_its_assertions() {
    let (format, found) = imported(&humaneval(), &ImportOptions::default()).expect("a problem");
    assert_eq!(format, Format::HumanEval);
    let problem = found.problem;
    assert_eq!(
        (problem.id.as_str(), problem.function.as_deref()),
        ("HumanEval/0", Some("add"))
    );
    assert_eq!(
        (problem.public_tests.len(), problem.private_tests.len()),
        (1, 2)
    );
    assert_eq!(
        (
            problem.public_tests[0].input.as_str(),
            problem.public_tests[0].output.as_str()
        ),
        ("[1, 2]", "3")
    );
    assert!(
        problem.solutions[0].code.starts_with("def add(x, y):")
            && problem.solutions[0].code.ends_with("return x + y\n")
    );
}

#[test]
fn what_is_no_data_in_humaneval_is_refused() {
    for (from, to, word) in [
        (
            "assert candidate(1, 2) == 3",
            "for i in range(3):\n        assert candidate(i, i) == 2 * i",
            "line 7: `for i",
        ),
        ("candidate(1, 2)", "candidate((1, 2), 3)", "tuple"),
        ("== 3", "== {3}", "set"),
        (
            "assert candidate(1, 2) == 3",
            "assert abs(candidate(1, 2) - 3) < 1e-6",
            "different tolerances",
        ),
    ] {
        let mut row = humaneval();
        row["test"] = row["test"]
            .as_str()
            .expect("a text")
            .replace(from, to)
            .into();
        let error = functions(humaneval::Set::HumanEval, row).expect_err(word);
        assert!(
            error.field.starts_with("test") && error.message.contains(word),
            "{error:?}"
        );
    }
    let mut plus = humaneval();
    plus["test"] = Value::Null;
    plus["plus_input"] = json!([[1, 2]]);
    assert!(
        functions(humaneval::Set::HumanEval, plus)
            .expect_err("no values")
            .message
            .contains("expected values")
    );
}

#[test]
fn tuples_become_lists_only_where_that_is_asked_for() {
    let mut row = humaneval();
    row["test"] = row["test"]
        .as_str()
        .expect("a text")
        .replace("candidate(2, 2)", "candidate((2,), [(2, 1)])")
        .into();
    assert!(
        imported(&row, &ImportOptions::default())
            .expect_err("a tuple")
            .contains("tuple")
    );
    let options = ImportOptions {
        tuples_as_lists: true,
        ..ImportOptions::default()
    };
    let (_, found) = imported(&row, &options).expect("a problem");
    assert_eq!(found.problem.private_tests[0].input, "[[2], [[2, 1]]]");
}

#[test]
fn humaneval_plus_by_its_table() {
    let mut row = humaneval();
    row["test"] = "def assertion(out, exp, atol):\n    pass\n\ndef check(candidate):\n    inputs = [[1, 2], [5, 5], [0.5, 1]]\n    results = [3, 10, 1.5]\n    for i, (inp, exp) in enumerate(zip(inputs, results)):\n        assertion(candidate(*inp), exp, 0)\n".into();
    let (problem, _) = functions(humaneval::Set::HumanEval, row).expect("a problem");
    assert_eq!(
        (problem.public_tests.len(), problem.private_tests.len()),
        (1, 2)
    );
    assert_eq!(
        problem.checker,
        Checker::Value {
            abs: 1e-6,
            rel: 1e-7,
            numbers_by_value: true
        }
    );
}

fn mbpp() -> Value {
    json!({
        "task_id": 11, "text": "Write a function to add two numbers.", "code": "def add(a, b):\r\n    return a + b",
        "test_list": ["assert add(1, 2) == 3", "assert add(2, 2) == 4"], "test_setup_code": "",
        "challenge_test_list": ["assert add(0, 0) == 0"],
    })
}

#[test]
fn mbpp_shows_its_first_test() {
    let (format, found) = imported(&mbpp(), &ImportOptions::default()).expect("a problem");
    assert_eq!(format, Format::Mbpp);
    let problem = found.problem;
    assert_eq!(
        (problem.id.as_str(), problem.function.as_deref()),
        ("mbpp-11", Some("add"))
    );
    assert_eq!(
        (problem.public_tests.len(), problem.private_tests.len()),
        (1, 2)
    );
    assert!(
        problem.statement.contains("assert add(1, 2) == 3")
            && !problem.statement.contains("add(2, 2)")
    );
    assert_eq!(problem.private_tests[1].input, "[0, 0]");
}

#[test]
fn mbpp_plus_keeps_the_plus_tests_private() {
    let mut row = mbpp();
    row["prompt"] = row["text"].take();
    row["test_imports"] = json!([]);
    row["test"] = "inputs = [[7, 7], [8, 8]]\nresults = [14, 16]\nfor i, (inp, exp) in enumerate(zip(inputs, results)):\n    assertion(add(*inp), exp, 0)\n".into();
    let (problem, _) = functions(humaneval::Set::Mbpp, row.clone()).expect("a problem");
    assert_eq!(
        (problem.public_tests.len(), problem.private_tests.len()),
        (3, 2)
    );
    row["test"] = row["test"]
        .as_str()
        .expect("a text")
        .replace("add(*inp)", "other(*inp)")
        .into();
    assert!(
        functions(humaneval::Set::Mbpp, row)
            .expect_err("another")
            .message
            .contains("code of its own")
    );
    let mut row = mbpp();
    row["test_list"][1] = "assert other(2) == 4".into();
    let error = functions(humaneval::Set::Mbpp, row).expect_err("another function");
    assert!(
        error.field == "test_list[1]" && error.message.contains("`other`"),
        "{error:?}"
    );
    let mut row = mbpp();
    row["test_setup_code"] = "x = 1".into();
    assert_eq!(
        functions(humaneval::Set::Mbpp, row)
            .expect_err("set-up")
            .field,
        "test_setup_code"
    );
}

/// Values of any shape.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[\\[\\]{}\",a0-9 ]{0,12}".prop_map(Value::from),
        Just(Value::from("assert f(1) == 2")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(
                "inputs|outputs|fn_name|input|output|testtype|seconds|language|solution",
                inner,
                0..4
            )
            .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_values_in_any_fields_are_a_problem_or_an_error(
        base in 0usize..5,
        changes in prop::collection::vec((any::<prop::sample::Index>(), values()), 0..4),
    ) {
        let mut row = [livecodebench(), apps(), humaneval(), mbpp(), json!({
            "name": "x", "description": "y", "public_tests": {}, "private_tests": {}, "generated_tests": {}, "source": 1,
            "difficulty": 1, "solutions": {}, "incorrect_solutions": {}, "time_limit": {}, "memory_limit_bytes": 1,
        })][base].clone();
        let fields: Vec<String> = row.as_object().expect("an object").keys().cloned().collect();
        for (at, value) in changes {
            row[at.get(&fields).as_str()] = value;
        }
        let _ = imported(&row, &ImportOptions::default());
    }
}
