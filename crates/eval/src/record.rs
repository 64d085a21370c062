//! What an evaluation leaves behind: for every rollout, what became of each answer.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::error::EvalError;

/// One answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnRecord {
    /// Whether it passed every public test.
    pub public_passed: bool,
    /// Whether it passed every test, public and private.
    pub solved: bool,
}

/// One dialog: its answers in order. It is shorter than the turn limit if it ended early.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rollout {
    /// The answers.
    pub turns: Vec<TurnRecord>,
}

/// All rollouts of one problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProblemPool {
    /// Problem id.
    pub id: String,
    /// The rollouts, from different seeds.
    pub rollouts: Vec<Rollout>,
    /// Rollouts lost to faults of the machinery. They are in no average.
    #[serde(default)]
    pub lost: usize,
}

/// All rollouts of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// The turn limit they were made with.
    pub turn_limit: usize,
    /// The problems.
    pub problems: Vec<ProblemPool>,
}

impl Pool {
    /// Checks that the records make sense.
    ///
    /// # Errors
    /// Says which rollout has no answer, more than the turn limit, or one that passes all tests but not the public
    /// ones; or which problem occurs twice.
    pub fn check(&self) -> Result<(), EvalError> {
        let mut ids = HashSet::new();
        for problem in &self.problems {
            if !ids.insert(&problem.id) {
                return Err(EvalError::Twice(problem.id.clone()));
            }
            for (rollout, record) in problem.rollouts.iter().enumerate() {
                let what = if record.turns.is_empty() {
                    "it has no answer; count it as lost if a fault ended it"
                } else if record.turns.len() > self.turn_limit {
                    "it has more answers than the turn limit allows"
                } else if record.turns.iter().any(|t| t.solved && !t.public_passed) {
                    "an answer passes every test but not the public ones"
                } else {
                    continue;
                };
                return Err(EvalError::Record {
                    problem: problem.id.clone(),
                    rollout,
                    what,
                });
            }
        }
        Ok(())
    }

    /// Rollouts lost to faults, as a share of all that were begun; 0 if there were none.
    pub fn lost_share(&self) -> f64 {
        let lost: usize = self.problems.iter().map(|p| p.lost).sum();
        let kept: usize = self.problems.iter().map(|p| p.rollouts.len()).sum();
        lost as f64 / (lost + kept).max(1) as f64
    }
}
