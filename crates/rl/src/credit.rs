//! Credit: from the rewards of episodes to the advantage of every step.
//!
//! The formulae are in `advantage.rs` (values) and in the files of the group methods; here they are applied to a batch,
//! and what came of it is described.

use std::collections::BTreeMap;

use crate::advantage::{
    Normalise, explained_variance, gae, normalise, rewards_on_tokens, turn_rewards,
};
use crate::algorithm::Baseline;
use crate::batch::{Level, Sample, Truncated};
use crate::config::TrainConfig;
use crate::describe::{mean, spread};
use crate::kl::{Estimator, KlIn};
use crate::trainer::Metrics;
use crate::{dr_grpo, grpo, rloo};

/// Fills in returns, advantages and masks. Log-probabilities and values must be there. Samples that were lost to faults of
/// the machinery are not among `samples`, and so are in no baseline.
pub fn credit(samples: &mut [Sample], config: &TrainConfig, metrics: &mut Metrics) {
    let ppo = &config.ppo;
    let mut turns = vec![];
    for s in samples.iter_mut() {
        if ppo.truncated == Truncated::Mask && s.cut.contains(&true) {
            s.learn.fill(false);
        }
        turns.push(rewards(s, config));
    }
    let log_ratios: Vec<f32> = samples
        .iter()
        .flat_map(|s| s.kl_of_turns(Estimator::K1))
        .collect();
    let whole: Vec<f32> = turns.iter().map(|r| r.iter().sum()).collect();
    spread("critic/rewards", &whole, metrics);
    match config.algorithm.baseline() {
        Baseline::Value => from_values(samples, &turns, config),
        baseline => from_groups(samples, &whole, baseline, ppo.normalise, metrics),
    }
    let all = |f: fn(&Sample) -> &Vec<f32>| -> Vec<f32> {
        samples.iter().flat_map(|s| f(s).clone()).collect()
    };
    let g = all(|s| &s.returns);
    spread("critic/returns", &g, metrics);
    if config.algorithm.baseline() == Baseline::Value {
        let v = all(|s| &s.values);
        spread("critic/values", &v, metrics);
        let explained = f64::from(explained_variance(&g, &v));
        metrics.insert("critic/vf_explained_var".into(), explained);
    }
    spread("critic/advantages", &all(|s| &s.advantages), metrics);
    metrics.insert("actor/reference_kl".into(), mean(&log_ratios));
    match ppo.normalise {
        Normalise::None => {}
        Normalise::Turns => together(samples, |_| 1.0),
        Normalise::Tokens => together(samples, |tokens| tokens as f32),
        // The groups' own methods have done it.
        Normalise::Group if config.algorithm.is_group() => {}
        Normalise::Group => {
            for group in groups(samples).values() {
                let mut mine: Vec<Sample> = group.iter().map(|&i| samples[i].clone()).collect();
                together(&mut mine, |tokens| tokens as f32);
                for (&i, one) in group.iter().zip(mine) {
                    samples[i].advantages = one.advantages;
                }
            }
        }
    }
}

/// The reward of each turn: the task's, less what a cut answer and leaving the reference policy cost.
fn rewards(s: &Sample, config: &TrainConfig) -> Vec<f32> {
    let ppo = &config.ppo;
    let mut task = s.rewards.clone();
    if ppo.truncated == Truncated::Penalise {
        for (r, _) in task.iter_mut().zip(&s.cut).filter(|(_, cut)| **cut) {
            *r -= ppo.truncation_penalty;
        }
    }
    match ppo.kl {
        KlIn::Reward => turn_rewards(&task, &s.kl_of_turns(ppo.kl_estimator), ppo.beta),
        KlIn::Loss => task,
    }
}

/// Returns and advantages from learned values.
fn from_values(samples: &mut [Sample], turns: &[Vec<f32>], config: &TrainConfig) {
    let ppo = &config.ppo;
    for (s, turns) in samples.iter_mut().zip(turns) {
        let on_tokens;
        let rewards = match ppo.value_level {
            Level::Turn => turns,
            Level::Token => {
                let lengths: Vec<usize> = s.answers.iter().map(|a| a.len()).collect();
                on_tokens = rewards_on_tokens(turns, &lengths);
                &on_tokens
            }
        };
        (s.returns, s.advantages) = gae(rewards, &s.values, ppo.gamma, ppo.lambda);
    }
}

