//! The record of an episode as a run keeps it: enough to look at what happened, and to learn from it again.
//!
//! One JSON object a line. Numbers are written so that they read back to the same bits.

use std::ops::Range;

use rlef_judge::Report;
use rlef_policy::{Outcome, Rollout};
use serde::{Deserialize, Serialize};

use crate::batch::Sample;

/// One episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The iteration, from 1.
    pub step: usize,
    /// Problem id.
    pub problem: String,
    /// Which rollout of the problem it is.
    pub sample: u64,
    /// Rollouts of an iteration with the same number are compared with each other.
    pub group: usize,
    /// Why it was lost to a fault of the machinery; the rest is then empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// Whether it was learned from. Not: lost episodes, and those of groups without signal that were refilled.
    pub learned: bool,
    /// Whether its last answer passed every test.
    pub solved: bool,
    /// Whether it ended because it had grown too long for the model.
    pub full: bool,
    /// Every token of the dialog. Those within the turns' answers are the policy's, the others the environment's.
    pub tokens: Vec<u32>,
    /// The turns.
    pub turns: Vec<TurnRecord>,
    /// Value of each step at the start of the updates; a step is a turn, or an answer token.
    pub values: Vec<f32>,
    /// Return of each step.
    pub returns: Vec<f32>,
    /// Advantage of each step, as the loss had it.
    pub advantages: Vec<f32>,
}

/// One turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnRecord {
    /// Where its answer lies among the tokens.
    pub answer: Range<usize>,
    /// Whether the answer ended by itself; otherwise it was cut at the length limit.
    pub finished: bool,
    /// The task's part of the reward.
    pub reward: f32,
    /// Whether it had code that parses.
    pub valid_code: bool,
    /// The verdicts on the public tests; `null` if there was no program.
    pub public: Option<Vec<String>>,
    /// The verdicts on the private tests up to the first failure; `null` if they were not run.
    pub private: Option<Vec<String>>,
    /// Version of the weights that sampled each token: how many updates they had seen.
    pub versions: Vec<u64>,
    /// Log-probability of each token when it was sampled.
    pub logprobs: Vec<f32>,
    /// The same under the weights at the start of the updates.
    pub old: Vec<f32>,
    /// The same under the reference policy; as `old` where nothing is paid for leaving it.
    pub reference: Vec<f32>,
}

fn verdicts(report: &Report) -> Vec<String> {
    let name = |v| match serde_json::to_value(v) {
        Ok(serde_json::Value::String(name)) => name,
        _ => format!("{v:?}"),
    };
    report.results.iter().map(|r| name(r.verdict)).collect()
}

impl Record {
    /// Of an episode, before it is known what was made of it.
    pub fn new(step: usize, group: usize, outcome: &Outcome) -> Self {
        let empty = |problem: &str, sample| Self {
            step,
            problem: problem.to_owned(),
            sample,
            group,
            lost: None,
            learned: false,
            solved: false,
            full: false,
            tokens: vec![],
            turns: vec![],
            values: vec![],
            returns: vec![],
            advantages: vec![],
        };
        match outcome {
            Outcome::Lost {
                problem,
                sample,
                why,
            } => Self {
                lost: Some(why.clone()),
                ..empty(problem, *sample)
            },
            Outcome::Done(r) => Self {
                solved: r.solved(),
                full: r.full,
                tokens: r.tokens.iter().map(|t| t.id).collect(),
                turns: turns(r),
                ..empty(&r.problem.id, r.sample)
            },
        }
    }

    /// Adds what was made of it.
    pub fn add(&mut self, s: &Sample) {
        self.learned = true;
        let mut at = 0;
        for turn in &mut self.turns {
            let span = at..at + turn.answer.len();
            at = span.end;
            turn.old = s.old.get(span.clone()).unwrap_or_default().to_vec();
            turn.reference = s.reference.get(span).unwrap_or_default().to_vec();
        }
        self.values.clone_from(&s.values);
        self.returns.clone_from(&s.returns);
        self.advantages.clone_from(&s.advantages);
    }

