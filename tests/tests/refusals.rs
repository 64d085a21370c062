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

/// Without what a disk has left, which may be another figure a moment later.
fn steady(said: &str) -> String {
    let words: Vec<&str> = said.split(' ').collect();
    let left = |i: usize| words.get(i + 1..i + 3) == Some(&["MiB", "left,"]);
    let kept = words
        .iter()
        .enumerate()
        .map(|(i, w)| if left(i) { "…" } else { w });
    kept.collect::<Vec<_>>().join(" ")
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
    assert_eq!(steady(&refusal(&all)), steady(&run));
    assert!(!out.exists(), "{arguments:?} left a run folder");
    run
}

#[test]
fn a_plan_refuses_what_the_run_would() {
    let cases: &[(&[&str], &str)] = &[
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
        (
            &["train", "--iterations", "9223372036854775807"],
            "`iterations`",
        ),
        (
            &["train", "--set", "rollout.problems=3000000000"],
            "`rollout.problems`",
        ),
        (
            &[
                "train",
                "--set",
                "rollout.problems=100000",
                "--set",
                "rollout.per_problem=100000",
            ],
            "`rollout.per_problem`",
        ),
        (
            &["train", "--set", "optimiser.lr=nan"],
            "`optimiser.lr` is NaN; it must be a number over 0",
        ),
        (&["sft", "--set", "model.heads=0"], "`model.heads`"),
        (&["sft", "--set", "model.kv_heads=3"], "num_key_value_heads"),
        (&["sft", "--set", "model.layers=0"], "`model.layers`"),
        (&["sft", "--set", "model.positions=0"], "`model.positions`"),
        (
            &["sft", "--set", "model.hidden_size=31"],
            "`model.hidden_size`",
        ),
        (
            &["sft", "--set", "model.vocab_size=256"],
            "`model.vocab_size`",
        ),
        (
            &["sft", "--set", "model.vocab_size=99999999999"],
            "`model.vocab_size`",
        ),
        (
            &["sft", "--set", "dialogs_per_problem=50000000"],
            "`dialogs_per_problem`",
        ),
        (&["eval", "--dialogs", "/no/where.jsonl"], "/no/where.jsonl"),
        (&["eval", "--dialogs", "/"], "is a folder"),
        (
            &["eval", "--temperature", "nan"],
            "`eval.temperature` is NaN",
        ),
        (
            &["eval", "--set", "judge.python=/no/such/python"],
            "/no/such/python",
        ),
    ];
    for (arguments, wanted) in cases {
        let said = refused(arguments);
        assert!(said.contains(wanted), "{arguments:?}: {said}");
    }
}

/// What is left changes between two looks, so that the words may differ.
#[test]
fn a_model_that_memory_cannot_hold_is_refused() {
    let shape = [
        "model.hidden_size=1048576",
        "model.intermediate_size=1048576",
    ];
    for more in [&["--dry-run"][..], &[]] {
        let mut arguments = vec!["sft", "--out", "runs/too-large", "--set", shape[0]];
        arguments.extend(["--set", shape[1]]);
        arguments.extend(more);
        let said = refusal(&arguments);
        assert!(said.contains("GiB of memory"), "{said}");
    }
}

#[test]
fn a_plan_knows_where_nothing_can_be_written() {
    for command in ["train", "sft"] {
        for out in ["/proc/run", "/dev/null/run", "/dev/null"] {
            let run = refused_at(command, out);
            assert!(run.contains("/proc") || run.contains("/dev/null"), "{run}");
        }
    }
}

