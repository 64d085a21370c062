//! `rlef problems import` and `export`.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use rlef_tests::{name, ran};

fn problems(arguments: &[&str]) -> (i32, String, String) {
    ran(&[&["problems"], arguments].concat())
}

fn said(arguments: &[&str]) -> String {
    let (code, stdout, stderr) = problems(arguments);
    assert_eq!(code, 0, "{stderr}");
    stdout
}

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = folder
        .read_dir()
        .expect("a folder")
        .map(|entry| {
            let name = entry.expect("an entry").file_name();
            name.to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    names
}

const PACKAGES: &str = "crates/problems/testdata/packages";

#[test]
fn packages_become_a_set_that_other_commands_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("a/set");
    let text = said(&["import", PACKAGES, "--out", name(&out), "--split", "test"]);
    assert!(
        text.starts_with(&format!("{PACKAGES} (package): 3 problems\n")),
        "{text}"
    );
    assert!(text.contains("test.jsonl: 3 problems"), "{text}");
    assert!(text.contains("\nnotes\n"), "{text}");
    assert_eq!(entries(&out), ["test.jsonl"]);
    let list = said(&["list", name(&out), "--split", "test"]);
    assert_eq!(list.lines().count(), 3, "{list}");
    let shown = said(&["show", "average", "--problems", name(&out)]);
    assert!(shown.contains("right and"), "{shown}");
}

#[test]
fn what_is_exported_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("test.parquet");
    let text = said(&[
        "export",
        "basics",
        "--format",
        "codecontests",
        "--out",
        name(&file),
    ]);
    assert!(text.contains("test.parquet: 56 problems"), "{text}");
    let out = folder.path().join("set");
    let text = said(&["import", name(&file), "--out", name(&out)]);
    assert!(text.contains("(codecontests): 56 problems"), "{text}");
    // The file's name tells the split.
    assert_eq!(entries(&out), ["test.jsonl"]);

    let lines = folder.path().join("all.jsonl");
    said(&[
        "export",
        "basics",
        "--format",
        "jsonl",
        "--out",
        name(&lines),
    ]);
    let written = std::fs::read_to_string(&lines).expect("a file");
    assert_eq!(written.lines().count(), 56);
    let (code, _, stderr) = problems(&[
        "export",
        "basics",
        "--format",
        "jsonl",
        "--out",
        name(&lines),
    ]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("all.jsonl is there already; --force"),
        "{stderr}"
    );

    let tasks = folder.path().join("tasks");
    said(&[
        "export",
        "basics",
        "--format",
        "harbor",
        "--out",
        name(&tasks),
    ]);
    assert_eq!(entries(&tasks).len(), 56);
    assert!(tasks.join("double-it/tests/test.sh").is_file());
}

#[test]
fn a_bad_row_ends_the_import_or_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = std::fs::read_to_string(rlef_tests::root().join("problems/basics/problems.jsonl"))
        .expect("the basics");
    let mut lines: Vec<&str> = good.lines().take(2).collect();
    lines.insert(1, r#"{"id":"bad","statement":"?","time_limit_s":"long"}"#);
    let source = folder.path().join("mine.jsonl");
    std::fs::write(&source, lines.join("\n")).expect("a file");
    let out = folder.path().join("set");
    let arguments = ["import", name(&source), "--out", name(&out)];
    let (code, stdout, stderr) = problems(&arguments);
    assert_eq!((code, stdout.as_str()), (2, ""));
    for part in ["mine.jsonl, line 2", "`time_limit_s`", "--skip-bad"] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    assert!(!out.exists(), "nothing is left of an import that failed");

    let text = said(&[&arguments[..], &["--skip-bad"]].concat());
    assert!(text.contains("train.jsonl: 2 problems"), "{text}");
    assert!(text.contains("skipped as unreadable: 1"), "{text}");
    assert!(
        text.contains("left out\n") && text.contains("line 2"),
        "{text}"
    );

    let before = std::fs::read(out.join("train.jsonl")).expect("a file");
    let (code, _, stderr) = problems(&[&arguments[..], &["--skip-bad"]].concat());
    assert_eq!(code, 2);
    assert!(
        stderr.contains("train.jsonl is there already; --force"),
        "{stderr}"
    );
    assert_eq!(
        std::fs::read(out.join("train.jsonl")).expect("a file"),
        before
    );
    said(&[&arguments[..], &["--skip-bad", "--force"]].concat());
}

#[test]
fn a_stopped_import_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    let out = folder.path().join("set");
    let import = rlef_tests::rlef()
        .args(["problems", "import", name(&pipe), "--out", name(&out)])
        .stderr(Stdio::piped())
        .spawn()
        .expect("rlef starts");
    let good = std::fs::read_to_string(rlef_tests::root().join("problems/basics/problems.jsonl"))
        .expect("the basics");
    let mut lines = good.lines();
    let mut writer = std::fs::OpenOptions::new()
        .write(true)
        .open(&pipe)
        .expect("the pipe");
    let mut write = |line: &str| writeln!(writer, "{line}");
    write(lines.next().expect("a line")).expect("the pipe");
    let begun = || out.is_dir() && !entries(&out).is_empty();
    while !begun() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let stopped = std::process::Command::new("kill")
        .args(["-INT", &import.id().to_string()])
        .status();
    assert!(stopped.expect("kill").success());
    // It looks at the signal when a problem comes; until it has seen it, problems are taken.
    for line in lines {
        std::thread::sleep(std::time::Duration::from_millis(50));
        if write(line).is_err() {
            break;
        }
    }
    drop(writer);
    let output = import.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing was written"));
    assert!(!out.exists());
}
