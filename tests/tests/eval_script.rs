//! `rlef eval --script`: what an evaluation says of answers that are known.

use std::path::Path;

use rlef_tests::{name, ran};
use serde_json::{Value, json};

fn eval(arguments: &[&str]) -> (i32, String, String) {
    ran(&[&["eval", "--n", "1", "--k", "1"], arguments].concat())
}

/// The score, of so many problems.
fn score(arguments: &[&str]) -> (f64, u64) {
    let (code, stdout, stderr) = eval(&[arguments, &["--json"]].concat());
    assert_eq!(code, 0, "{stderr}");
    let found: Value = serde_json::from_str(&stdout).expect("JSON");
    let score = &found["score"];
    assert_eq!(score["rollouts_lost"], 0, "{score:#}");
    let number = |key: &str| score[key].as_f64().expect("a number");
    (number("value"), number("problems") as u64)
}

fn run(arguments: &[&str]) {
    let (code, _, stderr) = ran(arguments);
    assert_eq!(code, 0, "{stderr}");
}

/// Problems of the bundled set, as they come out of a file in the columns of CodeContests.
#[test]
fn stored_programs_and_memorised_tests_score_what_they_are_worth() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, set) = (
        folder.path().join("test.parquet"),
        folder.path().join("set"),
    );
    run(&[
        "problems",
        "export",
        "basics",
        "--format",
        "codecontests",
        "--out",
        name(&file),
    ]);
    run(&["problems", "import", name(&file), "--out", name(&set)]);
    // A wrong program may be one only by the letter case of its output, which CodeContests does not look at.
    for (script, set, wanted) in [
        ("accepted", name(&set), 1.0),
        ("incorrect", "basics", 0.0),
        ("memorised", name(&set), 0.0),
    ] {
        let found = score(&["--problems", set, "--script", script, "--limit", "20"]);
        assert_eq!(found, (wanted, 20), "{script}");
    }
}

fn write(folder: &Path, file: &str, lines: &[Value]) -> String {
    let path = folder.join(file);
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(&path, lines.join("\n")).expect("written");
    name(&path).to_owned()
}

/// One that prints, and two whose functions are called.
fn problems(folder: &Path) -> String {
    let solution = |code: &str, expected: &str| json!([{ "file": "a.py", "language": "python3", "expected": expected, "code": code }]);
    let problem = |id: &str, function: Option<&str>, code: &str, wrong: &str| {
        let test = |name: &str, n: i64| match function {
            Some(_) => {
                json!({ "name": name, "input": format!("[{n}, [1]]"), "output": (n * n).to_string() })
            }
            None => {
                json!({ "name": name, "input": format!("{n}\n"), "output": format!("{}\n", n * n) })
            }
        };
        let kind = if function.is_some() { "value" } else { "lines" };
        let mut line = json!({
            "id": id, "statement": format!("Square ({id})."), "time_limit_s": 5.0, "memory_limit_mb": 128,
            "checker": { "kind": kind }, "public_tests": [test("a", 2), test("b", -3)], "private_tests": [test("c", 5)],
            "solutions": solution(code, "AC"), "wrong_solutions": solution(wrong, "WA"),
        });
        if let Some(function) = function {
            line["function"] = function.into();
        }
        line
    };
    let all = [
        problem("prints", None, "print(int(input()) ** 2)", "print(0)"),
        problem(
            "function",
            Some("square"),
            "def square(n, x): return n * n",
            "def square(n, x): return 0",
        ),
        problem(
            "method",
            Some("Solution.square"),
            "class Solution:\n    def square(self, n, x): return n * n",
            "class Solution:\n    def square(self, n, x): return 0",
        ),
    ];
    write(folder, "all.jsonl", &all)
}

#[test]
fn functions_and_answers_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = problems(folder.path());
    for (script, wanted) in [("accepted", 1.0), ("incorrect", 0.0), ("memorised", 0.0)] {
        assert_eq!(
            score(&["--problems", &set, "--script", script]),
            (wanted, 3),
            "{script}"
        );
    }
    // What is learned by heart does pass the public tests.
    let dialogs = folder.path().join("dialogs.jsonl");
    let (code, ..) = eval(&[
        "--problems",
        &set,
        "--script",
        "memorised",
        "--dialogs",
        name(&dialogs),
    ]);
    assert_eq!(code, 0);
    for line in std::fs::read_to_string(&dialogs).expect("written").lines() {
        let dialog: Value = serde_json::from_str(line).expect("JSON");
        // Submitted on its first turn: no failure was told.
        assert_eq!(
            dialog["turns"].as_array().expect("turns").len(),
            1,
            "{dialog:#}"
        );
    }
    let answer = |id: &str, code: &str| json!({ "problem": id, "answers": ["No idea.", format!("```python\n{code}\n```")] });
    let file = write(
        folder.path(),
        "answers.jsonl",
        &[
            answer("prints", "print(int(input()) ** 2)"),
            answer("function", "def square(n, x): return n * n"),
            answer(
                "method",
                "class Solution:\n    def square(self, n, x): return -1",
            ),
        ],
    );
    // The first answer is wrong, the second one right for two of three.
    assert_eq!(score(&["--problems", &set, "--script", &file]), (0.0, 3));
    let (code, stdout, stderr) = ran(&[
        "eval",
        "--k",
        "2",
        "--problems",
        &set,
        "--script",
        &file,
        "--json",
    ]);
    assert_eq!(code, 0, "{stderr}");
    let found: Value = serde_json::from_str(&stdout).expect("JSON");
    let value = found["score"]["value"].as_f64().expect("a number");
    assert!((value - 2.0 / 3.0).abs() < 1e-9, "{found:#}");
    assert!(found["config"].get("model").is_none(), "{found:#}");
}

#[test]
fn what_cannot_be_answered_or_has_no_effect_is_said_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = problems(folder.path());
    let file = write(
        folder.path(),
        "some.jsonl",
        &[json!({ "problem": "prints", "answers": ["x"] })],
    );
    for (arguments, told) in [
        (&["--script", &*file][..], "no answer for problem function"),
        (&["--script", "nobody"], "nobody"),
        (&["--script", &*set], "line 1"),
        (
            &["--script", "accepted", "--temperature", "1"],
            "--temperature",
        ),
        (
            &["--script", "accepted", "--set", "eval.top_p=0.5"],
            "eval.top_p",
        ),
    ] {
        let (code, _, stderr) = eval(&[&["--problems", &*set], arguments].concat());
        assert!(
            code != 0 && stderr.contains(told),
            "{arguments:?}: {stderr}"
        );
    }
}