/// What this process may not do itself it cannot allow to programs.
#[test]
fn a_plan_knows_the_limits_that_it_runs_under() {
    for command in [&["train", "--dry-run"][..], &["eval", "--dry-run"]] {
        let output = std::process::Command::new("sh")
            .current_dir(rlef_tests::root())
            .args(["-c", "ulimit -f 200; exec \"$@\"", "sh"])
            .arg(rlef().get_program())
            .args(command)
            .output()
            .expect("sh starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("ulimit -f"), "{stderr}");
    }
}

/// A set of one problem.
fn one_problem(folder: &Path, name: &str, more: &Value) -> String {
    let mut problem = serde_json::json!({
        "id": "echo",
        "statement": "Print what you read.",
        "time_limit_s": 1.0,
        "memory_limit_mb": 256,
        "checker": { "kind": "lines" },
        "public_tests": [{ "input": "1\n", "output": "1\n" }],
        "private_tests": [{ "input": "2\n", "output": "2\n" }],
    });
    let more = more.as_object().expect("fields").clone();
    problem.as_object_mut().expect("fields").extend(more);
    let file = folder.join(format!("{name}.jsonl"));
    std::fs::write(&file, format!("{problem}\n")).expect("a file");
    file.to_str().expect("plain text").to_owned()
}

#[test]
fn a_plan_knows_what_problems_lack() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = one_problem(folder.path(), "one", &serde_json::json!({}));
    let calls = serde_json::json!([{ "input": "[1]", "output": "1" }]);
    let function = serde_json::json!({
        "function": "f",
        "checker": { "kind": "value" },
        "public_tests": calls,
        "private_tests": [{ "input": "[2]", "output": "2" }],
    });
    let function = one_problem(folder.path(), "function", &function);
    for (arguments, wanted) in [
        (
            &[
                "eval",
                "--problems",
                &set,
                "--split",
                "all",
                "--feedback",
                "random",
            ][..],
            "echo",
        ),
        (
            &[
                "eval",
                "--problems",
                &function,
                "--split",
                "all",
                "--set",
                "judge.command=[\"python3\", \"{file}\"]",
            ],
            "problem echo is solved by a function",
        ),
        (
            &["sft", "--problems", &set, "--set", "train_split=all"],
            "problem echo without stored programs",
        ),
    ] {
        let said = refused(arguments);
        assert!(said.contains(wanted), "{arguments:?}: {said}");
    }
}

