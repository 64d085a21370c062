//! What was computed survives outputs that cannot be written.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use rlef_tests::rlef;

/// A training run of a few seconds into `out`.
fn train(out: &Path) -> Command {
    let mut command = rlef();
    command.args(["train", "--iterations", "1", "--seed", "3"]);
    for set in [
        "rollout.problems=4",
        "ppo.minibatches=1",
        "eval.every=0",
        "eval.test_problems=4",
        "checkpoint_every=1",
    ] {
        command.args(["--set", set]);
    }
    command.arg("--out").arg(out).stderr(Stdio::null());
    command
}

fn eval(more: &[&str]) -> Command {
    let mut command = rlef();
    command.args(["eval", "--limit", "2"]).args(more);
    command
}

#[test]
fn a_run_with_a_closed_or_full_output_leaves_its_results() {
    let folder = tempfile::tempdir().expect("a folder");
    let full = || {
        File::options()
            .write(true)
            .open("/dev/full")
            .expect("a full device")
    };
    let (reader, closed) = std::io::pipe().expect("a pipe");
    drop(reader);
    let outputs: [(&str, Stdio); 2] = [("closed", closed.into()), ("full", full().into())];
    for (name, stdout) in outputs {
        let out = folder.path().join(name);
        let status = train(&out).stdout(stdout).status().expect("rlef starts");
        assert!(status.success(), "{name}: {status}");
        for file in [
            "results.json",
            "results.md",
            "curve.svg",
            "checkpoint/model.safetensors",
        ] {
            assert!(out.join(file).exists(), "{name}: no {file}");
        }
    }
}

#[test]
fn a_score_is_printed_though_the_dialogs_cannot_be_written() {
    let out = eval(&["--dialogs", "/dev/full"])
        .output()
        .expect("rlef starts");
    assert_eq!(out.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&out.stdout).contains("1@3"),
        "{out:?}"
    );
    assert!(
        String::from_utf8_lossy(&out.stderr).contains("/dev/full"),
        "{out:?}"
    );
}

#[test]
fn a_path_that_cannot_be_written_is_said_before_the_work() {
    let out = eval(&["--dialogs", "/nonexistent/dialogs.jsonl"])
        .output()
        .expect("rlef starts");
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("/nonexistent/dialogs.jsonl"), "{said}");
    assert!(out.stdout.is_empty());
}

#[test]
fn absurd_numbers_are_refused_at_once() {
    for more in [
        ["--rollouts", "18446744073709551615"],
        ["--limit", "0"],
        ["--temperature", "-1"],
        ["--k", "0"],
        ["--n", "4"],
    ] {
        let mut command = rlef();
        let out = command
            .arg("eval")
            .args(more)
            .output()
            .expect("rlef starts");
        assert_eq!(out.status.code(), Some(2), "{more:?}");
        assert!(!out.stderr.is_empty() && out.stdout.is_empty(), "{more:?}");
    }
}
