//! Runs that are killed, damaged, forked and replayed: what is resumed equals what was never stopped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use rlef_tests::{name, ran, rlef};

/// Seconds for a whole run.
const SETTINGS: [&str; 8] = [
    "rollout.problems=8",
    "ppo.minibatches=2",
    "eval.every=2",
    "eval.valid_problems=4",
    "eval.test_problems=4",
    "optimiser.warmup_updates=0",
    "checkpoint_every=2",
    "checkpoint_keep=2",
];

fn train(out: &Path, iterations: &str, more: &[&str]) -> Command {
    let mut command = rlef();
    command
        .args(["train", "--seed", "3", "--iterations", iterations])
        .args(["--out", name(out)]);
    for set in SETTINGS.iter().chain(more) {
        command.args(["--set", set]);
    }
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn whole(out: &Path, iterations: &str, more: &[&str]) {
    let status = train(out, iterations, more).status().expect("rlef starts");
    assert!(status.success(), "{status}");
}

/// Everything that must not depend on when a run was stopped, byte for byte.
fn content(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut add = |path: PathBuf| {
        let key = path.strip_prefix(run).expect("in the run").display();
        all.insert(key.to_string(), std::fs::read(&path).expect("a file"));
    };
    for file in [
        "config.toml",
        "metrics.jsonl",
        "results.json",
        "results.md",
        "curve.svg",
        "checkpoint/model.safetensors",
        "checkpoint/value.safetensors",
    ] {
        add(run.join(file));
    }
    for entry in std::fs::read_dir(run.join("trajectories")).expect("trajectories") {
        add(entry.expect("an entry").path());
    }
    all
}

fn same(a: &Path, b: &Path) {
    let (a, b) = (content(a), content(b));
    assert!(a.keys().eq(b.keys()), "{:?} and {:?}", a.keys(), b.keys());
    for (file, bytes) in &a {
        assert!(!bytes.is_empty(), "{file} is empty");
        assert!(*bytes == b[file], "{file} differs");
    }
    let steps = a.keys().filter(|k| k.starts_with("trajectories/"));
    assert!(steps.count() > 1);
}

/// Kills a run `points` times, wherever it is, and lets it end: the same as one that was not disturbed.
fn killed(points: usize, iterations: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let (calm, hunted) = (folder.path().join("calm"), folder.path().join("hunted"));
    let start = Instant::now();
    whole(&calm, iterations, &[]);
    let took = start.elapsed();
    // Another run of the test kills at other points; what failed is said.
    let mut state = u64::from(std::process::id()) << 20 | 1;
    let mut killed_at = vec![];
    while killed_at.len() < points {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let share = (state >> 40) as f64 / (1u64 << 24) as f64;
        let wait = took.mul_f64(0.05 + 0.7 * share / points as f64 * 2.0);
        // Before there is a whole folder there is nothing to resume.
        let begun = hunted.join("metrics.jsonl").exists();
        if !begun {
            let _ = std::fs::remove_dir_all(&hunted);
        }
        let mut command = if begun {
            let mut command = rlef();
            command.args(["train", "--resume", name(&hunted)]);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command
        } else {
            train(&hunted, iterations, &[])
        };
        let mut child = command.spawn().expect("rlef starts");
        std::thread::sleep(wait);
        if child.try_wait().expect("a process").is_some() {
            break;
        }
        child.kill().expect("SIGKILL");
        child.wait().expect("a process");
        killed_at.push(wait);
    }
    assert!(!killed_at.is_empty());
    if !hunted.join("metrics.jsonl").exists() {
        let _ = std::fs::remove_dir_all(&hunted);
        whole(&hunted, iterations, &[]);
    } else {
        let (code, _, stderr) = ran(&["train", "--resume", name(&hunted)]);
        assert_eq!(code, 0, "killed after {killed_at:?}: {stderr}");
    }
    eprintln!("killed after {killed_at:?} of a run of {took:?}");
    same(&calm, &hunted);
}

#[test]
fn a_killed_run_ends_as_if_it_had_not_been() {
    killed(3, "5");
}

#[test]
#[ignore = "minutes; the short form is above"]
fn a_run_killed_ten_times_ends_as_if_it_had_not_been() {
    killed(10, "24");
}

#[test]
fn damage_is_said_and_the_last_good_checkpoint_used_when_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let (calm, run) = (folder.path().join("calm"), folder.path().join("run"));
    whole(&calm, "4", &[]);
    whole(&run, "4", &[]);
    let resume = |at: &str| ran(&["train", "--resume", &format!("{}{at}", name(&run))]);
    // The last one is whole: an earlier one would only lose work.
    let (code, _, stderr) = resume("@2");
    assert!(code == 2 && stderr.contains("later checkpoint"), "{stderr}");
    let weights = run.join("checkpoints/step_4/model.safetensors");
    let mut bytes = std::fs::read(&weights).expect("weights");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&weights, bytes).expect("weights");
    let (code, _, stderr) = resume("");
    let told = format!("--resume {}@2", name(&run));
    assert_eq!(code, 2, "{stderr}");
    for part in ["step_4 is damaged", "model.safetensors", "step_2", &told] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    let (code, _, stderr) = resume("@2");
    assert_eq!(code, 0, "{stderr}");
    same(&calm, &run);
    // Other settings would be another run.
    let (code, _, stderr) = ran(&["train", "--resume", name(&run), "--seed", "4"]);
    assert!(code == 2 && stderr.contains("--from"), "{stderr}");
}

