//! What a run needs, found and read before it begins.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Context, Result};
use rlef_judge::Judge;
use rlef_model::{ModelFolder, device};
use rlef_problems::{Problem, ProblemSet};
use rlef_rl::{TrainConfig, Trainer, ValueKind};

use crate::{models, parts};

/// Everything a run needs, found and read before it begins: what is missing is said at once, not at its end.
pub struct Parts {
    /// Judges the answers.
    pub judge: Judge,
    /// What is learned from.
    pub train: Vec<Arc<Problem>>,
    /// What is measured on the way.
    pub valid: Vec<Arc<Problem>>,
    /// What is measured at the end.
    pub test: Vec<Arc<Problem>>,
    /// Taken by the trainer.
    folder: Option<ModelFolder>,
    /// Parameters of the model.
    pub params: usize,
}

impl Parts {
    /// Opens all of it.
    ///
    /// # Errors
    /// What is missing or does not fit.
    pub fn open(config: &TrainConfig) -> Result<Self> {
        let judge = parts::judge(&config.judge)?;
        let set = ProblemSet::open(&config.problems)?;
        let split = |name: &str, limit| parts::problems(&set, name, limit);
        let eval = &config.eval;
        let train = split(&config.train_split, 0)?;
        let valid = if eval.every > 0 {
            split(&eval.valid_split, eval.valid_problems)?
        } else {
            vec![]
        };
        let test = split(&eval.test_split, eval.test_problems)?;
        let device = device::open(&config.device)?;
        // Before anything is loaded or even fetched.
        if config.device == "cpu" {
            crate::commands::plan::possible(config)?;
        }
        let folder = models::open(&config.model, &device)?;
        for problems in [&train, &valid, &test] {
            parts::fits(config, &judge, &folder, problems)?;
        }
        let parts = Self {
            judge,
            train,
            valid,
            test,
            params: folder.config.num_params(),
            folder: Some(folder),
        };
        for (split, problems) in [
            (&eval.valid_split, &parts.valid),
            (&eval.test_split, &parts.test),
        ] {
            if let Some(shared) = parts.learned_from(problems) {
                crate::say_err!(
                    "warning: {shared} of the {} problems of split {split} are also learned from; what is measured \
                     on it then says nothing about new problems",
                    problems.len()
                );
            }
        }
        Ok(parts)
    }

    /// How many of `problems` are also learned from, if any.
    fn learned_from(&self, problems: &[Arc<Problem>]) -> Option<usize> {
        let learned: HashSet<&str> = self.train.iter().map(|p| p.id.as_str()).collect();
        let shared = problems.iter().filter(|p| learned.contains(&*p.id)).count();
        (shared > 0).then_some(shared)
    }

    /// The trainer, once.
    ///
    /// # Errors
    /// Settings that cannot be.
    pub fn trainer(&mut self, config: &TrainConfig) -> Result<Trainer> {
        let folder = self.folder.take().context("the model is in use")?;
        Ok(Trainer::new(config, folder, self.train.clone())?)
    }

    /// What the run will write at least, in bytes: the model at the end, and the checkpoints, which also have the
    /// optimiser's two averages of every weight. All in f32.
    pub fn bytes(&self, config: &TrainConfig) -> u64 {
        let on_the_way = match config.checkpoint_every {
            0 => 0,
            every => config.iterations / every,
        };
        let at_once = match config.checkpoint_keep {
            0 => on_the_way + 1,
            // The best one, and the one that is being written.
            keep => (on_the_way + 1).min(keep + 2),
        };
        let networks = match config.value() {
            Some(ValueKind::Separate) => 2,
            Some(ValueKind::Head) | None => 1,
        };
        (self.params as u64)
            .saturating_mul(4 * networks)
            .saturating_mul(1 + 3 * at_once as u64)
    }

    /// What is going to happen, in a line.
    pub fn plan(&self, config: &TrainConfig) -> String {
        let episodes = config.rollout.problems * config.rollout.per_problem;
        format!(
            "# {}: {} parameters, {} problems; an iteration: {episodes} episodes of up to {} turns, then {} updates; \
             {} iterations, {} episodes in all; measured on {} problems at the end",
            config.algorithm.name(),
            self.params,
            self.train.len(),
            config.episode.max_turns,
            config.ppo.minibatches * config.ppo.passes,
            config.iterations,
            episodes * config.iterations,
            self.test.len()
        )
    }
}
