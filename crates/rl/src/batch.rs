//! Dialogs as tensors: which positions predict answer tokens, which hold a turn's state.

use std::ops::Range;

use burn::tensor::{Device, Int, Tensor, TensorData};
use rlef_policy::Rollout;
use serde::{Deserialize, Serialize};

use crate::kl::Estimator;

/// What is done with answers that were cut at the length limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncated {
    /// They are learned from like others.
    #[default]
    Keep,
    /// An episode with a cut answer, or one that ended because the dialog had grown too long, gives no loss. Its reward
    /// still counts in its group's baseline.
    Mask,
    /// A cut answer costs a part of the reward; so does the last answer of a dialog that had grown too long.
    #[serde(alias = "penalize")]
    Penalise,
}

/// What one action is: it has a value, a return and an advantage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// An answer (RLEF §2.2).
    #[default]
    Turn,
    /// An answer token (RLEF B.6).
    Token,
}

/// A dialog as the learner sees it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// Every token.
    pub tokens: Vec<u32>,
    /// Where the answers lie.
    pub answers: Vec<Range<usize>>,
    /// Whether each answer was cut at the length limit; so counts the last one of a dialog that had grown too long.
    pub cut: Vec<bool>,
    /// Rollouts with the same number are of one problem and are compared with each other.
    pub group: usize,
    /// Where the tokens of each step lie: the answers, or every answer token by itself.
    pub steps: Vec<Range<usize>>,
    /// Whether the loss counts each answer token.
    pub learn: Vec<bool>,
    /// Version of the weights that sampled each answer token.
    pub versions: Vec<u64>,
    /// Log-probability of each answer token when it was sampled, answers one after the other.
    pub behaviour: Vec<f32>,
    /// The same under the weights at the start of the update.
    pub old: Vec<f32>,
    /// The same under the reference policy.
    pub reference: Vec<f32>,
    /// Task reward of each turn.
    pub rewards: Vec<f32>,
    /// Value of each step's state at the start of the update.
    pub values: Vec<f32>,
    /// Return of each step.
    pub returns: Vec<f32>,
    /// Advantage of each step.
    pub advantages: Vec<f32>,
}

impl Sample {
    /// Tokens and where the answers lie; everything else as if the answers were steps of no worth.
    pub fn new(tokens: Vec<u32>, answers: Vec<Range<usize>>) -> Self {
        let (m, n) = (answers.len(), answers.iter().map(Range::len).sum());
        let mut sample = Self {
            tokens,
            cut: vec![false; m],
            learn: vec![true; n],
            versions: vec![0; n],
            behaviour: vec![0.0; n],
            old: vec![0.0; n],
            reference: vec![0.0; n],
            rewards: vec![0.0; m],
            answers,
            ..Self::default()
        };
        sample.divide(Level::Turn);
        sample
    }

    /// From the record of an episode. Values, returns and advantages are filled in later.
    pub fn from_rollout(r: &Rollout) -> Self {
        let answers: Vec<_> = r.turns.iter().map(|t| t.answer.clone()).collect();
        let sampled = || answers.iter().flat_map(|a| &r.tokens[a.clone()]);
        let behaviour: Vec<f32> = sampled().map(|x| x.logprob).collect();
        let versions = sampled().map(|x| x.version).collect();
        let mut cut: Vec<bool> = r.turns.iter().map(|t| !t.finished).collect();
        if let Some(last) = cut.last_mut() {
            *last |= r.full;
        }
        Self {
            versions,
            cut,
            rewards: r.turns.iter().map(|t| t.step.reward).collect(),
            old: behaviour.clone(),
            reference: behaviour.clone(),
            behaviour,
            ..Self::new(r.tokens.iter().map(|t| t.id).collect(), answers)
        }
    }

    /// Makes steps of the answers or of their tokens. What is known of steps is forgotten.
    pub fn divide(&mut self, level: Level) {
        self.steps = match level {
            Level::Turn => self.answers.clone(),
            Level::Token => self
                .answers
                .iter()
                .flat_map(|a| a.clone().map(|t| t..t + 1))
                .collect(),
        };
        let n = self.steps.len();
        (self.values, self.returns, self.advantages) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    }

    /// Answer tokens.
    pub fn answer_tokens(&self) -> usize {
        self.answers.iter().map(Range::len).sum()
    }

