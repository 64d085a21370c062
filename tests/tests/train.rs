//! `rlef train` and `rlef eval`: one seed, one result; what is typed wrongly is said; ctrl-C loses nothing.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use rlef_tests::name;
use serde_json::{Map, Value};

const MODEL: &str = "tiny";

/// Small enough for seconds.
const SMALL: [&str; 16] = [
    "--model",
    MODEL,
    "--seed",
    "3",
    "--set",
    "rollout.problems=8",
    "--set",
    "ppo.minibatches=2",
    "--set",
    "eval.every=1",
    "--set",
    "eval.valid_problems=4",
    "--set",
    "eval.test_problems=4",
    "--set",
    "optimiser.warmup_updates=0",
];

/// Each line of the metrics, without the times.
fn metrics(run: &Path) -> Vec<Map<String, Value>> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).expect("metrics");
    text.lines()
        .map(|line| {
            let mut line: Map<String, Value> = serde_json::from_str(line).expect("JSON");
            line.retain(|key, _| !key.starts_with("timing_s/") && !key.starts_with("perf/"));
            line
        })
        .collect()
}

#[test]
fn one_seed_one_training() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = ["a", "b"].map(|run| folder.path().join(run));
    for run in &runs {
        Command::from_std(rlef_tests::rlef())
            .args(["train", "--iterations", "2", "--out", name(run)])
            .args(SMALL)
            .assert()
            .success();
    }
    let [a, b] = runs.each_ref().map(|run| metrics(run));
    assert_eq!(a, b);
    let steps = a.iter().filter(|line| line.contains_key("reward"));
    assert_eq!(steps.count(), 2);
    for file in [
        "checkpoint/model.safetensors",
        "results.json",
        "results.md",
        "config.toml",
    ] {
        let [a, b] = runs
            .each_ref()
            .map(|run| std::fs::read(run.join(file)).expect(file));
        assert!(a == b && !a.is_empty(), "{file} differs or is empty");
    }
    let svg = std::fs::read_to_string(runs[0].join("curve.svg")).expect("a curve");
    assert!(svg.starts_with("<svg"));
    // The weights have moved, or equality would say nothing.
    let base = rlef_tests::root().join("configs/tiny/base/model.safetensors");
    let base = std::fs::read(base).expect("the embedded model");
    let trained = std::fs::read(runs[0].join("checkpoint/model.safetensors")).expect("weights");
    assert_ne!(base, trained);
    same_from_the_command_line(&runs[0]);
}

/// Each dialog of the table at the end, measured again from the command line, gives the same numbers.
fn same_from_the_command_line(run: &Path) {
    let text = std::fs::read(run.join("results.json")).expect("results");
    let results: Value = serde_json::from_slice(&text).expect("JSON");
    let config = run.join("config.toml");
    let checkpoint = run.join("checkpoint");
    for (condition, more) in [
        ("base", &[][..]),
        ("trained", &["--model", name(&checkpoint)]),
        (
            "trained, random feedback",
            &["--model", name(&checkpoint), "--feedback", "random"],
        ),
    ] {
        let output = Command::from_std(rlef_tests::rlef())
            .args(["eval", "--json", "--limit", "4", "--config", name(&config)])
            .args(more)
            .assert()
            .success()
            .get_output()
            .clone();
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let conditions = results["conditions"].as_array().expect("conditions");
        let known = conditions.iter().find(|c| c["name"] == condition);
        let known = &known.expect("the condition")["scores"][2];
        assert_eq!(&report["score"], known, "{condition}");
    }
}

/// Steps far too long: the weights that are kept are not those that they made.
#[test]
fn what_a_failed_iteration_did_to_the_weights_is_undone() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let output = Command::from_std(rlef_tests::rlef())
        .args(["train", "--iterations", "3", "--out", name(&run)])
        .args(SMALL)
        .args(["--set", "optimiser.lr=1e30"])
        .output()
        .expect("rlef starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("stopped in iteration 1") && stderr.contains("weights after iteration 0"),
        "{stderr}"
    );
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("1@3 (valid)"), "the table so far: {stdout}");
    assert!(run.join("curve.svg").exists());
    let base = rlef_tests::root().join("configs/tiny/base/model.safetensors");
    let base = std::fs::read(base).expect("the embedded model");
    let kept = std::fs::read(run.join("checkpoint/model.safetensors")).expect("weights");
    assert!(base == kept, "the weights have moved");
}

/// A limit on the size of files comes as a signal that would kill; what was measured must come out all the same.
#[test]
fn a_limit_on_files_costs_the_checkpoint_and_not_the_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let rlef = rlef_tests::rlef();
    let output = Command::new("sh")
        .current_dir(rlef_tests::root())
        .args(["-c", "ulimit -f 4000; exec \"$@\"", "sh"])
        .arg(rlef.get_program())
        .args(["train", "--iterations", "1", "--out", name(&run)])
        .args(SMALL)
        // Programs get no more than their caller has itself.
        .args(["--set", "judge.file_bytes=65536"])
        .output()
        .expect("sh starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("cannot save"), "{stderr}");
    assert!(stdout.contains("trained, random feedback"), "{stdout}");
    assert!(run.join("results.json").exists());
}

#[test]
fn measuring_on_what_was_learned_from_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    for (split, warned) in [("test", true), ("train", false)] {
        let out = folder.path().join(split);
        let output = Command::from_std(rlef_tests::rlef())
            .args(["train", "--dry-run", "--out", name(&out)])
            .args(["--set", &format!("train_split={split}")])
            .assert()
            .success()
            .get_output()
            .clone();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.contains("480 of the 480"), warned, "{said}");
    }
}