/// A copy of the embedded model with one file changed.
fn model(folder: &Path, file: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> String {
    std::fs::create_dir_all(folder).expect("a folder");
    let base = rlef_tests::root().join("configs/tiny/base");
    for name in [
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "model.safetensors",
    ] {
        std::fs::copy(base.join(name), folder.join(name)).expect(name);
    }
    let path = folder.join(file);
    let changed = change(std::fs::read(&path).expect("a file"));
    std::fs::write(&path, changed).expect("a file");
    folder.to_str().expect("plain text").to_owned()
}

#[test]
fn a_model_that_cannot_answer_is_found_before_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let template = |text: &str| {
        let text = text.to_owned();
        move |file: Vec<u8>| {
            let mut config: Value = serde_json::from_slice(&file).expect("JSON");
            config["chat_template"] = text.into();
            config.to_string().into_bytes()
        }
    };
    let tokenizer = "tokenizer_config.json";
    let endless = "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}";
    let unasked = "{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content }}\
                   {% endif %}{% endfor %}";
    let damaged = |mut file: Vec<u8>| {
        let end = file.len() - 4;
        file[end..].copy_from_slice(&f32::NAN.to_le_bytes());
        file
    };
    let at = |name: &str| folder.path().join(name);
    let cases = [
        ("holds NaN", model(&at("a"), "model.safetensors", damaged)),
        ("drops an answer", model(&at("b"), tokenizer, template(""))),
        (
            "leaves out message 1",
            model(&at("c"), tokenizer, template(unasked)),
        ),
        ("fuel", model(&at("d"), tokenizer, template(endless))),
        (
            "cannot be used",
            model(&at("e"), "tokenizer.json", |file| {
                let mut json: Value = serde_json::from_slice(&file).expect("JSON");
                json["pre_tokenizer"] = serde_json::json!({ "type": "FixedLength", "length": 0 });
                json.to_string().into_bytes()
            }),
        ),
    ];
    for (words, model) in cases {
        let said = refused(&["eval", "--model", &model]);
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn names_of_any_length_are_taken_or_refused() {
    let key = format!("{}=1", vec!["a"; 40_000].join("."));
    assert!(refusal(&["train", "--dry-run", "--set", &key]).contains("unknown setting"));
    let long = "a".repeat(300);
    for out in [long.clone(), format!("runs/{long}/below")] {
        let said = refused_at("train", &out);
        assert!(said.contains("300 bytes"), "{said}");
        assert_eq!(
            refused_at("sft", &out),
            said.replace("run folder", "folder for the model")
        );
    }
}

/// The same refusal of an --out from the plan and from the run.
fn refused_at(command: &str, out: &str) -> String {
    let run = refusal(&[command, "--out", out]);
    assert_eq!(refusal(&[command, "--out", out, "--dry-run"]), run);
    run
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
    let said = refusal(&["eval", "--model", "crates"]);
    assert_eq!(said.matches("tokenizer_config.json").count(), 1, "{said}");
    for arguments in [
        &["train", "--config", "no-such.toml"][..],
        &["run", "no-such.py"],
        &["judge", "double-it", "no-such.py"],
        &["eval", "--problems", "no-such.jsonl"],
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

#[test]
fn what_is_typed_wrongly_names_the_nearest() {
    for (arguments, words) in [
        (
            &["train", "--set", "ppo.clp=0.1"][..],
            "unknown setting `ppo.clp`; did you mean `ppo.clip`?",
        ),
        (&["eval", "--set", "sed=1"], "did you mean `seed`?"),
        (
            &["sft", "--out", "/nowhere", "--set", "epoch=1"],
            "did you mean `epochs`?",
        ),
        (
            &["train", "--set", "ppo.clip=yes"],
            "`ppo.clip` takes a number, not the string \"yes\"",
        ),
        (
            &["train", "--set", "episode.feedback=loud"],
            "setting `episode.feedback`",
        ),
        (&["eval", "--top-p", "2"], "setting `eval.top_p` is 2"),
        (&["train", "--set", "ppo.clip=2"], "ppo.clip"),
        (&["train", "--problems", "mikro"], "no problem set `mikro`"),
        (&["eval", "--split", "tset"], "no split `tset`"),
        (&["eval", "--device", "gpu"], "gpu"),
        (&["eval", "--model", "/nowhere"], "neither `tiny`"),
        (&["train", "--config", "/nowhere.toml"], "/nowhere.toml"),
        (&["trian"], "unrecognized subcommand 'trian'"),
    ] {
        let said = refusal(arguments);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn nothing_of_somebody_elses_is_written_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path().to_str().expect("plain text");
    let mine = |file: &str| {
        let path = folder.path().join(file);
        std::fs::write(&path, "mine").expect("a file");
        path
    };
    let dialogs = mine("dialogs.jsonl");
    let files = [
        dialogs.clone(),
        mine("config.toml"),
        mine("model.safetensors"),
    ];
    let dialogs = dialogs.to_str().expect("plain text");
    let refused = |arguments: &[&str], words: &str| {
        let said = refusal(arguments);
        assert!(said.contains(words), "{arguments:?}: {said}");
    };
    refused(&["train", "--out", here], "is not empty");
    refused(&["sft", "--out", here], "--force replaces the model");
    // It fails after the file is known, and before there is anything to put into it.
    refused(
        &["eval", "--dialogs", dialogs, "--model", "/nowhere"],
        "neither `tiny`",
    );
    let metrics = mine("metrics.jsonl");
    refused(&["train", "--out", here], "already holds a run");
    for file in files.iter().chain([&metrics]) {
        assert_eq!(std::fs::read(file).expect("a file"), b"mine");
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
