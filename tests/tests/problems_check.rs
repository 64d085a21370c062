//! `rlef problems check`: the audit of a set.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use rlef_tests::{name, ran};
use serde_json::{Value, json};

fn check(arguments: &[&str]) -> (i32, String, String) {
    ran(&[&["problems", "check"], arguments].concat())
}

fn json(arguments: &[&str], code: i32) -> Value {
    let (got, stdout, stderr) = check(&[arguments, &["--json"]].concat());
    assert_eq!(got, code, "{stdout}{stderr}");
    serde_json::from_str(&stdout).expect("JSON")
}

/// A problem whose statement is its own.
fn problem(id: &str, code: &str) -> Value {
    json!({
        "id": id, "statement": format!("Read an integer. For {id}, print its square."),
        "time_limit_s": 5.0, "memory_limit_mb": 128, "checker": { "kind": "tokens" },
        "public_tests": [{ "name": "p", "input": "3\n", "output": "9\n" }],
        "private_tests": [{ "name": "q", "input": "-4\n", "output": "16\n" }],
        "solutions": [{ "file": "right.py", "language": "python", "expected": "AC", "code": code }],
        "wrong_solutions": [{ "file": "wrong.py", "language": "python", "expected": "WA", "code": "print(-1)" }],
    })
}

const SQUARE: &str = "print(int(input()) ** 2)";

fn set(folder: &Path, file: &str, problems: &[Value]) -> PathBuf {
    let path = folder.join(file);
    let lines: Vec<String> = problems.iter().map(Value::to_string).collect();
    std::fs::write(&path, lines.join("\n")).expect("a file");
    path
}

#[test]
fn basics_gets_every_expected_verdict() {
    let found = json(&["basics", "--repeats", "1"], 0);
    assert_eq!(found["problems"], 56);
    assert_eq!(found["with_errors"], 0, "{found:#}");
    assert_eq!(found["not_checked"], 0, "{found:#}");
    let verdicts = json!({
        "AC": { "AC": 56 }, "WA": { "WA": 94 }, "RTE": { "RTE": 22 }, "TLE": { "TLE": 16 }, "MLE": { "MLE": 5 },
    });
    assert_eq!(found["verdicts"], verdicts);
}

#[test]
fn a_table_says_what_is_wrong_and_a_clean_set_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = set(
        folder.path(),
        "mine.jsonl",
        &[
            problem("a", SQUARE),
            problem("b", "print(9)"),
            problem("c", SQUARE),
        ],
    );
    let clean = folder.path().join("clean");
    let (code, stdout, stderr) = check(&[name(&file), "--write-clean", name(&clean)]);
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stdout.contains("3 problems, 1 with errors, 0 with warnings, 0 not checked"),
        "{stdout}"
    );
    assert!(
        stdout.contains("expected AC  2 of 3 agree  1 WA"),
        "{stdout}"
    );
    assert!(
        stdout.contains(
            "\nb\n  error: accepted solution fails: right.py: wrong answer on test private/q"
        ),
        "{stdout}"
    );
    assert!(stderr.contains("2 problems without errors"), "{stderr}");
    assert_eq!(json(&[name(&clean)], 0)["problems"], 2);

    let before = std::fs::read(clean.join("train.jsonl")).expect("a file");
    for target in [clean.as_path(), folder.path()] {
        let of = [name(&clean), "--write-clean", name(target)];
        let (code, _, stderr) = check(&of);
        assert_eq!(code == 2, target == clean, "{stderr}");
    }
    assert_eq!(
        std::fs::read(clean.join("train.jsonl")).expect("a file"),
        before
    );
}

#[test]
fn what_is_known_is_not_run_again_unless_it_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("results.jsonl");
    let file = set(
        folder.path(),
        "mine.jsonl",
        &[problem("a", SQUARE), problem("b", SQUARE)],
    );
    let arguments = [name(&file), "--out", name(&out), "--repeats", "1"];
    assert_eq!(json(&arguments, 0)["reused"], 0);
    let first = std::fs::read_to_string(&out).expect("a file");
    assert_eq!(first.lines().count(), 2);
    assert_eq!(json(&arguments, 0)["reused"], 2);
    assert_eq!(std::fs::read_to_string(&out).expect("a file"), first);
    // Other settings, then another problem.
    assert_eq!(
        json(&[name(&file), "--out", name(&out), "--repeats", "2"], 0)["reused"],
        0
    );
    assert_eq!(json(&arguments, 0)["reused"], 0);
    set(
        folder.path(),
        "mine.jsonl",
        &[problem("a", SQUARE), problem("b", "print(9)")],
    );
    assert_eq!(json(&arguments, 1)["reused"], 1);
    // A file of something else is left alone.
    let (code, _, stderr) = check(&[name(&file), "--out", name(&file)]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("mine.jsonl, line 1: no result of an audit"),
        "{stderr}"
    );
}

