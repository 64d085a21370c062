//! Whoever answers, and the loop that lets it answer.
//!
//! A [`Policy`] opens [`Session`]s; a session answers many dialogs at once, turn by turn. [`drive`] runs episodes
//! with a policy through the judge. Training, evaluation and supervised data all come from this one loop.

mod dialog;
mod drive;
mod local;
mod rollout;
mod scripted;
mod seed;
mod tabular;

pub use dialog::{Dialog, DialogTurn};
pub use drive::{Drive, DriveError, Progress, Task, Timing, drive, tasks};
pub use local::LocalPolicy;
pub use rollout::{Author, Outcome, Rollout, Token, Turn};
pub use scripted::{Script, ScriptedPolicy};
pub use seed::dialog_seed;
pub use tabular::GuessPolicy;

use rlef_env::Message;
use rlef_model::ModelError;
use rlef_problems::Problem;

/// What a dialog asks of the policy.
pub struct Ask<'a> {
    /// Which dialog of the session; the same number on every turn.
    pub dialog: usize,
    /// The problem, for policies that look things up in it (never for a model).
    pub problem: &'a Problem,
    /// The whole dialog so far; it ends with a user message.
    pub messages: &'a [Message],
    /// The turn, from 0.
    pub turn: usize,
    /// The seed of this answer's randomness.
    pub seed: [u8; 32],
}

/// What the policy answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Tokens that the turn's prompt appended to the record; empty for policies without tokens.
    pub prompt: Vec<u32>,
    /// The answer's tokens with their log-probabilities.
    pub tokens: Vec<(u32, f32)>,
    /// Version of the weights that sampled them.
    pub version: u64,
    /// Whether the answer ended by itself; otherwise it was cut at the length limit.
    pub finished: bool,
}

/// What becomes of an ask.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// An answer.
    Answer(Answer),
    /// The dialog has grown too long for the model, so that no answer can be given; it has ended.
    Full(Full),
}

/// A dialog that does not fit the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full {
    /// Tokens of the dialog up to this turn's prompt, plus the longest answer.
    pub needed: usize,
    /// Positions the model has.
    pub positions: usize,
}

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "it needs {} tokens with the longest answer (rollout.max_new_tokens), and the model has {} positions",
            self.needed, self.positions
        )
    }
}

/// Why a policy could not answer. Not the dialog's fault.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The dialog does not fit the model.
    #[error(
        "the dialog on problem {problem} is too long: {full}; shorten the prompt or the longest answer"
    )]
    Full {
        /// Problem id.
        problem: String,
        /// By how much.
        full: Full,
    },
    /// A policy that looks answers up has none for this problem.
    #[error("no answer for problem {problem}: {why}")]
    NoAnswer {
        /// Problem id.
        problem: String,
        /// What is missing.
        why: String,
    },
}

/// Somebody who answers.
pub trait Policy: Sync {
    /// Opens a session.
    fn open(&self) -> Box<dyn Session + '_>;
}

/// A set of dialogs that are answered together.
pub trait Session {
    /// Answers every dialog that is named. The first call opens the dialogs; a dialog that a later call does not
    /// name has ended.
    fn answer(&mut self, asks: &[Ask]) -> Result<Vec<Reply>, PolicyError>;
}
