//! The price of leaving the reference policy: three estimators of KL(π‖ρ) from samples of π, and where it is paid.
//!
//! With `x = log(π/ρ)` of a sampled token:
//!
//! - k1 `= x`: unbiased, may be negative, varies most;
//! - k2 `= ½·x²`: biased, never negative, and its gradient is that of the true KL (on samples of π);
//! - k3 `= e^−x − 1 + x`: unbiased, never negative.
//!
//! Source: J. Schulman, "Approximating KL divergence". In the loss, k1 pulls nowhere: the mean of its gradient is 0.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// How the KL is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// The log-ratio.
    #[default]
    K1,
    /// Half its square.
    K2,
    /// The log-ratio with a control variate.
    K3,
}

/// Where it is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KlIn {
    /// Taken off the reward of each answer, as the mean over its tokens (RLEF §2.2).
    #[default]
    Reward,
    /// Added to the loss of each token.
    Loss,
}

impl Estimator {
    /// Of one token, from its log-ratio `log π − log ρ`.
    pub fn of(self, log_ratio: f32) -> f32 {
        match self {
            Self::K1 => log_ratio,
            Self::K2 => 0.5 * log_ratio * log_ratio,
            Self::K3 => (-log_ratio).exp() - 1.0 + log_ratio,
        }
    }

    /// Of each token, with gradient to `logprob_n`; `[n]`.
    pub fn of_tensor(self, logprob_n: Tensor<1>, reference_n: Tensor<1>) -> Tensor<1> {
        let x_n = logprob_n - reference_n;
        match self {
            Self::K1 => x_n,
            Self::K2 => x_n.square().mul_scalar(0.5),
            Self::K3 => x_n.clone().neg().exp() - 1.0 + x_n,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use std::f32::consts::LN_2;

    /// x = ln 2 = 0.693147: k1 = 0.693147, k2 = ½·0.480453 = 0.240227, k3 = ½ − 1 + 0.693147 = 0.193147.
    /// x = −ln 2: −0.693147, 0.240227, 2 − 1 − 0.693147 = 0.306853.
    #[test]
    fn by_hand() {
        let x = LN_2;
        for (estimator, plus, minus) in [
            (Estimator::K1, LN_2, -LN_2),
            (Estimator::K2, 0.240_227, 0.240_227),
            (Estimator::K3, 0.193_147, 0.306_853),
        ] {
            assert!((estimator.of(x) - plus).abs() < 1e-6);
            assert!((estimator.of(-x) - minus).abs() < 1e-6);
            assert_eq!(estimator.of(0.0), 0.0);
            let d = Device::flex();
            let tensor = |x: &[f32]| Tensor::<1>::from_data(x, &d);
            let both: Vec<f32> = estimator
                .of_tensor(tensor(&[x - 1.0, -x - 1.0]), tensor(&[-1.0, -1.0]))
                .into_data()
                .to_vec()
                .unwrap();
            assert!((both[0] - plus).abs() < 1e-6 && (both[1] - minus).abs() < 1e-6);
        }
    }

    /// Two tokens, π = (0.8, 0.2), ρ = (0.5, 0.5): KL = 0.8·ln 1.6 + 0.2·ln 0.4 = 0.376003 − 0.183258 = 0.192745. The
    /// means under π of k1 and k3 are the KL; that of k2 is 0.8·½·0.220903 + 0.2·½·0.839590 = 0.172320.
    #[test]
    fn k1_and_k3_are_unbiased() {
        let (p, q) = ([0.8f32, 0.2], [0.5f32, 0.5]);
        let mean = |e: Estimator| -> f32 { (0..2).map(|i| p[i] * e.of((p[i] / q[i]).ln())).sum() };
        assert!((mean(Estimator::K1) - 0.192_745).abs() < 1e-5);
        assert!((mean(Estimator::K3) - 0.192_745).abs() < 1e-5);
        assert!((mean(Estimator::K2) - 0.172_320).abs() < 1e-5);
    }
}