/// The samples of each group, in order.
pub(crate) fn groups(samples: &[Sample]) -> BTreeMap<usize, Vec<usize>> {
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (i, s) in samples.iter().enumerate() {
        groups.entry(s.group).or_default().push(i);
    }
    groups
}

/// Advantages from the rewards of whole episodes against those of the same group. An episode is one action: its return
/// is its reward.
fn from_groups(
    samples: &mut [Sample],
    whole: &[f32],
    baseline: Baseline,
    normalised: Normalise,
    metrics: &mut Metrics,
) {
    let groups = groups(samples);
    let mut silent = 0usize;
    for group in groups.values() {
        let rewards: Vec<f32> = group.iter().map(|&i| whole[i]).collect();
        let task: Vec<f32> = group
            .iter()
            .map(|&i| samples[i].rewards.iter().sum())
            .collect();
        silent += usize::from(!grpo::has_signal(&task));
        let mut advantages = match baseline {
            Baseline::LeaveOneOut => rloo::advantages(&rewards),
            Baseline::GroupMean | Baseline::Value => dr_grpo::advantages(&rewards),
        };
        if normalised == Normalise::Group {
            advantages = grpo::scaled(advantages, &rewards);
        }
        for ((&i, a), r) in group.iter().zip(advantages).zip(rewards) {
            let s = &mut samples[i];
            s.returns.fill(r);
            s.advantages.fill(a);
        }
    }
    let share = silent as f64 / groups.len().max(1) as f64;
    metrics.insert("frac_reward_zero_std".into(), share);
}

