//! Samples that other weights than π_old made: what their tokens weigh, and how stale they may be.
//!
//! - RLEF (A.1): the ratio is multiplied by `stopgrad(min(π_θ/π_b, 1))`, inside the clip; it is part of `ppo.rs`.
//! - Truncated importance sampling: the token's loss is multiplied by `min(π_old/π_b, C)`, which carries no gradient and
//!   corrects in expectation what of the difference does not exceed `C` (as IMPALA's truncated weights, arXiv 1802.01561).
//!
//! π_b is the policy that sampled the token, π_old the weights at the start of the iteration's updates.

use serde::{Deserialize, Serialize};

/// What is done about samples of other weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OffPolicy {
    /// RLEF's factor in the ratio.
    #[default]
    Rlef,
    /// Truncated importance sampling.
    #[serde(alias = "tis")]
    Truncated,
    /// Nothing.
    None,
}

/// `min(π_old/π_b, C)` of one token from log-probabilities.
pub fn truncated(old: f32, behaviour: f32, cap: f32) -> f32 {
    (old - behaviour).exp().min(cap)
}

/// How many updates lie between the weights that sampled a token and those that learn from it now.
pub fn staleness(now: u64, version: u64) -> u64 {
    now.saturating_sub(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// π_old = 0.3: π_b = 0.6 → 0.5; π_b = 0.3 → 1; π_b = 0.05 → 6, truncated to 2.
    #[test]
    fn by_hand() {
        let weight = |b: f32| truncated(0.3f32.ln(), b.ln(), 2.0);
        for (b, want) in [(0.6, 0.5), (0.3, 1.0), (0.05, 2.0)] {
            assert!((weight(b) - want).abs() < 1e-5);
        }
        assert_eq!((staleness(7, 4), staleness(4, 4)), (3, 0));
    }
}