#[test]
fn one_seed_one_evaluation() {
    let evaluate = |seed: &str| {
        let output = Command::from_std(rlef_tests::rlef())
            .args([
                "eval", "--model", MODEL, "--limit", "6", "--json", "--seed", seed,
            ])
            .assert()
            .success()
            .get_output()
            .clone();
        output.stdout
    };
    let first = evaluate("1");
    assert_eq!(first, evaluate("1"));
    let report: Value = serde_json::from_slice(&first).expect("JSON");
    let value = report["score"]["value"].as_f64();
    assert!(value.is_some_and(|v| (0.0..=1.0).contains(&v)), "{report}");
    assert_eq!(report["config"]["seed"], 1);
}

#[test]
fn a_plan_can_be_run_as_a_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = |arguments: &[&str]| {
        let output = Command::from_std(rlef_tests::rlef())
            .args(["train", "--dry-run"])
            .args(arguments)
            .assert()
            .success()
            .get_output()
            .clone();
        String::from_utf8(output.stdout).expect("text")
    };
    let text = plan(&[&SMALL[..], &["--iterations", "7"]].concat());
    assert!(
        text.contains("iterations = 7\n") && text.contains("seed = 3\n"),
        "{text}"
    );
    let file = folder.path().join("plan.toml");
    std::fs::write(&file, &text).expect("a file");
    assert_eq!(plan(&["--config", name(&file)]), text);
    for arguments in [
        &["eval", "--model", MODEL][..],
        &["sft", "--out", name(&folder.path().join("at/all"))],
    ] {
        let output = Command::from_std(rlef_tests::rlef())
            .args(arguments)
            .arg("--dry-run")
            .assert()
            .success()
            .get_output()
            .clone();
        assert!(!output.stdout.is_empty());
    }
}

/// Ends the process when a test fails half-way.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait(what: &str, seconds: u64, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < Duration::from_secs(seconds),
            "waited {seconds} s for {what}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn ctrl_c_leaves_a_checkpoint_that_can_be_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("my run");
    let mut command = rlef_tests::rlef();
    command
        .args(["train", "--iterations", "100000", "--out", name(&run)])
        .args(SMALL)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut train = Running(command.spawn().expect("rlef starts"));
    let log = run.join("metrics.jsonl");
    wait("the first iteration", 120, || {
        assert_eq!(
            train.0.try_wait().expect("a process"),
            None,
            "training ended by itself"
        );
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("\"reward\""))
    });
    let signalled = std::process::Command::new("kill")
        .args(["-INT", &train.0.id().to_string()])
        .status()
        .expect("kill starts");
    assert!(signalled.success());
    let mut ended = None;
    wait("the end", 120, || {
        ended = train.0.try_wait().expect("a process");
        ended.is_some()
    });
    assert_eq!(ended.and_then(|status| status.code()), Some(130));
    let mut said = String::new();
    let mut out = train.0.stdout.take().expect("stdout");
    std::io::Read::read_to_string(&mut out, &mut said).expect("text");
    // The command that it suggests measures with the run's own settings, whatever the folder is called.
    let suggested = said.split('`').nth(1).expect("a command").to_owned();
    let plan = std::process::Command::new("sh")
        .current_dir(rlef_tests::root())
        .args([
            "-c",
            &format!(
                "rlef() {{ {} \"$@\"; }}; {suggested} --dry-run",
                name(Path::new(rlef_tests::rlef().get_program()))
            ),
        ])
        .output()
        .expect("sh starts");
    let plan = String::from_utf8_lossy(&plan.stdout).into_owned();
    assert!(
        plan.contains("1@3 of ")
            && plan.contains(name(&run))
            && plan.contains("480 problems of micro (test)"),
        "{suggested}: {plan}"
    );
    Command::from_std(rlef_tests::rlef())
        .args([
            "eval",
            "--limit",
            "2",
            "--model",
            name(&run.join("checkpoint")),
        ])
        .assert()
        .success();
}

/// Stopped among its updates, a model in the making is kept, and the exit code says that it is not the whole.
#[test]
fn a_model_in_the_making_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("model");
    let mut command = rlef_tests::rlef();
    command
        .args(["sft", "--problems", "basics", "--out", name(&out)])
        .args(["--set", "train_split=all", "--set", "epochs=100000"])
        .args(["--set", "dialogs_per_problem=1", "--set", "model.layers=1"])
        .args(["--set", "model.positions=8192"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut sft = Running(command.spawn().expect("rlef starts"));
    let stderr = sft.0.stderr.take().expect("stderr");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stderr));
    // Off a terminal progress is said every ten seconds.
    let begun = lines.find(|l| l.as_ref().is_ok_and(|l| l.starts_with("updates ")));
    begun.expect("updates").expect("text");
    let signalled = std::process::Command::new("kill")
        .args(["-INT", &sft.0.id().to_string()])
        .status()
        .expect("kill starts");
    assert!(signalled.success());
    let said: Vec<String> = lines.map_while(Result::ok).collect();
    let status = sft.0.wait().expect("a process");
    assert_eq!(status.code(), Some(130), "{said:?}");
    assert!(
        said.iter().any(|l| l.contains("not what its recipe makes")),
        "{said:?}"
    );
    Command::from_std(rlef_tests::rlef())
        .args(["eval", "--limit", "1", "--model", name(&out)])
        .assert()
        .success();
}
