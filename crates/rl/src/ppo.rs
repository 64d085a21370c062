//! The objective of RLEF (arXiv 2410.02089, A.1): PPO on tokens with a value on turns.
//!
//! Reads like the paper: the ratio with its correction for stale samples, the clipped surrogate, the clipped
//! value loss. `_n` counts the answer tokens of a minibatch, `_m` its turns.

use burn::tensor::Tensor;

use crate::off_policy::OffPolicy;

/// The clips.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clips {
    /// ε of the surrogate, 0.2 in the paper: the ratio counts down to 1 − ε …
    pub policy: f32,
    /// … and up to 1 + this; the same in the paper.
    pub policy_high: f32,
    /// α of the value loss, 0.2 in the paper.
    pub value: f32,
}

/// The surrogate of each token, to be minimised, and what is watched beside it.
pub struct PolicyTerms {
    /// `−min(r·A, clip(r, 1−ε, 1+ε')·A)` with `r` below; `[n]`.
    pub loss_n: Tensor<1>,
    /// 1 where the clip decided, else 0; `[n]`.
    pub clipped_n: Tensor<1>,
    /// `(π/π_old − 1) − log(π/π_old)`, an estimate of KL(π_old‖π) that is never negative (k3); `[n]`.
    pub kl_n: Tensor<1>,
}

/// The clipped surrogate.
///
/// `r_t(θ) = π_θ/π_old · stopgrad(min(π_θ/π_b, 1))`
///
/// (The second factor is RLEF's; with another [`OffPolicy`] the ratio is the first alone.)
///
/// `old_n` are log-probabilities under the weights at the start of the update, `behaviour_n` under the weights that
/// sampled the token (the same, unless the sample is stale). The second factor carries no gradient and
/// scales the term down where the token has become less likely than when it was sampled.
pub fn policy_terms(
    logprob_n: Tensor<1>,
    old_n: Tensor<1>,
    behaviour_n: Tensor<1>,
    advantage_n: Tensor<1>,
    clips: Clips,
    off_policy: OffPolicy,
) -> PolicyTerms {
    let log_ratio_n = logprob_n.clone() - old_n;
    let pure_n = log_ratio_n.clone().exp();
    let ratio_n = match off_policy {
        OffPolicy::Rlef => {
            let stale_n = (logprob_n - behaviour_n).exp().clamp_max(1.0).detach();
            pure_n.clone() * stale_n
        }
        OffPolicy::Truncated | OffPolicy::None => pure_n.clone(),
    };

    let plain_n = ratio_n.clone() * advantage_n.clone();
    let clipped_n = ratio_n.clamp(1.0 - clips.policy, 1.0 + clips.policy_high) * advantage_n;
    // min(a, b) = −max(−a, −b); the term counts as clipped where the clipped one is strictly smaller.
    let was_clipped_n = clipped_n.clone().lower(plain_n.clone()).float().detach();
    let loss_n = plain_n.min_pair(clipped_n).neg();
    let kl_n = (pure_n - 1.0 - log_ratio_n).detach();
    PolicyTerms {
        loss_n,
        clipped_n: was_clipped_n,
        kl_n,
    }
}

