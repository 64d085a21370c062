use super::*;
use crate::export::CodeContestsWriter;
use crate::import::{Dropped, Imported, LeftOut, Progress, Sink, import, why_dropped};
use serde_json::json;
use std::io;
use std::path::PathBuf;

/// Keeps everything.
#[derive(Default)]
struct All {
    problems: Vec<Imported>,
    left_out: Vec<String>,
}

impl Sink for All {
    fn problem(&mut self, imported: Imported) -> io::Result<()> {
        self.problems.push(imported);
        Ok(())
    }

    fn left_out(&mut self, left_out: LeftOut) -> io::Result<()> {
        self.left_out.push(left_out.to_string());
        Ok(())
    }
}

fn record() -> Value {
    json!({
        "name": "1575_A. Another  Sum", "description": "Add two numbers.",
        "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
        "private_tests": {"input": ["2 2\n", ""], "output": ["4\n", "0\n"]},
        "generated_tests": {"input": ["9 9\n"], "output": ["18\n"]},
        "source": 2, "difficulty": 7,
        "solutions": {"language": [3, 2, 1], "solution": ["print(3)", "int main(){}", "print 3"]},
        "incorrect_solutions": {"language": [4], "solution": ["class A {}"]},
        "cf_contest_id": 1575, "cf_index": "A", "cf_points": 0.0, "cf_rating": 1100, "cf_tags": ["math", "sortings"],
        "is_description_translated": false, "untranslated_description": "",
        "time_limit": {"seconds": 1, "nanos": 500000000}, "memory_limit_bytes": 256000000,
        "input_file": "", "output_file": "",
    })
}

fn convert(value: Value) -> Converted {
    let Value::Object(fields) = value else {
        panic!("an object")
    };
    let convert = CodeContests {
        classes: Classes::of(None),
        time_limit_s: 10.0,
        memory_limit_mb: 1024,
    };
    convert.convert(1, Record::new(fields))
}

fn error_of(pointer: &str, value: Value) -> FieldError {
    let mut record = record();
    *record.pointer_mut(pointer).expect("a field") = value;
    convert(record).expect_err("an error")
}

#[test]
fn a_row_becomes_a_problem() {
    let (problem, notes) = convert(record()).expect("a problem");
    assert_eq!(problem.id, "1575_A.-Another-Sum");
    assert_eq!(problem.name, "1575_A. Another  Sum");
    assert_eq!(problem.time_limit_s, 1.5);
    // 244.14 MiB; a program that may use 256,000,000 bytes can.
    assert_eq!(problem.memory_limit_mb, 245);
    assert_eq!(problem.checker, Checker::code_contests());
    let names: Vec<&str> = [
        &problem.public_tests,
        &problem.private_tests,
        &problem.generated_tests,
    ]
    .into_iter()
    .flatten()
    .map(|test| test.name.as_str())
    .collect();
    assert_eq!(names, ["public/1", "private/1", "private/2", "generated/1"]);
    assert_eq!(problem.private_tests[1].output, "0\n");
    let languages: Vec<_> = problem
        .solutions
        .iter()
        .map(|s| (s.language.as_str(), s.expected.as_str()))
        .collect();
    assert_eq!(
        languages,
        [("python", "AC"), ("cpp", "AC"), ("python2", "AC")]
    );
    assert_eq!(problem.wrong_solutions[0].language, "java");
    assert_eq!(problem.wrong_solutions[0].expected, "NOT_AC");
    assert_eq!(
        Value::Object(problem.meta.clone()),
        json!({"source": "CODEFORCES", "difficulty": "A", "cf_contest_id": 1575, "cf_index": "A", "cf_rating": 1100,
            "cf_tags": ["math", "sortings"]})
    );
    assert_eq!(notes, Vec::<String>::new());
    problem.validate().expect("valid");
}

#[test]
fn limits_that_are_not_there_are_defaults() {
    for (time, memory) in [
        (Value::Null, Value::Null),
        (json!({"seconds": 0, "nanos": null}), json!(0)),
        (json!(0.0), json!(0.0)),
    ] {
        let mut record = record();
        record["time_limit"] = time;
        record["memory_limit_bytes"] = memory;
        let (problem, _) = convert(record).expect("a problem");
        assert_eq!(
            (problem.time_limit_s, problem.memory_limit_mb),
            (10.0, 1024)
        );
        assert_eq!(problem.meta["time_limit_from"], "default");
        assert_eq!(problem.meta["memory_limit_from"], "default");
    }
}