/// As on a full disk: a limit on the size of files that the weights do not fit into.
#[test]
fn a_checkpoint_that_cannot_be_written_names_the_last_good_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    // Programs get no more than their caller has itself.
    whole(&run, "4", &["judge.file_bytes=65536"]);
    std::fs::remove_dir_all(run.join("checkpoints/step_4")).expect("a checkpoint");
    let output = Command::new("sh")
        .current_dir(rlef_tests::root())
        .args(["-c", "ulimit -f 4000; exec \"$@\"", "sh"])
        .arg(rlef().get_program())
        .args(["train", "--resume", name(&run)])
        .output()
        .expect("sh starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("cannot") && stderr.contains("the last good one is"),
        "{stderr}"
    );
    let left: Vec<_> = std::fs::read_dir(run.join("checkpoints"))
        .expect("checkpoints")
        .map(|e| e.expect("an entry").file_name())
        .collect();
    assert_eq!(left, ["step_2"]);
    let (code, _, stderr) = ran(&["train", "--resume", name(&run)]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn a_fork_begins_where_the_run_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    whole(&run, "4", &[]);
    let fork = |to: &Path, more: &[&str]| {
        let from = format!("{}@2", name(&run));
        let mut arguments = vec!["train", "--from", &from, "--out", name(to)];
        arguments.extend(more);
        ran(&arguments)
    };
    // With the same settings it is the same run.
    let same_again = folder.path().join("same");
    let (code, _, stderr) = fork(&same_again, &[]);
    assert_eq!(code, 0, "{stderr}");
    let read = |run: &Path, file: &str| std::fs::read(run.join(file)).expect("a file");
    for file in [
        "metrics.jsonl",
        "checkpoint/model.safetensors",
        "results.json",
    ] {
        assert!(read(&run, file) == read(&same_again, file), "{file}");
    }
    // With others it is another one from there on.
    let other = folder.path().join("other");
    let more = ["--set", "algorithm=rloo", "--set", "rollout.problems=2"];
    let (code, _, stderr) = fork(&other, &more);
    assert_eq!(code, 0, "{stderr}");
    let text = |run: &Path, file: &str| String::from_utf8(read(run, file)).expect("text");
    let config = text(&other, "config.toml");
    assert!(
        config.starts_with("# rlef ") && config.contains("@2"),
        "{config}"
    );
    assert!(config.contains("algorithm = \"rloo\""), "{config}");
    let (before, after) = (text(&run, "metrics.jsonl"), text(&other, "metrics.jsonl"));
    // Iterations 1 and 2, and the valid split before and after them.
    let shared = before
        .lines()
        .zip(after.lines())
        .take_while(|(a, b)| a == b);
    assert_eq!(shared.count(), 4, "{after}");
    assert!(after.contains("\"step\":4"), "{after}");
    for (wrong, said) in [
        (vec!["--iterations", "2"], "already of iteration 2"),
        (vec!["--model", "elsewhere"], "elsewhere"),
    ] {
        let (code, _, stderr) = fork(&folder.path().join("none"), &wrong);
        assert!(code == 2 && stderr.contains(said), "{stderr}");
    }
    let nowhere = format!("{}@3", name(&run));
    let (code, _, stderr) = ran(&["train", "--from", &nowhere]);
    assert!(code == 2 && stderr.contains("only of 2 and 4"), "{stderr}");
}

#[test]
fn a_replayed_update_gives_the_same_loss() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    whole(&run, "4", &[]);
    // 1: from the start; 3: from a checkpoint; 4: over an iteration between.
    for step in [1, 3, 4] {
        let (code, stdout, stderr) = ran(&["train", "--replay", &format!("{}@{step}", name(&run))]);
        assert_eq!(code, 0, "{stdout}{stderr}");
        assert!(
            stdout.contains("actor/pg_loss") && stdout.contains("the same to the last bit"),
            "{stdout}"
        );
    }
    // A number that was not what came out is found.
    let log = run.join("metrics.jsonl");
    let text = std::fs::read_to_string(&log).expect("metrics");
    let changed = text.replace("\"actor/pg_loss\":", "\"actor/pg_loss\":1");
    assert_ne!(text, changed);
    std::fs::write(&log, changed).expect("metrics");
    let (code, stdout, _) = ran(&["train", "--replay", &format!("{}@2", name(&run))]);
    assert!(code == 1 && stdout.contains("1 numbers differ"), "{stdout}");
    let (code, _, stderr) = ran(&["train", "--replay", &format!("{}@9", name(&run))]);
    assert!(code == 2 && stderr.contains("there are 1 to 4"), "{stderr}");
}
