//! Runs a program, in any language of the sandbox, on the tests of a problem and gives a verdict for each.
//!
//! - [`Judge`] runs programs through an [`Executor`] (a sandbox), forms verdicts and remembers outcomes.
//! - [`Report`] says what became of each test; [`Report::all_passed`] is the only thing that counts as passing.
//! - [`audit`] asks of a whole set of problems whether its tests and its known programs agree.
//! - [`Fault`] says that the machinery failed. It is not a verdict and must never become a reward.

pub mod audit;
mod cache;
mod compare;
mod config;
mod ending;
mod executor;
mod fault;
mod judge;
mod judging;
mod parallel;
mod report;
mod running;
mod validator;
mod value;

pub use config::JudgeConfig;
pub use executor::{BoxError, Candidate, Compiled, Executor};
pub use fault::Fault;
pub use judge::{Job, Judge, JudgeStats, Stop};
pub use judging::Judging;
pub use parallel::map_in_order;
pub use report::{Detail, Report, TestResult, Verdict};
