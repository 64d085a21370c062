//! RLOO, REINFORCE leave-one-out (arXiv 2402.14740): a rollout is compared with the others of its group, itself not
//! among them.
//!
//! `A_i = r_i − 1/(n−1) · Σ_{j≠i} r_j  =  n/(n−1) · (r_i − mean(r))`
//!
//! so that the baseline does not depend on what it is the baseline of. The price of leaving the reference policy is
//! part of the reward. The paper takes one update on fresh samples, where the clip is idle; with several minibatches it
//! is PPO's.

use crate::advantage::Normalise;
use crate::aggregate::Aggregation;
use crate::config::TrainConfig;
use crate::off_policy::OffPolicy;

/// What it starts from. β is RLEF's (NF: the paper's is for the sum over an answer's tokens, ours for their mean).
pub(crate) fn settings(config: &mut TrainConfig) {
    let ppo = &mut config.ppo;
    ppo.normalise = Normalise::None;
    // An answer is one action there: its log-probability is a sum over tokens.
    ppo.aggregation = Aggregation::SequenceMeanTokenSum;
    ppo.off_policy = OffPolicy::None;
}

/// The advantage of each rollout of a group; 0 for a rollout without others.
pub fn advantages(rewards: &[f32]) -> Vec<f32> {
    let n = rewards.len() as f64;
    let sum = rewards.iter().map(|&r| f64::from(r)).sum::<f64>();
    rewards
        .iter()
        .map(|&r| {
            if rewards.len() > 1 {
                let r = f64::from(r);
                (r - (sum - r) / (n - 1.0)) as f32
            } else {
                0.0
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advantage::close;
    use crate::dr_grpo;

    /// Rewards 1, −1, −1, 0. Means of the others: −2/3, 0, 0, −1/3.
    #[test]
    fn by_hand() {
        close(
            &advantages(&[1.0, -1.0, -1.0, 0.0]),
            &[1.666_667, -1.0, -1.0, 0.333_333],
        );
    }

    #[test]
    fn equal_rewards_one_rollout_and_none_teach_nothing() {
        close(&advantages(&[0.7; 5]), &[0.0; 5]);
        close(&advantages(&[1.0]), &[0.0]);
        close(&advantages(&[]), &[]);
    }

    proptest::proptest! {
        #[test]
        fn it_is_the_centred_reward_times_a_factor(rewards in proptest::collection::vec(-2.0f32..2.0, 2..20)) {
            let n = rewards.len() as f32;
            let centred = dr_grpo::advantages(&rewards);
            for (a, c) in advantages(&rewards).iter().zip(centred) {
                proptest::prop_assert!((a - n / (n - 1.0) * c).abs() < 1e-4);
            }
        }
    }
}
