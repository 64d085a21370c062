//! Every algorithm by its name, on the embedded default; and settings that an algorithm would not use.

use std::path::Path;

use rlef_tests::{name, ran};
use serde_json::{Map, Value};

const SETTINGS: [&str; 6] = [
    "rollout.max_new_tokens=40",
    "ppo.minibatches=2",
    "eval.every=0",
    "eval.test_problems=2",
    "optimiser.warmup_updates=0",
    "checkpoint_every=0",
];

fn train(out: &Path, sets: &[&str]) -> (i32, String, String) {
    let mut arguments = vec!["train", "--iterations", "2", "--seed", "5"];
    for set in SETTINGS.iter().chain(sets) {
        arguments.extend(["--set", set]);
    }
    arguments.extend(["--out", name(out)]);
    ran(&arguments)
}

fn metrics(run: &Path) -> Vec<Map<String, Value>> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).expect("metrics");
    let lines = text.lines().map(|l| serde_json::from_str(l).expect("JSON"));
    lines.collect()
}

#[test]
fn every_algorithm_runs_by_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    for algorithm in ["ppo", "grpo", "rloo", "dr_grpo", "dapo", "grpo_plus_plus"] {
        let out = folder.path().join(algorithm);
        let choice = format!("algorithm={algorithm}");
        let mut sets = vec![&*choice, "rollout.problems=8"];
        if algorithm != "ppo" {
            sets.extend(["rollout.problems=4", "rollout.per_problem=4"]);
        }
        if algorithm == "dapo" {
            sets.push("rollout.refills=1");
        }
        let (code, _, stderr) = train(&out, &sets);
        assert_eq!(code, 0, "{algorithm}: {stderr}");
        let lines = metrics(&out);
        assert_eq!(lines.len(), 2, "{algorithm}");
        for line in &lines {
            let has = |key: &str| line.contains_key(key);
            assert!(has("reward") && has("fault_rate"), "{algorithm}: {line:?}");
            // A value only where one is learned; silent groups only where there are groups.
            assert_eq!(has("critic/vf_explained_var"), algorithm == "ppo");
            assert_eq!(has("frac_reward_zero_std"), algorithm != "ppo");
            assert_eq!(has("rollout/groups_kept"), algorithm == "dapo");
        }
        let moved = std::fs::read(out.join("checkpoint/model.safetensors")).expect("weights");
        let base = rlef_tests::root().join("configs/tiny/base/model.safetensors");
        assert_ne!(moved, std::fs::read(base).expect("weights"), "{algorithm}");
        let value = out.join("checkpoint/value.safetensors").exists();
        assert_eq!(value, algorithm == "ppo");
    }
}

#[test]
fn ablations_run() {
    let folder = tempfile::tempdir().expect("a folder");
    for (i, sets) in [
        &["ppo.value_level=token", "ppo.gamma=0.99", "ppo.lambda=0.95"][..],
        &["ppo.kl=loss", "ppo.kl_estimator=k3"],
        &["episode.max_turns=1"],
        &["episode.feedback=none"],
        &["ppo.normalise=group", "rollout.per_problem=2"],
        &["ppo.off_policy=truncated", "ppo.truncated=penalise"],
        &[
            "ppo.truncated=mask",
            "ppo.minibatches=4",
            "ppo.max_staleness=1",
        ],
        &[
            "ppo.value=separate",
            "ppo.aggregation=sequence_mean_token_mean",
        ],
    ]
    .into_iter()
    .enumerate()
    {
        let out = folder.path().join(i.to_string());
        let sets = [&["rollout.problems=8"], sets].concat();
        let (code, _, stderr) = train(&out, &sets);
        assert_eq!(code, 0, "{sets:?}: {stderr}");
        let lines = metrics(&out);
        let masked = lines[0]["actor/masked"].as_f64().expect("a number");
        if sets.contains(&"ppo.max_staleness=1") {
            // Of four equal updates the last two are on tokens that are 2 and 3 updates behind.
            assert!(masked > 0.3, "{masked}");
            let stalest = &lines[0]["training/off_policy/trajectory_staleness/max"];
            assert_eq!(stalest.as_f64(), Some(3.0));
        } else {
            assert!(
                masked == 0.0 || sets.contains(&"ppo.truncated=mask"),
                "{masked}"
            );
        }
    }
}

#[test]
fn a_setting_that_would_have_no_effect_is_refused() {
    for (sets, key) in [
        (
            &["algorithm=grpo", "ppo.value_clip=0.3"][..],
            "ppo.value_clip",
        ),
        (&["algorithm=rloo", "ppo.lambda=0.9"], "ppo.lambda"),
        (&["algorithm=dapo", "ppo.value=separate"], "ppo.value"),
        (
            &["algorithm=dr_grpo", "ppo.kl_estimator=k2"],
            "ppo.kl_estimator",
        ),
        (
            &["algorithm=grpo", "rollout.per_problem=1"],
            "rollout.per_problem",
        ),
        (&["rollout.refills=2"], "rollout.refills"),
        (&["ppo.sequence_length=100"], "ppo.sequence_length"),
        (&["ppo.off_policy_cap=3"], "ppo.off_policy_cap"),
        (&["ppo.truncation_penalty=0.5"], "ppo.truncation_penalty"),
        (&["ppo.normalise=group"], "rollout.per_problem"),
        (&["ppo.max_staleness=3"], "ppo.max_staleness"),
        (&["ppo.beta=0", "ppo.kl=loss"], "ppo.kl"),
    ] {
        let mut arguments = vec!["train", "--dry-run"];
        for set in sets {
            arguments.extend(["--set", set]);
        }
        let (code, _, stderr) = ran(&arguments);
        assert_eq!(code, 2, "{sets:?}");
        assert!(stderr.contains(&format!("`{key}`")), "{sets:?}: {stderr}");
    }
}
