//! GRPO++ as the DeepSWE card lists it: seven known changes to GRPO, together.
//!
//! 1. *Clip high* (DAPO): the ratio may rise to 1 + 0.28.
//! 2. *No KL loss* (DAPO): nothing holds the policy near the reference.
//! 3. *No reward standard deviation* (Dr. GRPO): advantages are not divided by it.
//! 4. *Length normalisation* (Dr. GRPO): the loss is the sum over a rollout's tokens divided by a constant.
//! 5. *Leave one out* (RLOO): the baseline is the mean of the others.
//! 6. *Compact filtering*: a rollout that was cut at a length limit is masked: it gives no loss, but it still counts in
//!    its group's baseline and in the number of rollouts that the loss is a mean of. (There its reward is 0, as it is not
//!    judged; here every rollout is judged, and its reward is what it got.)
//! 7. *No entropy loss*.
//!
//! `A_i = r_i − 1/(n−1) · Σ_{j≠i} r_j` is that of `rloo.rs`.

use crate::advantage::Normalise;
use crate::aggregate::Aggregation;
use crate::batch::Truncated;
use crate::config::TrainConfig;
use crate::off_policy::OffPolicy;

/// What it starts from.
pub(crate) fn settings(config: &mut TrainConfig) {
    let ppo = &mut config.ppo;
    ppo.normalise = Normalise::None;
    ppo.aggregation = Aggregation::SequenceMeanTokenSum;
    ppo.clip_high = 0.28;
    ppo.beta = 0.0;
    ppo.off_policy = OffPolicy::None;
    ppo.truncated = Truncated::Mask;
}