    /// For each turn the mean over its answer's tokens of what `estimator` makes of `old − reference`.
    pub fn kl_of_turns(&self, estimator: Estimator) -> Vec<f32> {
        let mut at = 0;
        self.answers
            .iter()
            .map(|a| {
                let span = at..at + a.len();
                at = span.end;
                let one = |i| estimator.of(self.old[i] - self.reference[i]);
                let sum: f32 = span.clone().map(one).sum();
                sum / span.len().max(1) as f32
            })
            .collect()
    }

    /// The advantage of each answer token: that of its step.
    pub fn token_advantages(&self) -> Vec<f32> {
        self.steps
            .iter()
            .zip(&self.advantages)
            .flat_map(|(s, &x)| std::iter::repeat_n(x, s.len()))
            .collect()
    }

    /// Which answer tokens the loss counts when `updates` updates have been made: not those that are masked, nor those
    /// that are staler than `most`.
    pub fn counted(&self, updates: u64, most: Option<u64>) -> Vec<bool> {
        let fresh = |v: u64| most.is_none_or(|m| crate::off_policy::staleness(updates, v) <= m);
        self.learn
            .iter()
            .zip(&self.versions)
            .map(|(&learn, &version)| learn && fresh(version))
            .collect()
    }

    /// Which steps the value loss counts: those with a counted token, or without tokens.
    pub fn counted_steps(&self, counted: &[bool]) -> Vec<bool> {
        let mut at = 0;
        self.steps
            .iter()
            .map(|s| {
                let span = at..at + s.len();
                at = span.end;
                span.is_empty() || counted[span].iter().any(|&c| c)
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
    /// Flat position of the token before each step; `[m]`.
    pub state_m: Tensor<1, Int>,
    /// Answer tokens.
    pub n: usize,
    /// Steps.
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
            state.extend(s.steps.iter().map(|a| (row * t + a.start - 1) as i32));
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
            behaviour: vec![-0.1, -0.2, -0.3, -0.5],
            old: vec![-0.1, -0.2, -0.3, -0.5],
            reference: vec![-0.2, -0.4, -0.3, -0.4],
            rewards: vec![0.0, 1.0],
            ..Sample::new(vec![7, 8, 9, 2, 5, 6, 2], vec![2..4, 5..7])
        };
        // (0.1 + 0.2)/2 and (0 − 0.1)/2
        let k = s.kl_of_turns(Estimator::K1);
        assert!(
            (k[0] - 0.15).abs() < 1e-6 && (k[1] + 0.05).abs() < 1e-6,
            "{k:?}"
        );
        let short = Sample::new(vec![7, 9], std::iter::once(1..2).collect());
        let p = Packed::new(&[&short, &s], |s| s.answers.clone(), &Device::flex());
        let ints = |t: Tensor<1, Int>| t.into_data().convert::<i64>().to_vec::<i64>().unwrap();
        assert_eq!(p.tokens_bt.dims(), [2, 7]);
        assert_eq!(ints(p.predict_n), [0, 8, 9, 11, 12]);
        assert_eq!(ints(p.target_n), [9, 9, 2, 6, 2]);
        assert_eq!(ints(p.state_m), [0, 8, 11]);
        // Steps are tokens: the state before each of them, and none in what the environment said (5).
        let mut s = s;
        s.divide(Level::Token);
        let p = Packed::new(&[&s], |s| s.answers.clone(), &Device::flex());
        assert_eq!(ints(p.state_m), [1, 2, 4, 5]);
    }

    /// Answers of 2 and 2 tokens, the first sampled by version 4, the second by 6; 7 updates made.
    #[test]
    fn masks_by_hand() {
        let mut s = Sample {
            versions: vec![4, 4, 6, 6],
            ..Sample::new(vec![7, 8, 9, 2, 5, 6, 2], vec![2..4, 5..7])
        };
        assert_eq!(s.counted(7, None), [true; 4]);
        assert_eq!(s.counted(7, Some(3)), [true; 4]);
        let counted = s.counted(7, Some(2));
        assert_eq!(counted, [false, false, true, true]);
        assert_eq!(s.counted_steps(&counted), [false, true]);
        s.learn = vec![false; 4];
        assert_eq!(s.counted(7, None), [false; 4]);
        s.advantages = vec![0.5, -1.0];
        assert_eq!(s.token_advantages(), [0.5, 0.5, -1.0, -1.0]);
        s.divide(Level::Token);
        assert_eq!(s.counted_steps(&counted), [false, false, true, true]);
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
