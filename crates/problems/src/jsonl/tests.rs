use super::*;
use crate::{Checker, micro};
use proptest::prelude::*;
use serde_json::{Value, json};

fn example() -> Value {
    json!({
        "id": "add-one",
        "statement": "Read n. Print n + 1.",
        "time_limit_s": 1,
        "memory_limit_mb": 64,
        "checker": {"kind": "tokens"},
        "public_tests": [{"input": "1\n", "output": "2\n"}],
        "private_tests": [{"name": "a", "input": "2\n", "output": "3\n"}, {"name": "b", "input": "0\n", "output": "1\n"}],
        "solutions": [{"language": "python", "expected": "AC", "code": "print(int(input())+1)"}],
        "wrong_solutions": [{"language": "python", "expected": "WA", "code": "print(2)", "observed": "WA"}],
        "source": {"repo": null},
        "difficulty_hint": 1,
    })
}

fn read(value: &Value) -> Result<Vec<Problem>, JsonlError> {
    read_str("x.jsonl", &value.to_string())
}

/// The message for the example with one field replaced (or taken away).
fn error(pointer: &str, value: Option<Value>) -> String {
    let mut changed = example();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    match (changed.pointer_mut(parent).expect("a parent"), value) {
        (Value::Object(fields), Some(value)) => drop(fields.insert(key.to_owned(), value)),
        (Value::Object(fields), None) => drop(fields.remove(key)),
        (Value::Array(items), Some(value)) => items[key.parse::<usize>().expect("a place")] = value,
        _ => panic!("nothing at {pointer}"),
    }
    read(&changed).expect_err(pointer).to_string()
}

#[test]
fn unknown_fields_are_kept_in_meta() {
    let problems = read(&example()).expect("valid");
    let problem = &problems[0];
    assert_eq!(
        problem.checker,
        Checker::Tokens {
            case_sensitive: true,
            white_space: crate::WhiteSpace::Lines,
            numbers: None
        }
    );
    assert_eq!(
        problem.meta.keys().collect::<Vec<_>>(),
        ["source", "difficulty_hint"]
    );
    let mut text = Vec::new();
    write(&mut text, &problems).expect("written");
    assert_eq!(
        read_str("again", std::str::from_utf8(&text).expect("text")).expect("valid"),
        problems
    );
}

#[test]
fn errors_name_file_line_and_field() {
    let mut second = example();
    second["id"] = "other".into();
    second["private_tests"][1]["output"] = 5.into();
    let text = format!("{}\n\n  \n{second}\n", example());
    let error = read_str("set.jsonl", &text)
        .expect_err("a number for a text")
        .to_string();
    assert!(
        error.starts_with("set.jsonl, line 4, field `private_tests[1].output`: invalid type"),
        "{error}"
    );
    assert!(!error.contains("line 1"), "{error}");
}

#[test]
fn mistakes_are_found() {
    for (pointer, value, needles) in [
        ("/id", Some(json!("")), vec!["`id`", "empty"]),
        ("/id", Some(json!("a b")), vec!["`id`", "white space"]),
        ("/statement", Some(json!(" \n")), vec!["`statement`"]),
        ("/time_limit_s", None, vec!["time_limit_s", "missing"]),
        ("/time_limit_s", Some(json!(null)), vec!["`time_limit_s`"]),
        (
            "/time_limit_s",
            Some(json!(0)),
            vec!["`time_limit_s`", "above 0"],
        ),
        (
            "/time_limit_s",
            Some(json!(-1.5)),
            vec!["`time_limit_s`", "-1.5"],
        ),
        ("/time_limit_s", Some(json!(1e300)), vec!["`time_limit_s`"]),
        (
            "/memory_limit_mb",
            Some(json!(0)),
            vec!["`memory_limit_mb`"],
        ),
        (
            "/memory_limit_mb",
            Some(json!(-1)),
            vec!["`memory_limit_mb`"],
        ),
        (
            "/public_tests",
            Some(json!([])),
            vec!["`public_tests`", "is empty"],
        ),
        (
            "/private_tests",
            Some(json!([])),
            vec!["`private_tests`", "is empty"],
        ),
        ("/private_tests", None, vec!["private_tests", "missing"]),
        (
            "/private_tests/1/name",
            Some(json!("a")),
            vec!["`private_tests[1].name`", "earlier"],
        ),
        (
            "/private_tests/1/outptu",
            Some(json!("a")),
            vec!["private_tests[1]", "outptu"],
        ),
        (
            "/checker",
            Some(json!({"kind": "exactly"})),
            vec!["`checker", "exact"],
        ),
        (
            "/checker",
            Some(json!({"kind": "float", "abs": -1.0})),
            vec!["`checker.abs`", "-1"],
        ),
        (
            "/checker",
            Some(json!({"kind": "float", "abs": 1e308})),
            vec!["`checker.abs`", "from 0 to 1000000000.0"],
        ),
        (
            "/checker",
            Some(json!({"kind": "float", "rel": 2})),
            vec!["`checker.rel`", "from 0 to 1.0"],
        ),
        (
            "/solutions/0/expected",
            Some(json!("WA")),
            vec!["`solutions[0].expected`", "wrong_solutions"],
        ),
        (
            "/wrong_solutions/0/expected",
            Some(json!("AC")),
            vec!["`wrong_solutions[0].expected`"],
        ),
        (
            "/wrong_solutions/0/expected",
            Some(json!("wrong")),
            vec!["`wrong_solutions[0].expected`", "TLE"],
        ),
        (
            "/solutions/0/code",
            Some(json!("")),
            vec!["`solutions[0].code`"],
        ),
        (
            "/wrong_solution",
            Some(json!([])),
            vec!["wrong_solution", "is `wrong_solutions` meant?"],
        ),
        ("/meta", Some(json!({"source": 1})), vec!["source", "meta"]),
    ] {
        let message = error(pointer, value);
        assert!(
            needles.iter().all(|needle| message.contains(needle)),
            "{pointer}: {message}"
        );
        assert!(message.starts_with("x.jsonl, line 1"), "{message}");
    }
}

