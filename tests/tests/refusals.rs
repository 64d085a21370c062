//! What cannot work is said before the work begins, once, with the same words whether or not it is only a plan.

use std::path::Path;

use assert_cmd::Command;
use rlef_tests::rlef;
use serde_json::Value;

/// What a command that refuses says.
fn refusal(arguments: &[&str]) -> String {
    let output = Command::from_std(rlef())
        .args(arguments)
        .timeout(std::time::Duration::from_secs(60))
        .assert()
        .code(2)
        .get_output()
        .clone();
    let said = String::from_utf8(output.stderr).expect("text");
    let error = said.lines().find_map(|l| l.strip_prefix("error: "));
    error
        .unwrap_or_else(|| panic!("{arguments:?}: {said}"))
        .to_owned()
}

/// The same refusal from the plan and from the run.
fn refused(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("run");
    let mut all = arguments.to_vec();
    if ["train", "sft"].contains(&arguments[0]) {
        all.extend(["--out", out.to_str().expect("plain text")]);
    }
    let run = refusal(&all);
    all.push("--dry-run");
    assert_eq!(refusal(&all), run);
    assert!(!out.exists(), "{arguments:?} left a run folder");
    run
}

#[test]
fn a_plan_refuses_what_the_run_would() {
    let cases: [(&[&str], &str); 14] = [
        (&["train", "--model", "llama3-70b"], "llama3-70b"),
        (&["train", "--device", "tpu"], "use cpu, cuda"),
        (&["train", "--set", "eval.test_split=tset"], "tset"),
        (&["train", "--set", "eval.valid_split=vlaid"], "vlaid"),
        (&["train", "--workers", "100000"], "workers"),
        (
            &["train", "--set", "judge.time_factor=-1"],
            "judge.time_factor",
        ),
        (&["train", "--set", "judge.wall_factor=1e300"], "wall-clock"),
        (
            &["train", "--set", "episode.max_turns=0"],
            "`episode.max_turns`",
        ),
        (
            &["train", "--set", "rollout.max_new_tokens=500"],
            "the prompt of problem",
        ),
        (&["eval", "--model", "llama3-70b"], "llama3-70b"),
        (&["eval", "--device", "tpu"], "use cpu, cuda"),
        (
            &["debug", "double-it", "--model", "llama3-70b"],
            "llama3-70b",
        ),
        (&["sft", "--set", "optimiser.lr=-1"], "optimiser.lr"),
        (&["sft", "--device", "tpu"], "use cpu, cuda"),
    ];
    for (arguments, wanted) in cases {
        let said = refused(arguments);
        assert!(said.contains(wanted), "{arguments:?}: {said}");
    }
}

#[test]
fn settings_that_a_command_does_not_use_are_refused() {
    for command in ["eval", "debug"] {
        let problem: &[&str] = if command == "debug" {
            &["double-it"]
        } else {
            &[]
        };
        for set in [
            "ppo.clip=0.1",
            "optimiser.lr=1",
            "iterations=3",
            "eval.every=1",
        ] {
            let said = refused(&[&[command], problem, &["--set", set]].concat());
            let key = set.split('=').next().expect("a key");
            assert!(said.contains(key) && said.contains("no effect"), "{said}");
        }
    }
}

#[test]
fn a_device_or_folder_in_place_of_a_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("model");
    std::fs::create_dir(&model).expect("a folder");
    let base = rlef_tests::root().join("configs/tiny/base");
    for file in ["config.json", "tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(base.join(file), model.join(file)).expect(file);
    }
    std::os::unix::fs::symlink("/dev/zero", model.join("model.safetensors")).expect("a link");
    let model = model.to_str().expect("plain text");
    let zero = folder.path().join("zero.jsonl");
    std::os::unix::fs::symlink("/dev/zero", &zero).expect("a link");
    let zero = zero.to_str().expect("plain text");
    for arguments in [
        &["train", "--config", "/dev/zero", "--dry-run"][..],
        &["train", "--config", "/", "--dry-run"],
        &["run", "/dev/zero"],
        &["judge", "double-it", "/dev/zero"],
        &["eval", "--model", model],
        &["eval", "--problems", zero],
    ] {
        let said = refusal(arguments);
        let named = ["/dev/zero", "model.safetensors", "zero.jsonl", "/"];
        assert!(named.iter().any(|n| said.contains(n)), "{said}");
    }
}

#[test]
fn an_error_says_each_thing_once() {
    for arguments in [
        &["train", "--config", "no-such.toml"][..],
        &["run", "no-such.py"],
        &["judge", "double-it", "no-such.py"],
        &["eval", "--problems", "no-such.jsonl"],
        &["eval", "--model", "crates"],
    ] {
        let said = refusal(arguments);
        assert_eq!(said.matches("No such file").count(), 1, "{said}");
    }
}

/// What stands in a file may be anything, also what would steer a terminal.
#[test]
fn an_error_shows_nothing_raw_of_what_it_is_about() {
    let folder = tempfile::tempdir().expect("a folder");
    let evil = "\u{1b}]0;evil\u{7}";
    let problems = folder.path().join("set.jsonl");
    let line = serde_json::json!({ "id": "a", "statement": "x", "checker": { "kind": evil } });
    std::fs::write(&problems, line.to_string()).expect("a file");
    let config = folder.path().join("c.toml");
    std::fs::write(&config, "\"\\u001b]0;evil\\u0007\" = 1\n").expect("a file");
    for arguments in [
        &["problems", "list", problems.to_str().expect("plain text")][..],
        &["train", "--config", config.to_str().expect("plain text")],
    ] {
        let said = refusal(arguments);
        assert!(
            said.contains("evil") && !said.contains('\u{1b}'),
            "{said:?}"
        );
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("dialogs");
    text.lines()
        .map(|l| serde_json::from_str(l).expect("JSON"))
        .collect()
}

/// The answers are short; it is the room kept for the longest possible one that a second turn does not find.
#[test]
fn a_dialog_that_outgrows_the_model_ends_unsolved_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("dialogs.jsonl");
    let dialogs = file.to_str().expect("plain text");
    Command::from_std(rlef())
        .args(["eval", "--limit", "24", "--dialogs", dialogs])
        .args(["--set", "rollout.max_new_tokens=440"])
        .assert()
        .success();
    let dialogs = lines(&file);
    assert_eq!(dialogs.len(), 24);
    let mut ended = 0;
    for dialog in &dialogs {
        let turns = dialog["turns"].as_array().expect("turns");
        if dialog["full"] == true {
            ended += 1;
            let last = turns.last().expect("a turn");
            assert_eq!(dialog["solved"], false);
            assert_eq!(last["step"]["done"], true);
            assert_eq!(last["step"]["reward"], -1.0);
            assert!(turns.len() < 3);
            let messages = dialog["messages"].as_array().expect("messages");
            assert_eq!(messages.len(), 2 * turns.len(), "it ends with the answer");
        }
    }
    assert!(ended > 0, "no dialog outgrew the model");
}
