//! What a programming problem is, the files it comes in, and how outputs are compared.
pub mod micro;
mod problem;

pub use problem::{Checker, Problem, Solution, TestCase};
