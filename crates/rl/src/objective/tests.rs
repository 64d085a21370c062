//! The loss of each algorithm on a minibatch small enough to work by hand, and its gradient against finite differences.

use burn::tensor::{Device, Tensor};

use super::*;
use crate::advantage::close;
use crate::algorithm::Algorithm;
use crate::{dr_grpo, grpo, off_policy, rloo};

/// Two rollouts of one problem, rewards 1 and −1. The first has two answer tokens, the second three.
///
/// | token | rollout | π/π_old | π_old/π_b | π/ρ |
/// |---|---|---|---|---|
/// | 1 | 1 | 1.25 | 1   | 2   |
/// | 2 | 1 | 1.5  | 1   | 1   |
/// | 3 | 2 | 0.5  | 1   | 0.5 |
/// | 4 | 2 | 1.1  | 1.5 | 1   |
/// | 5 | 2 | 0.9  | 4   | 1   |
const RATIO: [f32; 5] = [1.25, 1.5, 0.5, 1.1, 0.9];
const STALE: [f32; 5] = [1.0, 1.0, 1.0, 1.5, 4.0];
const REFERENCE: [f32; 5] = [2.0, 1.0, 0.5, 1.0, 1.0];
const LENGTHS: [usize; 2] = [2, 3];
/// Log-probability of every token at the start of the update.
const OLD: f32 = -1.0;

fn logprobs() -> Vec<f32> {
    RATIO.iter().map(|r| OLD + r.ln()).collect()
}

/// The loss of the minibatch, with the gradient for each token's log-probability.
fn loss(logprobs: &[f32], advantages: &[f32], settings: &LossSettings) -> (f64, Vec<f32>) {
    let d = Device::flex().autodiff();
    let tensor = |x: &[f32]| Tensor::<1>::from_data(x, &d);
    let behaviour: Vec<f32> = STALE.iter().map(|s| OLD - s.ln()).collect();
    let now = super::tests::logprobs();
    let reference: Vec<f32> = now.iter().zip(REFERENCE).map(|(l, r)| l - r.ln()).collect();
    let spread = |one: &[f32]| -> Vec<f32> {
        LENGTHS
            .iter()
            .zip(one)
            .flat_map(|(&n, &x)| vec![x; n])
            .collect()
    };
    let weights: Vec<f32> = LENGTHS
        .iter()
        .map(|&n| settings.aggregation.weight(n))
        .collect();
    let correction: Vec<f32> = behaviour
        .iter()
        .map(|&b| off_policy::truncated(OLD, b, settings.off_policy_cap))
        .collect();
    let logprob_n = tensor(logprobs).require_grad();
    let tokens = Tokens {
        old_n: tensor(&[OLD; 5]),
        behaviour_n: tensor(&behaviour),
        reference_n: tensor(&reference),
        advantage_n: tensor(&spread(advantages)),
        correction_n: (settings.off_policy == OffPolicy::Truncated).then(|| tensor(&correction)),
        weight_n: Some(tensor(&spread(&weights))),
    };
    let (terms, _) = token_loss(logprob_n.clone(), tokens, settings);
    let divisor = settings.aggregation.divisor(&LENGTHS, settings.constant);
    let total = terms.loss_n.sum().div_scalar(divisor);
    let value = f64::from(total.clone().into_data().to_vec::<f32>().unwrap()[0]);
    let grads = total.backward();
    let gradient = logprob_n.grad(&grads).unwrap().into_data();
    (value, gradient.to_vec().unwrap())
}

fn settings(algorithm: Algorithm) -> LossSettings {
    let mut loss = algorithm.settings().loss();
    loss.constant = 10;
    loss
}

fn by_hand(algorithm: Algorithm, advantages: &[f32], want: f64) {
    let settings = settings(algorithm);
    let (got, gradient) = loss(&logprobs(), advantages, &settings);
    assert!(
        (got - want).abs() < 1e-5,
        "{algorithm:?}: {got}, not {want}"
    );
    // RLEF's factor min(π/π_b, 1) moves with π but is meant to give no gradient: where it is below 1 finite differences
    // would see it, so the third token is looked at by itself, below.
    let seen = |i: usize| !(settings.off_policy == OffPolicy::Rlef && RATIO[i] * STALE[i] < 1.0);
    for i in (0..RATIO.len()).filter(|&i| seen(i)) {
        let step = 1e-3;
        let at = |by: f32| {
            let mut moved = logprobs();
            moved[i] += by;
            loss(&moved, advantages, &settings).0
        };
        let numeric = (at(step) - at(-step)) / f64::from(2.0 * step);
        assert!(
            (numeric - f64::from(gradient[i])).abs() < 2e-4,
            "{algorithm:?} token {i}: {numeric} by differences, {} by the graph",
            gradient[i]
        );
    }
}

