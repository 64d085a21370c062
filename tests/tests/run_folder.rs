//! What a run leaves behind is what others read: TensorBoard, trackio, supervised fine-tuning.

use std::path::Path;
use std::process::Command;

use rlef_tests::{name, ran};

fn train(out: &Path) {
    let mut arguments = vec![
        "train",
        "--iterations",
        "2",
        "--seed",
        "3",
        "--out",
        name(out),
    ];
    for set in [
        "rollout.problems=24",
        "ppo.minibatches=2",
        "eval.every=1",
        "eval.valid_problems=4",
        "eval.test_problems=2",
    ] {
        arguments.extend(["--set", set]);
    }
    let (code, _, stderr) = ran(&arguments);
    assert_eq!(code, 0, "{stderr}");
}

/// Runs a Python script on the run's folder. `RLEF_TEST_PYTHON` names an interpreter that has the packages; without them
/// there is nothing to test with, which is said.
fn python(package: &str, script: &str, run: &Path) -> Option<String> {
    let python = std::env::var("RLEF_TEST_PYTHON").unwrap_or("python3".into());
    let has = Command::new(&python)
        .args(["-c", &format!("import {package}")])
        .output();
    if !has.is_ok_and(|o| o.status.success()) {
        eprintln!("skipped: {python} has no {package}");
        return None;
    }
    let output = Command::new(&python)
        .args(["-c", script, name(run)])
        .env("TRACKIO_DIR", run.join("trackio"))
        .output()
        .expect("python starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The reward of each iteration, as `metrics.jsonl` has it.
fn rewards(run: &Path) -> Vec<(u64, f64)> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).expect("metrics");
    text.lines()
        .filter_map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            Some((line["step"].as_u64()?, line["reward"].as_f64()?))
        })
        .collect()
}

const TENSORBOARD: &str = "
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1] + '/tensorboard')
events.Reload()
tags = events.Tags()['scalars']
assert 'timing_s/step' in tags and 'val/1@3' in tags, tags
print(json.dumps([[e.step, e.value] for e in events.Scalars('reward')]))
";

const TRACKIO: &str = "
import json, sys
from trackio.sqlite_storage import SQLiteStorage
SQLiteStorage.migrate_all_projects()
assert SQLiteStorage.get_projects() == ['rlef'], SQLiteStorage.get_projects()
runs = SQLiteStorage.get_runs('rlef')
assert runs == ['run'], runs
logs = SQLiteStorage.get_logs('rlef', 'run')
assert any('timing_s/step' in l for l in logs) and any('val/1@3' in l for l in logs)
config = SQLiteStorage.get_run_config('rlef', 'run')
assert config['seed'] == 3, config
print(json.dumps([[l['step'], l['reward']] for l in logs if 'reward' in l]))
";

#[test]
fn tensorboard_and_trackio_read_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    train(&run);
    let want = rewards(&run);
    assert_eq!(want.len(), 2);
    for (package, script) in [("tensorboard", TENSORBOARD), ("trackio", TRACKIO)] {
        if let Some(out) = python(package, script, &run) {
            let read: Vec<(u64, f64)> = serde_json::from_str(&out).expect("JSON");
            let close = |a: &(u64, f64), b: &(u64, f64)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-6;
            let all = read.len() == want.len() && read.iter().zip(&want).all(|(a, b)| close(a, b));
            assert!(all, "{package}: {read:?}, not {want:?}");
        }
    }
}

#[test]
fn a_model_is_tuned_on_a_runs_successes_and_on_dialogs() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    train(&run);
    let base = std::fs::read(rlef_tests::root().join("configs/tiny/base/model.safetensors"));
    let base = base.expect("the embedded model");
    let usable = |out: &Path| {
        let weights = std::fs::read(out.join("model.safetensors")).expect("weights");
        assert!(weights != base, "{} has not moved", out.display());
        let (code, _, stderr) = ran(&["eval", "--limit", "1", "--model", name(out)]);
        assert_eq!(code, 0, "{stderr}");
    };
    let out = folder.path().join("rejection");
    let (code, stdout, stderr) = ran(&[
        "sft",
        "--from-run",
        name(&run),
        "--out",
        name(&out),
        "--set",
        "batch=4",
    ]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("48 episodes"), "{stdout}");
    usable(&out);

    let dialogs = folder.path().join("dialogs.jsonl");
    let (code, _, stderr) = ran(&["eval", "--limit", "24", "--dialogs", name(&dialogs)]);
    assert_eq!(code, 0, "{stderr}");
    let out = folder.path().join("dialogs");
    let arguments = ["sft", "--dialogs", name(&dialogs), "--out", name(&out)];
    let (code, _, stderr) = ran(&[&arguments[..], &["--set", "loss=answers"]].concat());
    assert_eq!(code, 0, "{stderr}");
    usable(&out);
    // What tuning has no use for is no setting of it.
    let (code, _, stderr) =
        ran(&[&arguments[..], &["--force", "--set", "model.layers=2"]].concat());
    assert!(code == 2 && stderr.contains("unknown setting"), "{stderr}");
}
