//! What can be wrong with the numbers asked for or with the records they are made from.

/// Why a statistic cannot be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EvalError {
    /// n@k with impossible n or k.
    #[error("{n}@{k} does not exist: n and k must be at least 1, and n at most k")]
    Budget {
        /// Answers submitted.
        n: usize,
        /// Answers sampled.
        k: usize,
    },
    /// The turn limit does not fit the records.
    #[error(
        "a turn limit of {asked} was asked for, but the rollouts were made with {recorded}; \
         use 1 to {recorded}, or make rollouts with more turns"
    )]
    TurnLimit {
        /// The limit asked for.
        asked: usize,
        /// The limit the rollouts were made with.
        recorded: usize,
    },
    /// Too few rollouts to draw from.
    #[error(
        "{n}@{k} with up to {turns} turns a rollout needs {needed} rollouts of each problem, but problem {problem} \
         has {has}; make more rollouts or ask for a smaller k"
    )]
    PoolTooSmall {
        /// Answers submitted.
        n: usize,
        /// Answers sampled.
        k: usize,
        /// Turns of a rollout.
        turns: usize,
        /// Rollouts needed.
        needed: usize,
        /// The first problem that has fewer.
        problem: String,
        /// How many it has.
        has: usize,
    },
    /// No problem is left to average over.
    #[error(
        "there is no problem to average over ({left_out} were left out because faults of the machinery took their rollouts)"
    )]
    NoProblems {
        /// Problems left out.
        left_out: usize,
    },
    /// A record contradicts itself.
    #[error("rollout {rollout} of problem {problem}: {what}")]
    Record {
        /// Problem id.
        problem: String,
        /// Which rollout, from 0.
        rollout: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// The same problem twice.
    #[error("problem {0} occurs twice; each problem's rollouts belong in one pool")]
    Twice(String),
    /// The two sides of a comparison are not about the same problems.
    #[error(
        "problem {problem} has rollouts under one condition only; compare conditions on the same problems"
    )]
    Unpaired {
        /// The first such problem.
        problem: String,
    },
    /// pass@k of impossible counts.
    #[error(
        "pass@{k} of {correct} correct among {samples} samples does not exist: 1 ≤ k ≤ samples and correct ≤ samples"
    )]
    PassAtK {
        /// Samples.
        samples: usize,
        /// Correct ones.
        correct: usize,
        /// k.
        k: usize,
    },
    /// A setting of the bootstrap is out of range.
    #[error("bootstrap setting `{setting}` {what}")]
    Bootstrap {
        /// The setting's name.
        setting: &'static str,
        /// What is wrong and what is allowed.
        what: &'static str,
    },
}
