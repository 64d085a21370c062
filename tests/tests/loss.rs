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

/// A model that is to be replaced stays as it was until the new one is whole.
#[test]
fn a_model_that_cannot_be_replaced_is_left_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("model");
    std::fs::create_dir(&model).expect("a folder");
    let base = rlef_tests::root().join("configs/tiny/base");
    let files = [
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "model.safetensors",
    ];
    for file in files {
        std::fs::copy(base.join(file), model.join(file)).expect(file);
    }
    let out = std::process::Command::new("sh")
        .current_dir(rlef_tests::root())
        // In blocks of 512 bytes: the small files fit, the weights do not.
        .args(["-c", "ulimit -f 400; exec \"$@\"", "sh"])
        .arg(rlef().get_program())
        .args(["sft", "--force", "--problems", "basics", "--out"])
        .arg(&model)
        .args(["--set", "train_split=all", "--set", "epochs=1"])
        .args([
            "--set",
            "dialogs_per_problem=1",
            "--set",
            "model.positions=8192",
        ])
        .args(["--set", "judge.file_bytes=65536"])
        .output()
        .expect("sh starts");
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("model.safetensors"), "{said}");
    for file in files {
        let (old, new) = (
            std::fs::read(base.join(file)),
            std::fs::read(model.join(file)),
        );
        assert!(old.expect(file) == new.expect(file), "{file} has changed");
    }
    assert_eq!(
        std::fs::read_dir(&model).expect("a folder").count(),
        files.len()
    );
}

/// `nohup` and shells' `&` have signals ignored; a long run must go on.
#[test]
fn a_signal_that_was_ignored_stays_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let script = format!(
        "trap '' HUP; \"$@\" & while ! [ -s {0}/metrics.jsonl ]; do sleep 0.1; done; kill -HUP $!; wait $!",
        run.display()
    );
    let out = std::process::Command::new("sh")
        .args(["-c", &script, "sh"])
        .arg(rlef().get_program())
        .args(train(&run).get_args())
        .current_dir(rlef_tests::root())
        .output()
        .expect("sh starts");
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(run.join("results.json").exists());
}

#[test]
fn a_run_folder_that_is_removed_is_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let mut command = train(&run);
    command.stderr(Stdio::piped()).stdout(Stdio::null());
    let child = command.spawn().expect("rlef starts");
    let metrics = run.join("metrics.jsonl");
    let start = std::time::Instant::now();
    while !metrics.exists() {
        assert!(start.elapsed().as_secs() < 60, "no run folder");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::fs::remove_dir_all(&run).expect("removed");
    let out = child.wait_with_output().expect("ended");
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(said.contains("was removed"), "{said}");
    for file in ["config.toml", "metrics.jsonl", "results.json"] {
        assert!(run.join(file).exists(), "no {file}");
    }
}
