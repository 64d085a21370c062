//! Dialogs as tensors: which positions predict answer tokens, which hold a turn's state.

use std::ops::Range;

use burn::tensor::{Device, Int, Tensor, TensorData};
use rlef_policy::Rollout;

/// A dialog as the learner sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Every token.
    pub tokens: Vec<u32>,
    /// Where the answers lie.
    pub answers: Vec<Range<usize>>,
    /// Log-probability of each answer token when it was sampled, answers one after the other.
    pub behaviour: Vec<f32>,
    /// The same under the weights at the start of the update.
    pub old: Vec<f32>,
    /// The same under the reference policy.
    pub reference: Vec<f32>,
    /// Task reward of each turn.
    pub rewards: Vec<f32>,
    /// Value of each turn's state at the start of the update.
    pub values: Vec<f32>,
    /// Return of each turn.
    pub returns: Vec<f32>,
    /// Advantage of each turn.
    pub advantages: Vec<f32>,
}

impl Sample {
    /// From the record of an episode. Values, returns and advantages are filled in later.
    pub fn from_rollout(r: &Rollout) -> Self {
        let behaviour: Vec<f32> = r
            .turns
            .iter()
            .flat_map(|t| r.tokens[t.answer.clone()].iter().map(|x| x.logprob))
            .collect();
        let n = r.turns.len();
        Self {
            tokens: r.tokens.iter().map(|t| t.id).collect(),
            answers: r.turns.iter().map(|t| t.answer.clone()).collect(),
            old: behaviour.clone(),
            reference: behaviour.clone(),
            behaviour,
            rewards: r.turns.iter().map(|t| t.step.reward).collect(),
            values: vec![0.0; n],
            returns: vec![0.0; n],
            advantages: vec![0.0; n],
        }
    }

    /// Answer tokens.
    pub fn answer_tokens(&self) -> usize {
        self.answers.iter().map(Range::len).sum()
    }

    /// For each turn the mean over its answer's tokens of `old − reference`.
    pub fn log_ratios(&self) -> Vec<f32> {
        let mut at = 0;
        self.answers
            .iter()
            .map(|a| {
                let span = at..at + a.len();
                at = span.end;
                let sum: f32 = span.clone().map(|i| self.old[i] - self.reference[i]).sum();
                sum / span.len().max(1) as f32
            })
            .collect()
    }
}

/// Several dialogs side by side, padded at the right.
pub struct Packed {
    /// `[b, t]`.
    pub tokens_bt: Tensor<2, Int>,
    /// Flat position (row · t + column) before each answer token: the one that predicts it; `[n]`.
    pub predict_n: Tensor<1, Int>,
    /// The answer tokens; `[n]`.
    pub target_n: Tensor<1, Int>,
    /// Flat position of the last prompt token of each turn; `[m]`.
    pub state_m: Tensor<1, Int>,
    /// Answer tokens.
    pub n: usize,
    /// Turns.
    pub m: usize,
}

impl Packed {
    /// `targets` says which positions of a dialog are predicted (its answers, or all but the first token).
    pub fn new(
        samples: &[&Sample],
        targets: impl Fn(&Sample) -> Vec<Range<usize>>,
        device: &Device,
    ) -> Self {
        let (b, t) = (
            samples.len(),
            samples.iter().map(|s| s.tokens.len()).max().unwrap_or(0),
        );
        let mut tokens = vec![0i32; b * t];
        let (mut predict, mut target, mut state) = (vec![], vec![], vec![]);
        for (row, s) in samples.iter().enumerate() {
            for (x, &id) in tokens[row * t..].iter_mut().zip(&s.tokens) {
                *x = id as i32;
            }
            for range in targets(s) {
                for p in range {
                    predict.push((row * t + p - 1) as i32);
                    target.push(s.tokens[p] as i32);
                }
            }
            state.extend(s.answers.iter().map(|a| (row * t + a.start - 1) as i32));
        }
        let (n, m) = (predict.len(), state.len());
        let list = |v: Vec<i32>| Tensor::<1, Int>::from_data(v.as_slice(), device);
        Self {
            tokens_bt: Tensor::from_data(TensorData::new(tokens, [b, t]), device),
            predict_n: list(predict),
            target_n: list(target),
            state_m: list(state),
            n,
            m,
        }
    }
}

/// Cuts `0..lengths.len()` into `parts` groups of about equal cost: longest first, each to the group with the
/// least padded length so far; every group is then sorted by length. Some groups are empty if there are too few.
pub fn balance(lengths: &[usize], parts: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(lengths[i]), i));
    let mut groups = vec![Vec::new(); parts.max(1)];
    // Dealing sorted lengths out in turn keeps both the sums and the longest of each group close.
    for (k, i) in order.into_iter().enumerate() {
        let n = groups.len();
        let at = if (k / n).is_multiple_of(2) {
            k % n
        } else {
            n - 1 - k % n
        };
        groups[at].push(i);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn positions_by_hand() {
        // prompt 7 8, answer 9 2, feedback 5, answer 6 2
        let s = Sample {
            tokens: vec![7, 8, 9, 2, 5, 6, 2],
            answers: vec![2..4, 5..7],
            behaviour: vec![-0.1, -0.2, -0.3, -0.5],
            old: vec![-0.1, -0.2, -0.3, -0.5],
            reference: vec![-0.2, -0.4, -0.3, -0.4],
            rewards: vec![0.0, 1.0],
            values: vec![0.0; 2],
            returns: vec![0.0; 2],
            advantages: vec![0.0; 2],
        };
        // (0.1 + 0.2)/2 and (0 − 0.1)/2
        let k = s.log_ratios();
        assert!(
            (k[0] - 0.15).abs() < 1e-6 && (k[1] + 0.05).abs() < 1e-6,
            "{k:?}"
        );
        let short = Sample {
            tokens: vec![7, 9],
            answers: std::iter::once(1..2).collect(),
            ..s.clone()
        };
        let p = Packed::new(&[&short, &s], |s| s.answers.clone(), &Device::flex());
        let ints = |t: Tensor<1, Int>| t.into_data().convert::<i64>().to_vec::<i64>().unwrap();
        assert_eq!(p.tokens_bt.dims(), [2, 7]);
        assert_eq!(ints(p.predict_n), [0, 8, 9, 11, 12]);
        assert_eq!(ints(p.target_n), [9, 9, 2, 6, 2]);
        assert_eq!(ints(p.state_m), [0, 8, 11]);
    }

    proptest! {
        #[test]
        fn balance_is_a_partition(lengths in prop::collection::vec(1usize..300, 0..60), parts in 1usize..5) {
            let groups = balance(&lengths, parts);
            prop_assert_eq!(groups.len(), parts);
            let mut all: Vec<usize> = groups.concat();
            all.sort();
            prop_assert_eq!(all, (0..lengths.len()).collect::<Vec<_>>());
            let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
    }
}