#[test]
fn classes_are_mapped_by_the_names_of_the_file() {
    // The numbers of the original protocol buffers, as a file could name them.
    let features = json!({
        "source": {"names": ["UNKNOWN_SOURCE", "CODECHEF", "CODEFORCES", "HACKEREARTH", "CODEJAM", "none", "ATCODER", "AIZU"]},
        "solutions": {"feature": {"language": {"names": ["UNKNOWN_LANGUAGE", "CPP"], "_type": "ClassLabel"}}, "_type": "Sequence"}
    });
    let classes = Classes::of(Some(&features));
    assert_eq!(classes.sources[6], "ATCODER");
    assert_eq!(classes.languages, ["UNKNOWN_LANGUAGE", "CPP"]);
    let hub = Classes::of(None);
    assert_eq!(
        (hub.sources[5].as_str(), hub.sources[6].as_str()),
        ("ATCODER", "AIZU")
    );
    assert_eq!(
        (
            hub.difficulties[7].as_str(),
            hub.difficulties[18].as_str(),
            hub.difficulties[28].as_str()
        ),
        ("A", "L", "V")
    );
}

#[test]
fn a_wrong_field_is_named() {
    for (pointer, value, field, word) in [
        ("/name", Value::Null, "name", "missing"),
        ("/description", json!(3), "description", "a text"),
        ("/source", json!(7), "source", "class 7"),
        ("/source", json!(-1), "source", "class -1"),
        ("/difficulty", json!(1.5), "difficulty", "class"),
        (
            "/public_tests/output",
            json!([]),
            "public_tests",
            "1 of `input` but 0 of `output`",
        ),
        (
            "/private_tests/input/1",
            json!(1),
            "private_tests.input[1]",
            "a text",
        ),
        (
            "/generated_tests",
            json!("x"),
            "generated_tests",
            "two lists",
        ),
        (
            "/solutions/language/2",
            json!(9),
            "solutions.language[2]",
            "class 9",
        ),
        (
            "/incorrect_solutions/solution/0",
            Value::Null,
            "incorrect_solutions.solution[0]",
            "a text",
        ),
        (
            "/time_limit/seconds",
            json!("2"),
            "time_limit.seconds",
            "a number",
        ),
        ("/time_limit/seconds", json!(-2), "time_limit", "negative"),
        (
            "/memory_limit_bytes",
            json!(-1),
            "memory_limit_bytes",
            "negative",
        ),
    ] {
        let error = error_of(pointer, value);
        assert_eq!(error.field, field, "{pointer}");
        assert!(error.message.contains(word), "{pointer}: {}", error.message);
    }
}

#[test]
fn problems_without_tests_are_dropped_by_rule() {
    let (problem, _) = convert(record()).expect("a problem");
    assert_eq!(why_dropped(&problem), None);
    let without = |field: &str| {
        let mut record = record();
        record[field] = json!({"input": [], "output": []});
        why_dropped(&convert(record).expect("a problem").0)
    };
    assert_eq!(without("public_tests"), Some(Dropped::NoPublicTests));
    assert_eq!(without("private_tests"), Some(Dropped::NoPrivateTests));
    assert_eq!(without("generated_tests"), None);
}

fn lines(records: &[Value]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("valid.jsonl");
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    std::fs::write(&file, text).expect("written");
    (folder, file)
}