/// The value loss of each turn: `½ · max((V − G)², (clip(V, V_old − α, V_old + α) − G)²)`; `[m]`.
pub fn value_terms(
    value_m: Tensor<1>,
    old_m: Tensor<1>,
    return_m: Tensor<1>,
    alpha: f32,
) -> Tensor<1> {
    let near_m = old_m.clone() + (value_m.clone() - old_m).clamp(-alpha, alpha);
    let plain_m = (value_m - return_m.clone()).square();
    let clipped_m = (near_m - return_m).square();
    plain_m.max_pair(clipped_m).mul_scalar(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    const CLIPS: Clips = Clips {
        policy: 0.2,
        policy_high: 0.2,
        value: 0.2,
    };

    fn tensor(x: &[f32], device: &Device) -> Tensor<1> {
        Tensor::from_data(x, device)
    }

    fn numbers(t: Tensor<1>) -> Vec<f32> {
        t.into_data().to_vec().unwrap()
    }

    fn close(got: Vec<f32>, want: &[f32]) {
        for (g, w) in got.iter().zip(want) {
            assert!((g - w).abs() < 1e-5, "{got:?} is not {want:?}");
        }
        assert_eq!(got.len(), want.len());
    }

    /// π/π_old = 1.5, 1.5, 0.5, 0.5, 1.1 with A = 2, −2, 2, −2, 1, fresh samples (π_b = π_old), ε = 0.2.
    ///
    /// Stale factor min(π/π_b, 1): 1, 1, 0.5, 0.5, 1, so r = 1.5, 1.5, 0.25, 0.25, 1.1.
    /// r·A: 3, −3, 0.5, −0.5, 1.1; clipped r = 1.2, 1.2, 0.8, 0.8, 1.1, times A: 2.4, −2.4, 1.6, −1.6, 1.1.
    /// min: 2.4 (clipped), −3, 0.5, −1.6 (clipped), 1.1.
    #[test]
    fn surrogate_by_hand() {
        let d = Device::flex();
        let lp: Vec<f32> = [1.5f32, 1.5, 0.5, 0.5, 1.1]
            .iter()
            .map(|r| r.ln() - 1.0)
            .collect();
        let old = tensor(&[-1.0; 5], &d);
        let terms = policy_terms(
            tensor(&lp, &d),
            old.clone(),
            old,
            tensor(&[2.0, -2.0, 2.0, -2.0, 1.0], &d),
            CLIPS,
            OffPolicy::Rlef,
        );
        close(numbers(terms.loss_n), &[-2.4, 3.0, -0.5, 1.6, -1.1]);
        close(numbers(terms.clipped_n), &[1.0, 0.0, 0.0, 1.0, 0.0]);
        // (1.5 − 1) − ln 1.5 = 0.094535; (0.5 − 1) − ln 0.5 = 0.193147; 0.1 − ln 1.1 = 0.004690
        close(
            numbers(terms.kl_n),
            &[0.094_535, 0.094_535, 0.193_147, 0.193_147, 0.004_690],
        );
    }

    /// A stale sample: π = 0.3, π_old = 0.25, π_b = 0.6. Factor min(0.3/0.6, 1) = 0.5, r = 1.2·0.5 = 0.6,
    /// A = 1: min(0.6, 0.8) = 0.6. And π_b = 0.1: factor 1, r = 1.2.
    #[test]
    fn stale_samples_are_scaled_down() {
        let d = Device::flex();
        let t = policy_terms(
            tensor(&[0.3f32.ln(), 0.3f32.ln()], &d),
            tensor(&[0.25f32.ln(), 0.25f32.ln()], &d),
            tensor(&[0.6f32.ln(), 0.1f32.ln()], &d),
            tensor(&[1.0, 1.0], &d),
            CLIPS,
            OffPolicy::Rlef,
        );
        close(numbers(t.loss_n), &[-0.6, -1.2]);
    }

    /// Clip higher: r = 1.25 and 1.5 with A = 1, ε = 0.2 down, 0.28 up, no factor: 1.25 counts, 1.5 as 1.28; r = 0.5
    /// with A = −1 still as 0.8.
    #[test]
    fn the_ratio_may_rise_further_than_it_falls() {
        let d = Device::flex();
        let lp: Vec<f32> = [1.25f32, 1.5, 0.5].iter().map(|r| r.ln()).collect();
        let t = policy_terms(
            tensor(&lp, &d),
            tensor(&[0.0; 3], &d),
            tensor(&[0.0; 3], &d),
            tensor(&[1.0, 1.0, -1.0], &d),
            Clips {
                policy_high: 0.28,
                ..CLIPS
            },
            OffPolicy::None,
        );
        close(numbers(t.loss_n), &[-1.25, -1.28, 0.8]);
        close(numbers(t.clipped_n), &[0.0, 1.0, 1.0]);
    }

    /// d(−r·A)/d log π = −r·A where the clip is idle (the stale factor is constant), 0 where it decided.
    #[test]
    fn gradient_stops_at_the_clip_and_at_the_stale_factor() {
        let d = Device::flex().autodiff();
        let lp: Vec<f32> = [1.1f32, 1.5, 0.9].iter().map(|r| r.ln()).collect();
        let logprob = tensor(&lp, &d).require_grad();
        let zero = tensor(&[0.0; 3], &d);
        let terms = policy_terms(
            logprob.clone(),
            zero.clone(),
            zero,
            tensor(&[1.0, 1.0, 1.0], &d),
            CLIPS,
            OffPolicy::Rlef,
        );
        let grads = terms.loss_n.sum().backward();
        // third: factor 0.9, r = 0.81, inside the clip: gradient −0.81, not −2·0.81.
        close(numbers(logprob.grad(&grads).unwrap()), &[-1.1, 0.0, -0.81]);
    }

    /// V = 1.0, V_old = 0.5, G = 0.8, α = 0.2: (0.2)² = 0.04 against (0.7 − 0.8)² = 0.01 → ½·0.04.
    /// V = 0.9, V_old = 0.5, G = 1.0: 0.01 against (0.7 − 1)² = 0.09 → ½·0.09.
    #[test]
    fn value_loss_by_hand() {
        let d = Device::flex();
        let loss = value_terms(
            tensor(&[1.0, 0.9], &d),
            tensor(&[0.5, 0.5], &d),
            tensor(&[0.8, 1.0], &d),
            0.2,
        );
        close(numbers(loss), &[0.02, 0.045]);
    }
}
