//! GRPO as SWE-RL has it (arXiv 2502.18449, §2.3): no value network; a rollout is compared with the other rollouts of
//! the same problem.
//!
//! `A_i = (r_i − mean(r)) / std(r)`
//!
//! over the group `r` of one problem's rollouts, the same for every token of rollout `i`; the clipped surrogate; the
//! mean over a rollout's tokens, then over rollouts; the price of leaving the reference policy in the loss, as the
//! estimator k3.
//!
//! SWE-RL publishes neither ε nor β (NF): ε is PPO's, β that of the paper that introduced GRPO (arXiv 2402.03300).
//! Whether `std` is the population's or the sample's is not said either: here the population's.

use crate::advantage::Normalise;
use crate::aggregate::Aggregation;
use crate::config::TrainConfig;
use crate::dr_grpo;
use crate::kl::{Estimator, KlIn};
use crate::off_policy::OffPolicy;

/// Below it a group's rewards count as equal.
const EQUAL: f64 = 1e-8;

/// What it starts from.
pub(crate) fn settings(config: &mut TrainConfig) {
    let ppo = &mut config.ppo;
    ppo.normalise = Normalise::Group;
    ppo.aggregation = Aggregation::SequenceMeanTokenMean;
    ppo.kl = KlIn::Loss;
    ppo.kl_estimator = Estimator::K3;
    ppo.beta = 0.04;
    ppo.off_policy = OffPolicy::None;
    // At PPO's rate the embedded small model hardly moves in 60 iterations.
    config.optimiser.lr = 6e-4;
}

/// The advantage of each rollout of a group; all 0 where the rewards are equal, as those of a single rollout are.
pub fn advantages(rewards: &[f32]) -> Vec<f32> {
    scaled(dr_grpo::advantages(rewards), rewards)
}

/// Divides a group's advantages by the (population) standard deviation of its rewards; 0 where these are equal.
pub fn scaled(advantages: Vec<f32>, rewards: &[f32]) -> Vec<f32> {
    let std = deviation(rewards);
    let scale = |a: f32| {
        if std > EQUAL {
            (f64::from(a) / std) as f32
        } else {
            0.0
        }
    };
    advantages.into_iter().map(scale).collect()
}

/// Whether a group's rewards differ, so that there is something to learn from it.
pub fn has_signal(rewards: &[f32]) -> bool {
    deviation(rewards) > EQUAL
}

fn deviation(rewards: &[f32]) -> f64 {
    let n = rewards.len().max(1) as f64;
    let mean = rewards.iter().map(|&r| f64::from(r)).sum::<f64>() / n;
    let variance = rewards
        .iter()
        .map(|&r| (f64::from(r) - mean).powi(2))
        .sum::<f64>()
        / n;
    variance.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advantage::close;

    /// Rewards 1, −1, −1, −1: mean −0.5, deviations 1.5, −0.5, −0.5, −0.5, variance (2.25 + 3·0.25)/4 = 0.75,
    /// std 0.866025; 1.5/0.866025 = 1.732051, −0.5/0.866025 = −0.577350.
    #[test]
    fn by_hand() {
        close(
            &advantages(&[1.0, -1.0, -1.0, -1.0]),
            &[1.732_051, -0.577_350, -0.577_350, -0.577_350],
        );
        assert!(has_signal(&[1.0, -1.0]));
    }

    #[test]
    fn equal_rewards_one_rollout_and_none_teach_nothing() {
        close(&advantages(&[0.7; 5]), &[0.0; 5]);
        close(&advantages(&[1.0]), &[0.0]);
        close(&advantages(&[]), &[]);
        assert!(!has_signal(&[0.7; 5]) && !has_signal(&[1.0]) && !has_signal(&[]));
    }

    proptest::proptest! {
        #[test]
        fn mean_zero_and_deviation_one(rewards in proptest::collection::vec(-2.0f32..2.0, 2..20)) {
            let a = advantages(&rewards);
            let n = a.len() as f32;
            let mean = a.iter().sum::<f32>() / n;
            proptest::prop_assert!(mean.abs() < 1e-3);
            if has_signal(&rewards) {
                let square = a.iter().map(|x| x * x).sum::<f32>() / n;
                proptest::prop_assert!((square - 1.0).abs() < 1e-2, "{}", square);
            }
        }
    }
}
