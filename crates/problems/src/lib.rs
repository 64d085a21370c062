//! What a programming problem is, the files it comes in, and how outputs are compared.
mod checker;
pub mod micro;
mod problem;

pub use checker::{CheckerError, Comparison, Difference};
pub use problem::{Checker, Problem, Solution, TestCase};