/// What is JSON, but no interpreter reads or no program returns: to be told before any program is charged for it.
#[test]
fn tests_that_no_program_can_pass_are_mistakes() {
    let function = |input: &str, output: &str| {
        let mut problem = example();
        problem["function"] = json!("f");
        problem["checker"] = json!({"kind": "value"});
        problem["public_tests"] = json!([{"input": "[]", "output": "1"}]);
        problem["private_tests"] = json!([
            {"input": "[1]", "output": "null"},
            {"input": input, "output": output},
        ]);
        read(&problem).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(
        function("[[1], \"\\ud83d\\ude00\"]", "{\"a\": 1e3}"),
        Ok(())
    );
    let deep = format!("[{}{}]", "[".repeat(5000), "]".repeat(5000));
    let long = format!("[{}]", "1".repeat(5000));
    for (input, output, field, needles) in [
        (deep.as_str(), "1", "input", vec!["nested", "500"]),
        (&long, "1", "input", vec!["5000 digits", "4300", "[0]"]),
        ("[1]", &deep, "output", vec!["nested", "500"]),
        ("[1]", "[1e999]", "output", vec!["infinite", "[0]"]),
        (
            "[1]",
            "{\"a\": 1, \"a\": 2}",
            "output",
            vec!["twice", "[\"a\"]"],
        ),
        ("[1]", "\"\\ud800\"", "output", vec!["surrogate"]),
    ] {
        let said = function(input, output).expect_err("refused");
        let place = format!("x.jsonl, line 1: field `private_tests[1].{field}`: holds ");
        assert!(said.starts_with(&place), "{said}");
        assert!(needles.iter().all(|n| said.contains(n)), "{said}");
    }
}

#[test]
fn names_hold_nothing_that_cannot_be_seen() {
    for c in [
        '\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{1b}', '\u{9b}', '\0',
    ] {
        for pointer in ["/id", "/private_tests/1/name"] {
            let message = error(pointer, Some(json!(format!("ab{c}c"))));
            let code = format!("U+{:04X}, character 3", u32::from(c));
            assert!(message.contains(&code), "{message:?}");
            assert!(!message.contains(c), "{message:?}");
        }
    }
}

#[test]
fn ids_are_unique_and_lines_are_whole() {
    let twice = format!("{0}\n{0}\n", example());
    let error = read_str("x", &twice).expect_err("twice").to_string();
    assert!(
        error.contains("line 2") && error.contains("`add-one`") && error.contains("line 1"),
        "{error}"
    );
    let more = format!("{} {{}}", example());
    assert!(matches!(
        read_str("x", &more),
        Err(JsonlError::Parse { line: 1, .. })
    ));
    assert!(
        read_str("x", "[1]\n")
            .expect_err("no object")
            .to_string()
            .contains("line 1")
    );
    assert!(matches!(
        read_file(Path::new("/no/such/file.jsonl")),
        Err(JsonlError::Io { .. })
    ));
}

#[test]
fn reading_streams_and_ends_after_an_error() {
    let text = format!("{}\nnot json\n{}\n", example(), example());
    let mut reader = Reader::new("x", text.as_bytes());
    assert!(reader.next().expect("one").is_ok());
    assert_eq!(reader.line(), 1);
    assert!(reader.next().expect("two").is_err());
    assert!(reader.next().is_none());
    let bytes: &[u8] = b"{\"id\": \"\xff\"}";
    assert!(Reader::new("x", bytes).next().expect("a line").is_err());
}

#[test]
fn files_are_written_as_they_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("micro.jsonl");
    let problems = micro::generate(1).expect("micro").valid;
    write_file(&file, &problems).expect("written");
    assert_eq!(read_file(&file).expect("read"), problems);
}

