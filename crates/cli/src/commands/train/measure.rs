//! Measuring during and after a run: the same dialogs through the same judge as `rlef eval`, which gives the same
//! numbers for a checkpoint.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use rlef_env::FeedbackMode;
use rlef_eval::{
    Bootstrap, Budget, Condition, NamedDifference, Pool, Score, Summary, difference, measure, score,
};
use rlef_judge::Judge;
use rlef_policy::{Drive, Policy};
use rlef_problems::Problem;
use rlef_rl::TrainConfig;

use crate::progress::Bar;

/// What a measurement needs besides a policy and problems.
pub struct Measure<'a> {
    /// The run's settings.
    pub config: &'a TrainConfig,
    /// Judges the answers.
    pub judge: &'a Judge,
    /// Ends the measurement early, with an error.
    pub stop: &'a AtomicBool,
}

impl Measure<'_> {
    /// Dialogs of up to `turns` turns on every problem.
    pub fn pool(
        &self,
        policy: &dyn Policy,
        problems: &[Arc<Problem>],
        turns: usize,
        feedback: FeedbackMode,
        rollouts: u64,
    ) -> Result<Pool> {
        let mut episode = self.config.episode.clone();
        episode.max_turns = turns;
        episode.feedback = feedback;
        let drive = Drive {
            episode,
            seed: self.config.seed,
            workers: self.config.workers,
            batch: self.config.rollout.batch,
        };
        let (pool, _) = measure(
            policy,
            self.judge,
            problems,
            rollouts,
            &drive,
            self.stop,
            &|_| {},
        )?;
        Ok(pool)
    }

    /// 1@1, 1@2 … up to the number of turns of a dialog.
    pub fn scores(&self, pool: &Pool) -> Result<Vec<Score>> {
        (1..=self.config.episode.max_turns)
            .map(|k| {
                let budget = Budget::new(1, k, pool.turn_limit)?;
                Ok(score(pool, &budget, &self.bootstrap())?)
            })
            .collect()
    }

    fn bootstrap(&self) -> Bootstrap {
        Bootstrap {
            seed: self.config.seed,
            ..Bootstrap::default()
        }
    }

    /// The conditions of the final table.
    pub fn summary(
        &self,
        base: &dyn Policy,
        trained: &dyn Policy,
        problems: &[Arc<Problem>],
    ) -> Result<Summary> {
        let turns = self.config.episode.max_turns;
        let rollouts = self.config.eval.rollouts;
        let mode = self.config.episode.feedback;
        let mut wanted = vec![
            ("base", base, turns, mode),
            ("trained", trained, turns, mode),
        ];
        // A single-turn table has neither dialogs to compare nor feedback to falsify.
        if turns > 1 {
            wanted.push(("base, independent tries", base, 1, mode));
            wanted.push(("trained, independent tries", trained, 1, mode));
            // A donor is another problem with public tests.
            if problems
                .iter()
                .filter(|p| !p.public_tests.is_empty())
                .count()
                > 1
            {
                let random = FeedbackMode::Random;
                wanted.push(("trained, random feedback", trained, turns, random));
            }
        }
        let bar = Bar::new("test", wanted.len() as u64);
        let mut conditions = vec![];
        let mut pools = vec![];
        for (name, policy, turns_here, feedback) in wanted {
            let each = rollouts * (turns / turns_here) as u64;
            let pool = self.pool(policy, problems, turns_here, feedback, each)?;
            conditions.push(Condition {
                name: name.into(),
                scores: self.scores(&pool)?,
            });
            pools.push(pool);
            bar.set(pools.len() as u64, name);
        }
        bar.finish();
        Ok(Summary {
            conditions,
            differences: self.differences(&pools)?,
        })
    }

    fn differences(&self, pools: &[Pool]) -> Result<Vec<NamedDifference>> {
        let pairs: &[(&str, usize, usize)] = &[
            ("trained − base", 1, 0),
            ("base: dialog − independent tries", 0, 2),
            ("trained: dialog − independent tries", 1, 3),
            ("trained: random feedback − base", 4, 0),
        ];
        let mut differences = vec![];
        for &(name, a, b) in pairs {
            let (Some(a), Some(b)) = (pools.get(a), pools.get(b)) else {
                continue;
            };
            let budget = |p: &Pool| Budget::new(1, self.config.episode.max_turns, p.turn_limit);
            differences.push(NamedDifference {
                name: name.into(),
                difference: difference((a, &budget(a)?), (b, &budget(b)?), &self.bootstrap())?,
            });
        }
        Ok(differences)
    }
}