/// A = 1, −1; ε = 0.2; token mean. RLEF's factor: 1, 1, 0.5, 1, 1 → r = 1.25, 1.5, 0.25, 1.1, 0.9.
///
/// −min(r·A, clip·A): −1.2, −1.2, 0.8, 1.1, 0.9; sum 0.4; /5 = 0.08.
#[test]
fn ppo() {
    by_hand(Algorithm::Ppo, &[1.0, -1.0], 0.08);
}

/// z-scores 1, −1; no factor: r = 1.25, 1.5, 0.5, 1.1, 0.9; surrogates −1.2, −1.2, 0.8, 1.1, 0.9.
/// k3: 0.5 − 1 + ln 2 = 0.193147; 0; 2 − 1 − ln 2 = 0.306853; 0; 0. β = 0.04.
///
/// means of the rollouts: (−2.4 + 0.04·0.193147)/2 = −1.196137; (2.8 + 0.04·0.306853)/3 = 0.937425; mean −0.129356.
#[test]
fn grpo_of_swe_rl() {
    let advantages = grpo::advantages(&[1.0, -1.0]);
    close(&advantages, &[1.0, -1.0]);
    by_hand(Algorithm::Grpo, &advantages, -0.129_356);
}

/// A = 1 − (−1) = 2 and −2; surrogates −2.4, −2.4, 1.6, 2.2, 1.8; sum 0.8; over constant 10 and 2 rollouts: 0.04.
#[test]
fn rloo_by_hand() {
    let advantages = rloo::advantages(&[1.0, -1.0]);
    close(&advantages, &[2.0, -2.0]);
    by_hand(Algorithm::Rloo, &advantages, 0.04);
}

/// A = 1, −1; sum 0.4; over constant 10 and 2 rollouts: 0.02.
#[test]
fn dr_grpo_by_hand() {
    let advantages = dr_grpo::advantages(&[1.0, -1.0]);
    by_hand(Algorithm::DrGrpo, &advantages, 0.02);
}

/// z-scores 1, −1; up to 1.28: −1.25, −1.28, 0.8, 1.1, 0.9; sum 0.27; token mean 0.054.
#[test]
fn dapo_by_hand() {
    by_hand(Algorithm::Dapo, &grpo::advantages(&[1.0, -1.0]), 0.054);
}

/// A = 2, −2; up to 1.28: −2.5, −2.56, 1.6, 2.2, 1.8; sum 0.54; over constant 10 and 2 rollouts: 0.027.
#[test]
fn grpo_plus_plus_by_hand() {
    let advantages = rloo::advantages(&[1.0, -1.0]);
    by_hand(Algorithm::GrpoPlusPlus, &advantages, 0.027);
}

/// The third token under RLEF: r = 0.5·0.5 = 0.25 with A = −1 is below the clip, no gradient; with A = 1 the surrogate is
/// 0.25, and its gradient −0.25/5, not that of 0.25 as a square of π.
#[test]
fn the_factor_of_stale_samples_gives_no_gradient() {
    let s = settings(Algorithm::Ppo);
    let (_, gradient) = loss(&logprobs(), &[1.0, -1.0], &s);
    assert_eq!(gradient[2], 0.0);
    let (_, gradient) = loss(&logprobs(), &[1.0, 1.0], &s);
    assert!((gradient[2] + 0.05).abs() < 1e-6, "{gradient:?}");
}

/// Truncated importance sampling with C = 2: c = 1, 1, 1, 1.5, 2; surrogates −1.2, −1.2, 0.8, 1.65, 1.8; sum 1.85; /5.
#[test]
fn truncated_importance_sampling() {
    let mut s = settings(Algorithm::Ppo);
    s.off_policy = OffPolicy::Truncated;
    let (got, _) = loss(&logprobs(), &[1.0, -1.0], &s);
    assert!((got - 0.37).abs() < 1e-5, "{got}");
}

/// Equal rewards: no advantage, no loss, no gradient, whatever the algorithm (β = 0).
#[test]
fn equal_rewards_move_nothing() {
    for algorithm in Algorithm::ALL {
        let mut s = settings(algorithm);
        s.beta = 0.0;
        let (got, gradient) = loss(&logprobs(), &[0.0, 0.0], &s);
        assert_eq!(got, 0.0);
        close(&gradient, &[0.0; 5]);
    }
}
