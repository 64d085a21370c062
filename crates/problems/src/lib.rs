//! What a programming problem is, the files it comes in, and how outputs are compared.
mod checker;
pub mod jsonl;
pub mod micro;
mod problem;
#[cfg(test)]
mod python;
mod sets;
mod validate;

pub use checker::{CheckerError, Comparison, Difference};
pub use jsonl::JsonlError;
pub use problem::{Checker, Problem, Solution, TestCase};
pub use sets::{ProblemSet, SPLITS, SetError};
pub use validate::{Invalid, VERDICTS};
