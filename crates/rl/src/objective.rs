//! The loss of a minibatch, put together from the pieces that have files of their own:
//!
//! `loss = 1/N · Σ_n w_n · ( c_n · surrogate_n + β · kl_n )  +  weight · mean of the value loss`
//!
//! with the clipped surrogate (`ppo.rs`), the correction `c` for samples of other weights (`off_policy.rs`), the price of
//! leaving the reference policy (`kl.rs`; here only if it is paid in the loss), and the weights and the divisor of the
//! aggregation (`aggregate.rs`). `_n` counts the answer tokens of a minibatch.

use burn::tensor::Tensor;

use crate::aggregate::Aggregation;
use crate::kl::Estimator;
use crate::learner::How;
use crate::off_policy::OffPolicy;
use crate::ppo::{Clips, PolicyTerms, policy_terms};

/// How the loss is put together.
#[derive(Debug, Clone, Copy)]
pub struct LossSettings {
    /// ε and α.
    pub clips: Clips,
    /// Weight of the value loss.
    pub value_weight: f32,
    /// Temperature of the samples, and where the value's gradient goes.
    pub how: How,
    /// What is done about samples of other weights; that of [`OffPolicy::Truncated`] comes in `correction_n`.
    pub off_policy: OffPolicy,
    /// C of truncated importance sampling.
    pub off_policy_cap: f32,
    /// β of the price that is paid in the loss; 0: none.
    pub beta: f32,
    /// Its estimator.
    pub estimator: Estimator,
    /// How tokens' losses become one.
    pub aggregation: Aggregation,
    /// The constant length of [`Aggregation::SequenceMeanTokenSum`].
    pub constant: usize,
    /// Tokens that are staler than so many updates are masked.
    pub max_staleness: Option<u64>,
}

impl Default for LossSettings {
    /// As RLEF has it.
    fn default() -> Self {
        Self {
            clips: Clips {
                policy: 0.2,
                policy_high: 0.2,
                value: 0.2,
            },
            value_weight: 0.5,
            how: How {
                temperature: 1.0,
                value_moves_policy: false,
            },
            off_policy: OffPolicy::Rlef,
            off_policy_cap: 2.0,
            beta: 0.0,
            estimator: Estimator::K1,
            aggregation: Aggregation::TokenMean,
            constant: 1,
            max_staleness: None,
        }
    }
}

/// What is known of the answer tokens of a minibatch besides their log-probability now; each `[n]`.
pub struct Tokens {
    /// Log-probability at the start of the update.
    pub old_n: Tensor<1>,
    /// When sampled.
    pub behaviour_n: Tensor<1>,
    /// Under the reference policy.
    pub reference_n: Tensor<1>,
    /// Advantage.
    pub advantage_n: Tensor<1>,
    /// `c`: what truncated importance sampling multiplies the surrogate by; `None`: 1.
    pub correction_n: Option<Tensor<1>>,
    /// `w`: 0 for masked tokens; `None`: 1.
    pub weight_n: Option<Tensor<1>>,
}

/// The loss of each token with its weight, still to be summed and divided by `N`, and what is watched beside it. The
/// last one is the price of leaving the reference policy before β and the weight, without gradient; `None` if it is not
/// paid here.
pub fn token_loss(
    logprob_n: Tensor<1>,
    tokens: Tokens,
    settings: &LossSettings,
) -> (PolicyTerms, Option<Tensor<1>>) {
    let mut terms = policy_terms(
        logprob_n.clone(),
        tokens.old_n,
        tokens.behaviour_n,
        tokens.advantage_n,
        settings.clips,
        settings.off_policy,
    );
    if let Some(correction_n) = tokens.correction_n {
        terms.loss_n = terms.loss_n * correction_n;
    }
    let mut watched = None;
    if settings.beta > 0.0 {
        let kl_n = settings.estimator.of_tensor(logprob_n, tokens.reference_n);
        watched = Some(kl_n.clone().detach());
        terms.loss_n = terms.loss_n + kl_n.mul_scalar(settings.beta);
    }
    if let Some(weight_n) = tokens.weight_n {
        terms.loss_n = terms.loss_n * weight_n;
    }
    (terms, watched)
}

#[cfg(test)]
mod tests;
