//! Runs a policy on problems and records what became of each answer.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rlef_judge::Judge;
use rlef_policy::{Drive, DriveError, Outcome, Policy, Progress, drive, tasks};
use rlef_problems::Problem;

use crate::record::{Pool, ProblemPool, Rollout, TurnRecord};

/// Runs `rollouts` episodes of each problem and gives the pool with the episodes themselves.
///
/// Training and the command line measure through this one function, so that they give the same number.
///
/// # Errors
/// As for [`drive`].
pub fn measure(
    policy: &dyn Policy,
    judge: &Judge,
    problems: &[Arc<Problem>],
    rollouts: u64,
    settings: &Drive,
    stop: &AtomicBool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(Pool, Vec<Outcome>), DriveError> {
    let tasks = tasks(problems, 0..rollouts, &settings.episode, settings.seed);
    let (outcomes, _) = drive(policy, judge, &tasks, settings, stop, progress)?;
    let mut pools: Vec<ProblemPool> = problems
        .iter()
        .map(|p| ProblemPool {
            id: p.id.clone(),
            rollouts: vec![],
            lost: 0,
        })
        .collect();
    // Tasks come problem by problem, `rollouts` each.
    for (i, outcome) in outcomes.iter().enumerate() {
        let pool = &mut pools[i / rollouts.max(1) as usize];
        match outcome {
            Outcome::Done(r) => pool.rollouts.push(record(r)),
            Outcome::Lost { .. } => pool.lost += 1,
        }
    }
    Ok((
        Pool {
            turn_limit: settings.episode.max_turns,
            problems: pools,
        },
        outcomes,
    ))
}

fn record(rollout: &rlef_policy::Rollout) -> Rollout {
    let turns = rollout
        .turns
        .iter()
        .map(|t| TurnRecord {
            public_passed: t.step.public_passed,
            solved: t.step.solved == Some(true),
        })
        .collect();
    Rollout { turns }
}
