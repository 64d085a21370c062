//! The episode: prompt, answer, feedback, reward.
//!
//! An [`Episode`] is a dialog about a problem. Whoever answers reads [`Episode::messages`] and gives its response to
//! [`Episode::step`], which runs the program in it, gives the turn's reward and adds the feedback, until
//! [`Episode::is_done`]. Training, evaluation and debugging all drive this one type.

mod choose;
mod config;
mod episode;
mod extract;
mod feedback;
mod message;
mod prompt;
mod trace;

pub use choose::choose_donor;
pub use config::{CodeBlock, EpisodeConfig, FeedbackMode, PromptStyle};
pub use episode::{Episode, EpisodeError, Step, StepError, step_many};
pub use extract::extract_code;
pub use message::{Message, Role};
