//! From the losses of tokens to the loss of a minibatch: what a token weighs, and what the weighted sum is divided by.
//!
//! A sequence is the record of one episode; its tokens are those of all its answers. Masked tokens weigh nothing. The
//! number of sequences is always that of the whole minibatch, masked ones included, so that masking one makes the others
//! no heavier.

use serde::{Deserialize, Serialize};

/// How tokens' losses become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregation {
    /// The mean over all tokens of the minibatch (RLEF, DAPO).
    #[default]
    TokenMean,
    /// The mean over each sequence's tokens, then over sequences (GRPO).
    SequenceMeanTokenMean,
    /// The sum over each sequence's tokens divided by a constant, then the mean over sequences (Dr. GRPO, GRPO++).
    SequenceMeanTokenSum,
}

impl Aggregation {
    /// The weight of each unmasked token of a sequence that has `tokens` of them.
    pub fn weight(self, tokens: usize) -> f32 {
        match self {
            Self::TokenMean | Self::SequenceMeanTokenSum => 1.0,
            Self::SequenceMeanTokenMean => 1.0 / tokens.max(1) as f32,
        }
    }

    /// What the weighted sum is divided by; over 0. `tokens` has the number of unmasked tokens of each sequence of the
    /// minibatch; `constant` is the length that [`Aggregation::SequenceMeanTokenSum`] divides by.
    pub fn divisor(self, tokens: &[usize], constant: usize) -> f64 {
        let sequences = tokens.len().max(1) as f64;
        match self {
            Self::TokenMean => tokens.iter().sum::<usize>().max(1) as f64,
            Self::SequenceMeanTokenMean => sequences,
            Self::SequenceMeanTokenSum => sequences * constant.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sequences of 1, 3 and 0 unmasked tokens with losses 4; 1, 2, 6; none. Constant 10.
    ///
    /// token mean: (4 + 1 + 2 + 6)/4 = 3.25
    /// sequence mean of token means: (4 + 9/3 + 0)/3 = 2.333333
    /// sequence mean of token sums over 10: (4/10 + 9/10 + 0)/3 = 0.433333
    #[test]
    fn by_hand() {
        let losses: [&[f64]; 3] = [&[4.0], &[1.0, 2.0, 6.0], &[]];
        for (aggregation, want) in [
            (Aggregation::TokenMean, 3.25),
            (Aggregation::SequenceMeanTokenMean, 7.0 / 3.0),
            (Aggregation::SequenceMeanTokenSum, 1.3 / 3.0),
        ] {
            let sum: f64 = losses
                .iter()
                .map(|l| f64::from(aggregation.weight(l.len())) * l.iter().sum::<f64>())
                .sum();
            let divisor = aggregation.divisor(&[1, 3, 0], 10);
            assert!((sum / divisor - want).abs() < 1e-6, "{aggregation:?}");
        }
    }

    #[test]
    fn nothing_to_learn_from_divides_by_no_zero() {
        for aggregation in [
            Aggregation::TokenMean,
            Aggregation::SequenceMeanTokenMean,
            Aggregation::SequenceMeanTokenSum,
        ] {
            assert!(aggregation.weight(0).is_finite());
            for tokens in [&[][..], &[0, 0]] {
                assert!(aggregation.divisor(tokens, 0) > 0.0);
            }
        }
    }
}