/// Normalises the advantages of all steps of `samples` together; `weight` makes a step's weight of the number of its
/// tokens.
fn together(samples: &mut [Sample], weight: impl Fn(usize) -> f32) {
    let weights: Vec<f32> = samples
        .iter()
        .flat_map(|s| s.steps.iter().map(|r| weight(r.len())))
        .collect();
    let mut all: Vec<f32> = samples.iter().flat_map(|s| s.advantages.clone()).collect();
    normalise(&mut all, &weights);
    let mut all = all.into_iter();
    for s in samples {
        s.advantages = all.by_ref().take(s.steps.len()).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advantage::close;
    use crate::algorithm::Algorithm;

    /// Two answers of 2 and 3 tokens.
    fn dialog(group: usize, rewards: [f32; 2]) -> Sample {
        Sample {
            group,
            rewards: rewards.to_vec(),
            ..Sample::new((0..9).collect(), vec![2..4, 6..9])
        }
    }

    fn credited(config: &TrainConfig, samples: &[Sample]) -> (Vec<Sample>, Metrics) {
        let (mut samples, mut metrics) = (samples.to_vec(), Metrics::new());
        for s in &mut samples {
            let values = std::mem::take(&mut s.values);
            s.divide(config.ppo.value_level);
            if values.len() == s.steps.len() {
                s.values = values;
            }
        }
        credit(&mut samples, config, &mut metrics);
        (samples, metrics)
    }

    /// Group 0: rewards −0.2 + 1 = 0.8, −1, −1; group 1: a single rollout, the others having been lost; group 2: equal.
    ///
    /// leave one out: 0.8 + 1 = 1.8; −1 − (0.8 − 1)/2 = −0.9 twice. 0 for the rest.
    #[test]
    fn groups_by_hand() {
        let samples = [
            dialog(0, [-0.2, 1.0]),
            dialog(0, [0.0, -1.0]),
            dialog(0, [0.0, -1.0]),
            dialog(1, [0.0, 1.0]),
            dialog(2, [0.0, 1.0]),
            dialog(2, [0.0, 1.0]),
        ];
        let config = Algorithm::GrpoPlusPlus.settings();
        let (done, metrics) = credited(&config, &samples);
        let got: Vec<f32> = done.iter().map(|s| s.advantages[0]).collect();
        close(&got, &[1.8, -0.9, -0.9, 0.0, 0.0, 0.0]);
        for s in &done {
            assert_eq!(s.advantages[0], s.advantages[1]);
        }
        assert!((metrics["frac_reward_zero_std"] - 2.0 / 3.0).abs() < 1e-9);
        assert!(!metrics.contains_key("critic/vf_explained_var"));
        // GRPO: mean −0.4, deviations 1.2, −0.6, −0.6, std √0.72 = 0.6·√2: √2, −√½ twice.
        let (done, _) = credited(&Algorithm::Grpo.settings(), &samples);
        let got: Vec<f32> = done.iter().map(|s| s.advantages[0]).collect();
        let (two, half) = (2f32.sqrt(), -0.5f32.sqrt());
        close(&got, &[two, half, half, 0.0, 0.0, 0.0]);
    }

    /// The first answer was cut. Masked: no token counts, and the reward still is in the baseline. Penalised by 1: the
    /// reward of the turn is −1. Kept: as it is.
    #[test]
    fn cut_answers_by_hand() {
        let mut cut = dialog(0, [0.0, 1.0]);
        cut.cut[0] = true;
        let samples = [cut, dialog(0, [0.0, -1.0])];
        let mut config = Algorithm::DrGrpo.settings();
        for (truncated, counts, want) in [
            (Truncated::Keep, true, [1.0, -1.0]),
            (Truncated::Mask, false, [1.0, -1.0]),
            (Truncated::Penalise, true, [0.5, -0.5]),
        ] {
            config.ppo.truncated = truncated;
            let (done, _) = credited(&config, &samples);
            assert_eq!(done[0].counted(0, None), [counts; 5], "{truncated:?}");
            assert_eq!(done[1].counted(0, None), [true; 5], "{truncated:?}");
            let got: Vec<f32> = done.iter().map(|s| s.advantages[1]).collect();
            close(&got, &want);
        }
    }

    /// Values on tokens, γ = λ = 1, rewards −0.2 and 1, β = 0: every token of the first answer has the return 0.8, every
    /// token of the second 1. With values 0.5 on all of them: 0.3 and 0.5.
    #[test]
    fn values_on_tokens_by_hand() {
        let mut config = TrainConfig::default();
        config.ppo.value_level = Level::Token;
        config.ppo.beta = 0.0;
        config.ppo.normalise = Normalise::None;
        let sample = Sample {
            values: vec![0.5; 5],
            ..dialog(0, [-0.2, 1.0])
        };
        let (done, _) = credited(&config, &[sample]);
        close(&done[0].returns, &[0.8, 0.8, 1.0, 1.0, 1.0]);
        close(&done[0].advantages, &[0.3, 0.3, 0.5, 0.5, 0.5]);
    }

    /// π = ρ·e^0.5 on the first answer's two tokens and π = ρ on the others. k1: 0.5, k2: 0.125, k3: e^−0.5 − 0.5 =
    /// 0.106531. β = 0.1: the reward of the first turn is less by 0.05, 0.0125, 0.010653; in the loss, by nothing.
    #[test]
    fn the_price_in_the_reward_by_hand() {
        let mut config = TrainConfig::default();
        config.ppo.beta = 0.1;
        config.ppo.normalise = Normalise::None;
        let mut sample = dialog(0, [0.0, 1.0]);
        sample.old[..2].fill(0.5);
        for (kl, estimator, price) in [
            (KlIn::Reward, Estimator::K1, 0.05),
            (KlIn::Reward, Estimator::K2, 0.0125),
            (KlIn::Reward, Estimator::K3, 0.010_653),
            (KlIn::Loss, Estimator::K3, 0.0),
        ] {
            config.ppo.kl = kl;
            config.ppo.kl_estimator = estimator;
            let (done, metrics) = credited(&config, std::slice::from_ref(&sample));
            close(&done[0].returns, &[1.0 - price, 1.0]);
            assert!((metrics["actor/reference_kl"] - 0.25).abs() < 1e-6);
        }
    }

    /// Advantages 2, 4 in group 0 (tokens 2, 3: mean 3.2, std √0.96 = 0.979796) and 1, 1 in group 1, which has none.
    #[test]
    fn normalised_over_groups_by_hand() {
        let mut config = TrainConfig::default();
        config.ppo.beta = 0.0;
        config.ppo.normalise = Normalise::Group;
        config.rollout.per_problem = 2;
        let (done, _) = credited(&config, &[dialog(0, [-2.0, 4.0]), dialog(1, [0.0, 1.0])]);
        close(&done[0].advantages, &[-1.224_745, 0.816_497]);
        close(&done[1].advantages, &[0.0, 0.0]);
    }

    #[test]
    fn no_samples_are_no_trouble() {
        for algorithm in Algorithm::ALL {
            let (_, metrics) = credited(&algorithm.settings(), &[]);
            assert!(metrics.contains_key("critic/rewards/mean"));
        }
    }
}