#[test]
fn statements_of_other_sets_and_solve_rates_are_looked_at() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = set(
        folder.path(),
        "mine.jsonl",
        &[problem("a", SQUARE), problem("b", SQUARE)],
    );
    let mut copy = problem("x", SQUARE);
    copy["statement"] = problem("b", SQUARE)["statement"].clone();
    let other = set(folder.path(), "other.jsonl", &[copy]);
    let dialogs = vec![json!({ "problem": "a", "sample": 0, "solved": false }).to_string(); 8];
    let eval = folder.path().join("dialogs.jsonl");
    std::fs::write(&eval, dialogs.join("\n")).expect("a file");
    let found = json(
        &[
            name(&file),
            "--against",
            name(&other),
            "--eval",
            name(&eval),
        ],
        1,
    );
    let told: Vec<(&Value, &Value)> = found["told"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|told| (&told["problem"], &told["findings"][0]["kind"]))
        .collect();
    assert!(
        told.contains(&(&json!("a"), &json!("never_solved"))),
        "{found:#}"
    );
    assert!(
        told.contains(&(&json!("b"), &json!("duplicate"))),
        "{found:#}"
    );
}

/// A set on which there is a while to interrupt.
fn slow(folder: &Path) -> PathBuf {
    let wait = format!("import time\ntime.sleep(0.2)\n{SQUARE}");
    let problems: Vec<Value> = (0..40).map(|n| problem(&format!("p{n}"), &wait)).collect();
    set(folder, "slow.jsonl", &problems)
}

fn begun(file: &Path, out: &Path) -> Child {
    let child = rlef_tests::rlef()
        .args([
            "problems",
            "check",
            name(file),
            "--out",
            name(out),
            "--repeats",
            "1",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("rlef starts");
    let journal = out.with_extension("jsonl.journal");
    while !std::fs::metadata(&journal).is_ok_and(|about| about.len() > 0) {
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn signal(child: &Child, signal: &str) {
    let sent = std::process::Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(sent.expect("kill").success());
}

fn goes_on(file: &Path, out: &Path) {
    let found = json(&[name(file), "--out", name(out), "--repeats", "1"], 0);
    let reused = found["reused"].as_u64().expect("a number");
    assert!((1..40).contains(&reused), "{reused}");
    assert_eq!(found["problems"], 40);
    let written = std::fs::read_to_string(out).expect("a file");
    let ids: Vec<Value> = written
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["problem"].clone())
        .collect();
    let wanted: Vec<Value> = (0..40).map(|n| json!(format!("p{n}"))).collect();
    assert_eq!(ids, wanted, "in the order of the set");
    assert!(!out.with_extension("jsonl.journal").exists());
}

#[test]
fn an_interrupted_audit_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (slow(folder.path()), folder.path().join("results.jsonl"));
    let child = begun(&file, &out);
    signal(&child, "-INT");
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("goes on from there"), "{stderr}");
    goes_on(&file, &out);
}

#[test]
fn a_killed_audit_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (slow(folder.path()), folder.path().join("results.jsonl"));
    let child = begun(&file, &out);
    signal(&child, "-KILL");
    child.wait_with_output().expect("it ends");
    assert!(!out.exists());
    // As a line that was being written leaves it.
    let journal = out.with_extension("jsonl.journal");
    let text = std::fs::read_to_string(&journal).expect("a journal");
    std::fs::write(&journal, format!("{text}{{\"problem\":\"p3")).expect("a journal");
    goes_on(&file, &out);
}

#[test]
fn wrong_usage_is_said() {
    for (arguments, words) in [
        (&["nosuch"][..], "no problem set `nosuch`"),
        (&["basics", "--split", "train"], "no split `train`"),
        (&["basics", "--floor", "0.1"], "--eval"),
        (
            &["basics", "--against", "basics"],
            "is the set that is checked",
        ),
        (&["basics", "--eval", "/nosuch"], "/nosuch"),
    ] {
        let (code, _, stderr) = check(arguments);
        assert_eq!(code, 2, "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    }
}

/// Packages of both versions with output validators in Python and C++, groups, flags, links between files, and programs of
/// every verdict: from their folders to the audit.
#[test]
fn packages_with_validators_agree_with_their_authors_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("set");
    let packages = "crates/problems/testdata/packages";
    let (code, _, stderr) = ran(&["problems", "import", packages, "--out", name(&out)]);
    assert_eq!(code, 0, "{stderr}");
    let clean = folder.path().join("clean");
    let found = json(
        &[name(&out), "--repeats", "1", "--write-clean", name(&clean)],
        0,
    );
    assert_eq!(
        (
            &found["problems"],
            &found["with_errors"],
            &found["not_checked"]
        ),
        (&3.into(), &0.into(), &0.into()),
        "{found:#}"
    );
    for (expected, got) in found["verdicts"].as_object().expect("verdicts") {
        for verdict in got.as_object().expect("verdicts").keys() {
            let agrees = verdict == expected || expected == "NOT_AC" && verdict != "AC";
            // Languages without tools here.
            assert!(agrees || verdict == "not run", "{found:#}");
        }
    }
    // None is dropped for having a program of its own decide.
    let kept = std::fs::read_to_string(clean.join("train.jsonl")).expect("written");
    assert_eq!(kept.lines().count(), 3);
}