/// Data that may lie beside a checkout; without it there is nothing to read here.
#[test]
fn development_data_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    for (name, count) in [("warmup_dev.jsonl", 16), ("problems_dev.jsonl", 87)] {
        let file = folder.join(name);
        if file.is_file() {
            let problems = read_file(&file).expect("readable");
            assert_eq!(problems.len(), count);
            assert!(
                problems
                    .iter()
                    .all(|problem| problem.meta.contains_key("licence"))
            );
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in prop::collection::vec(any::<u8>(), 0..300)) {
        for problem in Reader::new("x", text.as_slice()) {
            prop_assert!(problem.is_err());
        }
    }

    #[test]
    fn a_damaged_line_is_an_error_or_a_valid_problem(at in 0usize..2000, byte in any::<u8>()) {
        let mut text = example().to_string().into_bytes();
        let at = at % text.len();
        text[at] = byte;
        for problem in Reader::new("x", text.as_slice()).flatten() {
            prop_assert!(problem.validate().is_ok());
        }
    }

    #[test]
    fn texts_survive_writing(input in any::<String>(), output in any::<String>(), limit in 0.001..1000.0f64) {
        let mut value = example();
        value["public_tests"][0] = json!({"name": "", "input": input, "output": output});
        value["time_limit_s"] = json!(limit);
        let problems = read(&value).expect("valid");
        prop_assert_eq!(&problems[0].public_tests[0].input, &input);
        let mut text = Vec::new();
        write(&mut text, &problems).expect("written");
        prop_assert_eq!(text.iter().filter(|&&byte| byte == b'\n').count(), 1);
        prop_assert_eq!(Reader::new("x", text.as_slice()).collect::<Result<Vec<_>, _>>().expect("valid"), problems);
    }
}

#[test]
fn a_later_version_is_refused_and_the_first_needs_no_name() {
    let mut value = example();
    value["version"] = json!(1);
    let problems = read(&value).expect("version 1");
    assert!(!problems[0].meta.contains_key("version"));
    value["version"] = json!(2);
    let error = read(&value).expect_err("version 2").to_string();
    assert!(
        error.contains("`version` is 2") && error.contains("line 1"),
        "{error}"
    );
    let mut value = example();
    value["versoin"] = json!(1);
    assert!(
        read(&value)
            .expect_err("a slip")
            .to_string()
            .contains("`version`")
    );
}

#[test]
fn generated_tests_are_kept_apart() {
    let mut value = example();
    value["generated_tests"] = json!([{"name": "g", "input": "5\n", "output": "6\n"}]);
    let problems = read(&value).expect("valid");
    assert_eq!(problems[0].generated_tests.len(), 1);
    let mut text = Vec::new();
    write(&mut text, &problems).expect("written");
    let again: Result<Vec<_>, _> = Reader::new("x", text.as_slice()).collect();
    assert_eq!(again.expect("valid"), problems);
    value["generated_tests"] =
        json!([{"name": "g", "input": "", "output": ""}, {"name": "g", "input": "", "output": ""}]);
    assert!(
        read(&value)
            .expect_err("twice")
            .to_string()
            .contains("`generated_tests[1].name`")
    );
}

#[test]
fn reading_may_go_on_after_a_bad_line() {
    let text = format!("not json\n{}\n{{}}\n", example());
    let mut reader = Reader::new("x", text.as_bytes());
    assert!(reader.next_line().expect("one").is_err());
    assert!(reader.next_line().expect("two").is_ok());
    assert!(reader.next_line().expect("three").is_err());
    assert!(reader.next_line().is_none());
}

#[test]
fn a_file_is_replaced_only_when_the_new_one_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.jsonl");
    let problems = read(&example()).expect("valid");
    write_file(&file, &problems).expect("written");
    let mut writer = Writer::create(&file).expect("a file");
    writer.write(&problems[0]).expect("written");
    assert_eq!(read_file(&file).expect("the old one").len(), 1);
    drop(writer);
    assert_eq!(read_file(&file).expect("the old one").len(), 1);
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        1
    );
    assert!(matches!(
        Writer::create(&folder.path().join("no/x.jsonl")),
        Err(JsonlError::Io { .. })
    ));
    assert!(matches!(
        Writer::create(folder.path()),
        Err(JsonlError::Io { .. })
    ));
}

#[test]
fn a_failing_source_ends_the_reading() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("broken"))
        }
    }
    let mut reader = Reader::new("x", BufReader::new(Broken));
    assert!(matches!(
        reader.next_line(),
        Some(Err(JsonlError::Io { .. }))
    ));
    assert!(reader.next_line().is_none());
}
