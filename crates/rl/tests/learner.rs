//! The learner on a model small enough to look at: shards, the two kinds of value, what moves what.

use burn::tensor::Device;
use rlef_model::weights::Named;
use rlef_model::{Llama, LlamaConfig};
use rlef_rl::batch::Sample;
use rlef_rl::ppo::Clips;
use rlef_rl::{How, Learner, LossOn, LossSettings, Optimiser, ValueKind, score};

fn config() -> LlamaConfig {
    serde_json::from_str(
        r#"{"vocab_size": 20, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
            "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64,
            "tie_word_embeddings": true, "initializer_range": 0.2}"#,
    )
    .unwrap()
}

fn learner(value: Option<ValueKind>, shards: usize) -> Learner {
    let settings = Optimiser {
        lr: 1e-2,
        warmup_updates: 1,
        weight_decay: 0.0,
        ..Optimiser::default()
    };
    let policy = Llama::random(&config(), 3, &Device::flex());
    Learner::new(policy, value, &config(), &settings, shards, 5)
}

/// Dialogs of one or two turns and different lengths, with the given advantage of every turn.
fn dialogs(advantage: f32) -> Vec<Sample> {
    (0..5u32)
        .map(|i| {
            let tokens: Vec<u32> = (0..8 + 2 * i).map(|t| (t * 7 + i * 3) % 20).collect();
            let mut answers = vec![3..6, 8..tokens.len()];
            if i % 2 == 0 {
                answers.truncate(1);
            }
            let (n, m) = (answers.iter().map(|r| r.len()).sum(), answers.len());
            Sample {
                behaviour: vec![-3.0; n],
                old: vec![-3.0; n],
                reference: vec![-3.0; n],
                returns: vec![0.5 - 0.2 * i as f32; m],
                advantages: vec![advantage; m],
                ..Sample::new(tokens, answers)
            }
        })
        .collect()
}

fn loss(value_moves_policy: bool) -> LossSettings {
    LossSettings {
        clips: Clips {
            policy: 0.2,
            policy_high: 0.2,
            value: 10.0,
        },
        value_weight: 1.0,
        how: How {
            temperature: 1.0,
            value_moves_policy,
        },
        ..LossSettings::default()
    }
}

fn weights(learner: &Learner) -> Named {
    learner.inference().policy.to_named().unwrap()
}

fn furthest(a: &Named, b: &Named) -> f32 {
    a.iter()
        .flat_map(|(name, (_, x))| x.iter().zip(&b[name].1).map(|(x, y)| (x - y).abs()))
        .fold(0.0, f32::max)
}

#[test]
fn shards_give_the_update_of_the_whole() {
    let samples = dialogs(1.0);
    let batch: Vec<&Sample> = samples.iter().collect();
    for value in [ValueKind::Head, ValueKind::Separate] {
        let mut one = learner(Some(value), 1);
        let before = weights(&one);
        let a = one.ppo(&batch, loss(false)).unwrap();
        for shards in [2, 3, 9] {
            let mut many = learner(Some(value), shards);
            let b = many.ppo(&batch, loss(false)).unwrap();
            assert!((a.policy_loss - b.policy_loss).abs() < 1e-5, "{a:?} {b:?}");
            assert!((a.value_loss - b.value_loss).abs() < 1e-5, "{a:?} {b:?}");
            assert!((a.grad_norm - b.grad_norm).abs() < 1e-4, "{a:?} {b:?}");
            // Adam's first step is near the sign of the gradient, so weights whose gradient is near zero may differ.
            let (x, y) = (weights(&one), weights(&many));
            let differ = x
                .iter()
                .flat_map(|(name, (_, v))| v.iter().zip(&y[name].1))
                .filter(|(p, q)| (*p - *q).abs() > 1e-4)
                .count();
            assert!(differ < 20, "{differ} weights differ with {shards} shards");
        }
        assert!(furthest(&before, &weights(&one)) > 1e-3);
    }
}

#[test]
fn the_same_update_twice_gives_the_same_bits() {
    let samples = dialogs(0.7);
    let batch: Vec<&Sample> = samples.iter().collect();
    let run = || {
        let mut l = learner(Some(ValueKind::Head), 2);
        for _ in 0..3 {
            l.ppo(&batch, loss(false)).unwrap();
        }
        weights(&l)
    };
    let (a, b) = (run(), run());
    assert!(a == b);
}

#[test]
fn the_value_learns_the_returns_and_moves_the_policy_only_where_told() {
    let samples = dialogs(0.0);
    let batch: Vec<&Sample> = samples.iter().collect();
    for value in [ValueKind::Head, ValueKind::Separate] {
        let mut l = learner(Some(value), 2);
        let before = weights(&l);
        let first = l.ppo(&batch, loss(false)).unwrap().value_loss;
        let mut last = first;
        for _ in 0..60 {
            last = l.ppo(&batch, loss(false)).unwrap().value_loss;
        }
        assert!(last < 0.5 * first, "{value:?}: {first} then {last}");
        // No advantage, no push: the policy is where it was.
        assert_eq!(furthest(&before, &weights(&l)), 0.0, "{value:?}");
    }
    let mut l = learner(Some(ValueKind::Head), 2);
    let before = weights(&l);
    l.ppo(&batch, loss(true)).unwrap();
    assert!(furthest(&before, &weights(&l)) > 1e-3);
}

#[test]
fn good_answers_become_likelier_and_bad_ones_rarer() {
    for advantage in [1.0, -1.0] {
        let mut samples = dialogs(advantage);
        let mut l = learner(Some(ValueKind::Head), 1);
        let total = |l: &Learner, samples: &mut [Sample]| -> f32 {
            let scores = score(&l.inference(), l.inference_frame(), samples, 1.0, 2).unwrap();
            let mut sum = 0.0;
            for (s, (logprobs, _)) in samples.iter_mut().zip(scores) {
                sum += logprobs.iter().sum::<f32>();
                s.old = logprobs.clone();
                s.behaviour = logprobs;
            }
            sum
        };
        let before = total(&l, &mut samples);
        let batch: Vec<&Sample> = samples.iter().collect();
        l.ppo(&batch, loss(false)).unwrap();
        let change = total(&l, &mut samples.clone()) - before;
        assert!(change * advantage > 0.1, "{advantage}: {change}");
    }
}

#[test]
fn supervised_updates_lower_the_loss() {
    let samples = dialogs(0.0);
    let batch: Vec<&Sample> = samples.iter().collect();
    for on in [LossOn::Answers, LossOn::LastAnswer, LossOn::All] {
        let mut l = learner(None, 2);
        let (first, _) = l.supervised(&batch, on).unwrap();
        // Untrained: about ln 20.
        assert!((first - 20f64.ln()).abs() < 1.5, "{first}");
        let mut last = first;
        for _ in 0..40 {
            (last, _) = l.supervised(&batch, on).unwrap();
        }
        assert!(last < 0.5 * first, "{first} then {last}");
    }
}
