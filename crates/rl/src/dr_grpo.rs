//! Dr. GRPO (arXiv 2503.20783): GRPO without the two divisions that bias it.
//!
//! `A_i = r_i − mean(r)`
//!
//! Dividing by the standard deviation gives problems that are nearly always or nearly never solved more weight;
//! dividing by a rollout's own length makes long wrong answers cheap. Here advantages are only centred, and the loss is
//! the sum over a rollout's tokens divided by a constant, the same for all. No price on leaving the reference policy.

use crate::advantage::Normalise;
use crate::aggregate::Aggregation;
use crate::config::TrainConfig;
use crate::off_policy::OffPolicy;

/// What it starts from.
pub(crate) fn settings(config: &mut TrainConfig) {
    let ppo = &mut config.ppo;
    ppo.normalise = Normalise::None;
    ppo.aggregation = Aggregation::SequenceMeanTokenSum;
    ppo.beta = 0.0;
    ppo.off_policy = OffPolicy::None;
}

/// The advantage of each rollout of a group.
pub fn advantages(rewards: &[f32]) -> Vec<f32> {
    let n = rewards.len().max(1) as f64;
    let mean = rewards.iter().map(|&r| f64::from(r)).sum::<f64>() / n;
    rewards
        .iter()
        .map(|&r| (f64::from(r) - mean) as f32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advantage::close;

    /// Rewards 1, −1, −1, −1: mean −0.5.
    #[test]
    fn by_hand() {
        close(
            &advantages(&[1.0, -1.0, -1.0, -1.0]),
            &[1.5, -0.5, -0.5, -0.5],
        );
    }

    #[test]
    fn equal_rewards_one_rollout_and_none_teach_nothing() {
        close(&advantages(&[0.7; 5]), &[0.0; 5]);
        close(&advantages(&[-1.0]), &[0.0]);
        close(&advantages(&[]), &[]);
    }
}
