//! Runs an untrusted program on an input under limits and says what happened.
mod outcome;

pub use outcome::{Ending, Limits, Outcome};
