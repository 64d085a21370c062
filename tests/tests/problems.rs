//! `rlef problems`: generate, list, show.

use rlef_tests::{name, ran};

fn problems(arguments: &[&str]) -> (i32, String, String) {
    ran(&[&["problems"], arguments].concat())
}

fn said(arguments: &[&str]) -> String {
    let (code, stdout, stderr) = problems(arguments);
    assert_eq!(code, 0, "{stderr}");
    stdout
}

#[test]
fn a_generated_family_is_the_one_of_that_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("a/b");
    let text = said(&["generate", "micro", "--seed", "3", "--out", name(&out)]);
    assert_eq!(text.lines().count(), 3, "{text}");
    for split in ["train", "valid", "test"] {
        let written = said(&["list", name(&out), "--split", split]);
        assert_eq!(written, said(&["list", "micro:3", "--split", split]));
        assert!(written.lines().count() > 100);
    }
    let test = std::fs::read(out.join("test.jsonl")).expect("a file");
    let again = folder.path().join("again");
    said(&["generate", "micro", "--seed", "3", "--out", name(&again)]);
    assert_eq!(
        std::fs::read(again.join("test.jsonl")).expect("a file"),
        test
    );
}

#[test]
fn files_are_replaced_only_by_force() {
    let folder = tempfile::tempdir().expect("a folder");
    let mine = folder.path().join("test.jsonl");
    std::fs::write(&mine, "mine").expect("a file");
    let arguments = ["generate", "micro", "--out", name(folder.path())];
    let (code, _, stderr) = problems(&arguments);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("test.jsonl is there already; --force"),
        "{stderr}"
    );
    assert_eq!(std::fs::read(&mine).expect("a file"), b"mine");
    assert!(
        !folder.path().join("train.jsonl").exists(),
        "nothing is written by halves"
    );
    said(&[&arguments[..], &["--force"]].concat());
    assert!(std::fs::read(&mine).expect("a file").len() > 1000);
}

#[test]
fn lists() {
    let sets = said(&["list"]);
    assert!(sets.starts_with("basics  all "), "{sets}");
    assert!(sets.contains("micro   train "), "{sets}");
    let basics = said(&["list", "basics"]);
    assert!(
        basics.lines().any(|line| line.starts_with("double-it ")),
        "{basics}"
    );
    let (code, _, stderr) = problems(&["list", "basics", "--split", "train"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("no split `train`"), "{stderr}");
    assert_eq!(problems(&["list", "nosuch"]).0, 2);
}

#[test]
fn a_problem_is_shown_with_its_tests() {
    insta::assert_snapshot!(said(&["show", "double-it"]), @"
    double-it (basics): Double it

    One line holds an integer n (-1000000000 to 1000000000). Print twice its value.

    2 s CPU, 256 MiB, compared by tokens; 1 right and 2 wrong solutions

    public/1: input
      7
    public/1: output
      14

    public/2: input
      -3
    public/2: output
      -6

    5 private tests (--private shows them)
    ");
    let all = said(&["show", "double-it", "--private"]);
    assert!(all.contains("private/5: output"), "{all}");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let script = r#""$0" problems list micro | head -n 1; exit "${PIPESTATUS[0]}""#;
    let output = std::process::Command::new("bash")
        .args(["-c", script])
        .arg(rlef_tests::rlef().get_program())
        .output()
        .expect("bash starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*stderr), (Some(0), ""));
}