    /// As the learner sees it, before anything was made of it.
    ///
    /// # Errors
    /// A record that is no dialog: an answer that does not lie within it or overlaps another, or that lacks numbers.
    pub fn sample(&self) -> Result<Sample, String> {
        let mut end = 1;
        for (i, t) in self.turns.iter().enumerate() {
            let n = t.answer.len();
            let fits = t.answer.start >= end
                && t.answer.end >= t.answer.start
                && t.answer.end <= self.tokens.len();
            if !fits || t.versions.len() != n || t.logprobs.len() != n {
                return Err(format!(
                    "turn {} of rollout {} of problem {} does not fit its dialog",
                    i + 1,
                    self.sample,
                    self.problem
                ));
            }
            end = t.answer.end;
        }
        let all = |f: fn(&TurnRecord) -> &Vec<f32>| -> Vec<f32> {
            self.turns.iter().flat_map(|t| f(t).clone()).collect()
        };
        let behaviour = all(|t| &t.logprobs);
        let mut cut: Vec<bool> = self.turns.iter().map(|t| !t.finished).collect();
        if let Some(last) = cut.last_mut() {
            *last |= self.full;
        }
        let answers = self.turns.iter().map(|t| t.answer.clone()).collect();
        Ok(Sample {
            group: self.group,
            cut,
            versions: self.turns.iter().flat_map(|t| t.versions.clone()).collect(),
            old: behaviour.clone(),
            reference: behaviour.clone(),
            behaviour,
            rewards: self.turns.iter().map(|t| t.reward).collect(),
            ..Sample::new(self.tokens.clone(), answers)
        })
    }
}

fn turns(r: &Rollout) -> Vec<TurnRecord> {
    r.turns
        .iter()
        .map(|t| {
            let tokens = &r.tokens[t.answer.clone()];
            TurnRecord {
                answer: t.answer.clone(),
                finished: t.finished,
                reward: t.step.reward,
                valid_code: t.step.valid_code,
                public: t.step.public.as_ref().map(verdicts),
                private: t.step.private.as_ref().map(verdicts),
                versions: tokens.iter().map(|x| x.version).collect(),
                logprobs: tokens.iter().map(|x| x.logprob).collect(),
                old: vec![],
                reference: vec![],
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn turn(answer: Range<usize>, logprobs: Vec<f32>) -> TurnRecord {
        TurnRecord {
            finished: true,
            reward: -0.2,
            valid_code: true,
            public: Some(vec!["wrong_answer".into()]),
            private: None,
            versions: vec![3; answer.len()],
            old: logprobs.clone(),
            reference: logprobs.clone(),
            logprobs,
            answer,
        }
    }

    fn record(turns: Vec<TurnRecord>, tokens: usize) -> Record {
        Record {
            step: 1,
            problem: "p".into(),
            sample: 0,
            group: 2,
            lost: None,
            learned: true,
            solved: false,
            full: true,
            tokens: (0..tokens as u32).collect(),
            turns,
            values: vec![0.25],
            returns: vec![-1.0],
            advantages: vec![0.1],
        }
    }

    #[test]
    fn a_record_becomes_a_sample() {
        let r = record(
            vec![turn(2..4, vec![-0.1, -0.2]), turn(5..6, vec![-0.3])],
            6,
        );
        let s = r.sample().unwrap();
        assert_eq!((s.group, &s.behaviour), (2, &vec![-0.1, -0.2, -0.3]));
        assert_eq!((s.cut, s.versions), (vec![false, true], vec![3; 3]));
    }

    #[test]
    fn what_is_no_dialog_is_refused() {
        let good = turn(2..4, vec![-0.1, -0.2]);
        let cases = [
            vec![turn(2..7, vec![-0.1; 5])],
            vec![turn(0..2, vec![-0.1; 2])],
            vec![good.clone(), turn(3..5, vec![-0.1; 2])],
            vec![turn(2..4, vec![-0.1])],
        ];
        for turns in cases {
            assert!(record(turns, 6).sample().unwrap_err().contains("turn"));
        }
    }

    proptest! {
        #[test]
        fn numbers_read_back_to_the_same_bits(bits in prop::collection::vec(any::<u32>(), 2)) {
            let x: Vec<f32> = bits.iter().map(|&b| f32::from_bits(b)).collect();
            prop_assume!(x.iter().all(|x| x.is_finite()));
            let r = record(vec![turn(2..4, x.clone())], 4);
            let text = serde_json::to_string(&r).unwrap();
            let back: Record = serde_json::from_str(&text).unwrap();
            let same = back.turns[0].logprobs.iter().zip(&x).all(|(a, b)| a.to_bits() == b.to_bits());
            prop_assert!(same);
        }
    }
}
