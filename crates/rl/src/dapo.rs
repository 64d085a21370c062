//! DAPO (arXiv 2503.14476): GRPO with four changes.
//!
//! 1. *Clip higher*: the ratio may rise to 1 + 0.28 but falls to 1 − 0.2 only, so that rare tokens can become likely.
//! 2. *Dynamic sampling*: a group whose rewards are all equal teaches nothing; it is left out, and further problems
//!    are rolled out in its place ([`keep`]).
//! 3. *Token mean*: the loss is the mean over all tokens of a minibatch, so that long rollouts weigh as much as they
//!    are long.
//! 4. *Overlong filtering*: rollouts that were cut at the length limit are masked. (The paper also tries a penalty that
//!    grows over the last tokens before the limit; that is not here, a flat one is `truncated = "penalise"`.)
//!
//! No price on leaving the reference policy. Advantages are GRPO's.

use crate::advantage::Normalise;
use crate::aggregate::Aggregation;
use crate::batch::Truncated;
use crate::config::TrainConfig;
use crate::grpo;
use crate::off_policy::OffPolicy;

/// What it starts from.
pub(crate) fn settings(config: &mut TrainConfig) {
    let ppo = &mut config.ppo;
    ppo.normalise = Normalise::Group;
    ppo.aggregation = Aggregation::TokenMean;
    ppo.clip_high = 0.28;
    ppo.beta = 0.0;
    ppo.off_policy = OffPolicy::None;
    ppo.truncated = Truncated::Mask;
    // The authors' code generates at most ten batches for one.
    config.rollout.refills = 9;
}

/// The groups to learn from: of those that have been rolled out, each with its rollouts' rewards, the first `wanted`
/// whose rewards differ. The rest of `wanted` is to be refilled. A group all of whose rollouts were lost to faults of
/// the machinery has no rewards and counts as one without signal.
pub fn keep<'a>(groups: impl IntoIterator<Item = &'a [f32]>, wanted: usize) -> Vec<usize> {
    groups
        .into_iter()
        .enumerate()
        .filter(|(_, rewards)| grpo::has_signal(rewards))
        .map(|(i, _)| i)
        .take(wanted)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups: all failed; one of two solved; lost; all solved; two of three; mixed.
    #[test]
    fn by_hand() {
        let groups: [&[f32]; 6] = [
            &[-1.0, -1.0],
            &[-1.0, 1.0],
            &[],
            &[1.0, 1.0, 1.0],
            &[1.0, -1.0, 1.0],
            &[-1.2, -1.0],
        ];
        assert_eq!(keep(groups, 10), [1, 4, 5]);
        assert_eq!(keep(groups, 2), [1, 4]);
        assert!(keep([], 2).is_empty());
    }
}