#[test]
fn bad_rows_end_the_import_or_are_skipped_and_counted() {
    let mut bad = record();
    bad["source"] = json!(99);
    let mut dropped = record();
    dropped["private_tests"] = Value::Null;
    let (_folder, file) = lines(&[record(), bad, dropped, record()]);
    let mut all = All::default();
    let error = import(&file, &ImportOptions::default(), &mut all, &mut |_| {})
        .expect_err("the second row")
        .to_string();
    assert!(
        error.contains("valid.jsonl, line 2, field `source`") && error.contains("--skip-bad"),
        "{error}"
    );
    let mut all = All::default();
    let mut last = Progress::default();
    let options = ImportOptions {
        skip_bad: true,
        generated_as_private: true,
        ..ImportOptions::default()
    };
    let summary =
        import(&file, &options, &mut all, &mut |now| last = now.clone()).expect("skipped");
    assert_eq!(
        (
            summary.problems,
            summary.skipped,
            summary.dropped[&Dropped::NoPrivateTests]
        ),
        (2, 1, 1)
    );
    assert_eq!(all.left_out.len(), 2);
    assert_eq!((last.rows, last.bytes), (4, last.total_bytes));
    // Titles repeat; ids do not.
    assert_eq!(all.problems[1].problem.id, "1575_A.-Another-Sum~2");
    assert_eq!(all.problems[0].split.as_deref(), Some("valid"));
    assert_eq!(all.problems[0].problem.private_tests.len(), 3);
}

#[test]
fn what_is_written_is_read_again() {
    let mut other = record();
    other["name"] = json!("other");
    other["cf_points"] = json!(1250.0);
    other["time_limit"] = Value::Null;
    other["memory_limit_bytes"] = Value::Null;
    other["cf_tags"] = json!([]);
    other["generated_tests"] = json!({"input": [], "output": []});
    other["incorrect_solutions"] = json!({"language": [], "solution": []});
    other["public_tests"] = json!([{"input": "é\u{0}\n", "output": ""}]);
    let problems: Vec<Problem> = [record(), other]
        .map(|record| convert(record).expect("a problem").0)
        .to_vec();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("train-00000-of-00001.parquet");
    let mut writer = CodeContestsWriter::create(&file).expect("a file");
    for problem in &problems {
        assert_eq!(
            writer.write(problem).expect("written"),
            Vec::<String>::new()
        );
    }
    writer.finish().expect("finished");
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        1,
        "nothing is left beside it"
    );
    let mut all = All::default();
    let mut totals = Vec::new();
    let summary = import(&file, &ImportOptions::default(), &mut all, &mut |now| {
        totals.push(now.total_rows)
    })
    .expect("read");
    assert_eq!(summary.formats, [crate::Format::CodeContests]);
    assert_eq!(totals, [Some(2), Some(2)]);
    assert_eq!(all.problems[0].split.as_deref(), Some("train"));
    let read: Vec<Problem> = all
        .problems
        .into_iter()
        .map(|imported| imported.problem)
        .collect();
    assert_eq!(read, problems);
}

/// Data that may lie beside a checkout; without it there is nothing to read here.
#[test]
fn development_data_is_read_in_both_encodings() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let warmup = folder.join("warmup_dev.jsonl");
    let mut count = 0;
    for name in [
        "code_contests_sample.parquet",
        "code_contests_sample_item.parquet",
    ] {
        let file = folder.join(name);
        if !(file.is_file() && warmup.is_file()) {
            return;
        }
        let mut all = All::default();
        let summary =
            import(&file, &ImportOptions::default(), &mut all, &mut |_| {}).expect("readable");
        assert_eq!((summary.skipped, summary.dropped.len()), (0, 0), "{name}");
        count += summary.problems;
        let limits = all
            .problems
            .iter()
            .filter(|imported| imported.problem.meta.contains_key("time_limit_from"));
        let limits = limits.count();
        assert!(
            limits > 0 && limits < all.problems.len(),
            "some limits are null: {limits}"
        );
        let originals = crate::jsonl::read_file(&warmup).expect("readable");
        for Imported { problem, .. } in &all.problems {
            let original = originals
                .iter()
                .find(|original| original.id == problem.id)
                .expect("the same problem");
            let texts = |tests: &[TestCase]| -> Vec<(String, String)> {
                tests
                    .iter()
                    .map(|test| (test.input.clone(), test.output.clone()))
                    .collect()
            };
            assert_eq!(texts(&problem.public_tests), texts(&original.public_tests));
            let hidden = problem.private_tests.len() + problem.generated_tests.len();
            assert_eq!(hidden, original.private_tests.len(), "{}", problem.id);
            assert!(
                problem
                    .solutions
                    .iter()
                    .any(|solution| solution.code == original.solutions[0].code)
            );
        }
    }
    assert_eq!(count, 16);
}
