//! The record of an episode: tokens first, text as a view of them.

use std::ops::Range;
use std::sync::Arc;

use rlef_env::{Message, Step};
use rlef_problems::Problem;
use serde::Serialize;

/// Who wrote a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The environment, through the chat template.
    Environment,
    /// The policy.
    Policy,
}

/// One token of a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Token {
    /// Its number in the vocabulary.
    pub id: u32,
    /// Who wrote it.
    pub author: Author,
    /// Its log-probability when it was sampled; 0 for the environment's.
    pub logprob: f32,
    /// The version of the weights that sampled it; 0 for the environment's.
    pub version: u64,
}

/// One turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Turn {
    /// Where its answer lies in [`Rollout::tokens`]; the token before it is the last of its prompt.
    pub answer: Range<usize>,
    /// Whether the answer ended by itself.
    pub finished: bool,
    /// What came of it.
    pub step: Step,
}

/// A finished episode.
#[derive(Debug, Clone)]
pub struct Rollout {
    /// The problem.
    pub problem: Arc<Problem>,
    /// Which rollout of this problem it is.
    pub sample: u64,
    /// Every token of the dialog, in order.
    pub tokens: Vec<Token>,
    /// The turns; at least one.
    pub turns: Vec<Turn>,
    /// The dialog as text.
    pub messages: Vec<Message>,
    /// Whether it ended because it had grown too long for the model, not because its turns were used up or its
    /// program passed.
    pub full: bool,
}

impl Rollout {
    /// Whether the last answer passed every test.
    pub fn solved(&self) -> bool {
        self.turns
            .last()
            .is_some_and(|t| t.step.solved == Some(true))
    }

    /// The sum of the turns' task rewards.
    pub fn reward(&self) -> f32 {
        self.turns.iter().map(|t| t.step.reward).sum()
    }
}

/// What became of an episode.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It came to its end.
    Done(Box<Rollout>),
    /// The machinery failed: no reward, left out of every average.
    Lost {
        /// Problem id.
        problem: String,
        /// Which rollout of it.
        sample: u64,
        /// What failed.
        why: String,
    },
}

impl Outcome {
    /// The rollout, if there is one.
    pub fn rollout(&self) -> Option<&Rollout> {
        match self {
            Self::Done(r) => Some(r),
            Self::Lost { .. } => None,
        }
    }
}
