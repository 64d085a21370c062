//! n@k with confidence intervals, and reports.
//!
//! A [`Pool`] of rollouts is the raw result of an evaluation; [`score`] makes n@k of it and [`difference`] compares two
//! pools on the same problems. The statistics are pure functions; [`measure`] makes a pool with a policy and the judge.

mod bootstrap;
mod error;
mod measure;
mod nk;
mod record;
mod table;

pub use bootstrap::{
    Bootstrap, Difference, Estimate, ProblemScore, Resample, Score, difference, score,
};
pub use error::EvalError;
pub use measure::measure;
pub use nk::{Budget, n_at_k, pass_at_k};
pub use record::{Pool, ProblemPool, Rollout, TurnRecord};
pub use table::{Condition, NamedDifference, Summary};
