//! One iteration of RLEF after the other: rollouts, returns, advantages, updates.
//!
//! Not here: when to measure or save, and what is shown meanwhile; the caller decides between iterations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rlef_judge::Judge;
use rlef_model::{Frame, ModelError, ModelFolder};
use rlef_policy::{Drive, DriveError, LocalPolicy, Outcome, Progress, Rollout, Task, drive, tasks};
use rlef_problems::Problem;

use crate::advantage::{
    Normalise, advantages, explained_variance, normalise, returns, turn_rewards,
};
use crate::batch::Sample;
use crate::config::{ConfigError, TrainConfig};
use crate::describe::{describe_rollouts, describe_time, describe_update, mean, spread};
use crate::learner::{ActorCritic, How, Learner, LossSettings, UpdateStats};
use crate::ppo::Clips;
use crate::score::score;

/// Why training stopped.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A setting.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The model or the computation.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Rollouts.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// Too many episodes were lost to faults of the machinery.
    #[error(
        "{lost} of {total} episodes were lost to faults of the machinery, the last one: {last}"
    )]
    Faults {
        /// Lost episodes.
        lost: usize,
        /// All episodes.
        total: usize,
        /// What the last one died of.
        last: String,
    },
    /// A supervised update failed.
    #[error("{why}; the model before it is saved ({} of {} updates)", .made.updates, .made.planned)]
    Sft {
        /// What there was before.
        made: crate::sft::Made,
        /// What failed.
        why: ModelError,
    },
    /// The split to learn from is empty.
    #[error("the split to learn from has no problems")]
    Empty,
}

/// Numbers of an iteration under the names that dashboards know.
pub type Metrics = BTreeMap<String, f64>;

/// A run in progress.
pub struct Trainer {
    config: TrainConfig,
    problems: Vec<Arc<Problem>>,
    folder: ModelFolder,
    tokenizer: Arc<rlef_model::ChatTokenizer>,
    frame: Arc<Frame>,
    learner: Learner,
    reference: ActorCritic,
    /// Iterations done.
    iteration: usize,
    /// Order of the problems: reshuffled each time all have been used.
    queue: Vec<usize>,
    epoch: u64,
    /// How often each problem has been rolled out: numbers its samples.
    used: Vec<u64>,
}

impl Trainer {
    /// Starts from the weights in `folder` (on a device without autodiff), which also are the reference.
    pub fn new(
        config: &TrainConfig,
        folder: ModelFolder,
        problems: Vec<Arc<Problem>>,
    ) -> Result<Self, TrainError> {
        config.check()?;
        if problems.is_empty() {
            return Err(TrainError::Empty);
        }
        let learner = Learner::new(
            folder.model.clone(),
            Some(config.ppo.value),
            &folder.config,
            &config.optimiser,
            config.workers,
            config.seed,
        );
        Ok(Self {
            config: config.clone(),
            used: vec![0; problems.len()],
            problems,
            tokenizer: Arc::new(folder.tokenizer.clone()),
            frame: Arc::new(learner.inference_frame().clone()),
            reference: ActorCritic {
                policy: folder.model.clone(),
                head: None,
                critic: None,
            },
            learner,
            folder,
            iteration: 0,
            queue: vec![],
            epoch: 0,
        })
    }

    /// Iterations done.
    pub fn iteration(&self) -> usize {
        self.iteration
    }

    /// The policy as it is now, sampling as in evaluation.
    pub fn policy(&self, sampling: rlef_model::Sampling) -> LocalPolicy {
        LocalPolicy::new(
            self.learner.inference().policy,
            self.frame.clone(),
            self.tokenizer.clone(),
            sampling,
            self.learner.updates(),
        )
    }

    /// The policy as it was at the start.
    pub fn base(&self, sampling: rlef_model::Sampling) -> LocalPolicy {
        LocalPolicy::new(
            self.reference.policy.clone(),
            self.frame.clone(),
            self.tokenizer.clone(),
            sampling,
            0,
        )
    }

    /// Writes the policy as a Hugging Face folder, the value layer beside it (`value.safetensors`).
    pub fn save(&self, dir: &std::path::Path) -> Result<(), TrainError> {
        let model = self.learner.inference();
        self.folder.save(dir, &model.policy.to_named()?)?;
        let mut value = rlef_model::weights::Named::new();
        if let Some(head) = &model.head {
            value.extend(head.to_named()?);
        }
        if let Some(critic) = &model.critic {
            value.extend(critic.head.to_named()?);
            value.extend(critic.trunk.to_named()?);
        }
        Ok(rlef_model::weights::write_file(
            &dir.join("value.safetensors"),
            &value,
        )?)
    }

    /// One iteration. An error, also [`DriveError::Stopped`] after `stop`, leaves the weights as they were before it:
    /// a gradient that is not finite mostly follows updates that already did damage.
    pub fn step(
        &mut self,
        judge: &Judge,
        stop: &AtomicBool,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Metrics, TrainError> {
        let start = Instant::now();
        let mut metrics = Metrics::new();

        let tasks = self.next_tasks();
        let policy = self.policy(self.config.rollout_sampling());
        let settings = Drive {
            episode: self.config.episode.clone(),
            seed: self.config.seed,
            workers: self.config.workers,
            batch: self.config.rollout.batch,
        };
        let (outcomes, timing) = drive(&policy, judge, &tasks, &settings, stop, progress)?;
        let rollout_s = start.elapsed().as_secs_f64();
        let rollouts = self.without_lost(&outcomes, &mut metrics)?;
        let mut samples: Vec<Sample> = rollouts.iter().map(|r| Sample::from_rollout(r)).collect();

        let scoring = Instant::now();
        self.score(&mut samples, &mut metrics)?;
        let score_s = scoring.elapsed().as_secs_f64();

        self.credit(&mut samples, &mut metrics);
        let updating = Instant::now();
        let before = self.learner.inference();
        let stats = match self.update(&samples) {
            Ok(stats) => stats,
            Err(why) => {
                self.learner.restore(before);
                return Err(why);
            }
        };
        let update_s = updating.elapsed().as_secs_f64();

        self.iteration += 1;
        describe_rollouts(&rollouts, &mut metrics);
        describe_update(&stats, self.learner.learning_rate(), &mut metrics);
        let tokens: usize = samples.iter().map(|s| s.tokens.len()).sum();
        let total_s = start.elapsed().as_secs_f64();
        describe_time(
            timing,
            [rollout_s, score_s, update_s, total_s],
            tokens,
            &mut metrics,
        );
        metrics.insert("training/updates".into(), self.learner.updates() as f64);
        Ok(metrics)
    }

    /// The tasks of the next iteration: the problems in shuffled order, over and over.
    fn next_tasks(&mut self) -> Vec<Task> {
        let mut all = Vec::new();
        for _ in 0..self.config.rollout.problems {
            if self.queue.is_empty() {
                self.queue = (0..self.problems.len()).collect();
                let seed = self
                    .config
                    .seed
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    .wrapping_add(self.epoch);
                self.queue.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
                self.epoch += 1;
            }
            let Some(i) = self.queue.pop() else { break };
            let n = self.config.rollout.per_problem as u64;
            let range = self.used[i]..self.used[i] + n;
            self.used[i] += n;
            // A donor is looked for among all problems of the split.
            let mut mine = tasks(
                std::slice::from_ref(&self.problems[i]),
                range,
                &self.config.episode,
                self.config.seed,
            );
            if self.config.episode.feedback == rlef_env::FeedbackMode::Random {
                for task in &mut mine {
                    task.donor = rlef_env::choose_donor(
                        &self.problems,
                        &task.problem.id,
                        task.sample ^ self.config.seed,
                    );
                }
            }
            all.extend(mine);
        }
        all
    }

    /// The rollouts that came to their end; too many lost ones are an error.
    fn without_lost<'a>(
        &self,
        outcomes: &'a [Outcome],
        metrics: &mut Metrics,
    ) -> Result<Vec<&'a Rollout>, TrainError> {
        let mut last = None;
        let mut done = Vec::new();
        for outcome in outcomes {
            match outcome {
                Outcome::Done(r) => done.push(&**r),
                Outcome::Lost { why, .. } => last = Some(why),
            }
        }
        let lost = outcomes.len() - done.len();
        let rate = lost as f64 / outcomes.len().max(1) as f64;
        metrics.insert("fault_rate".into(), rate);
        match last {
            Some(last)
                if done.is_empty() || rate > f64::from(self.config.rollout.max_fault_rate) =>
            {
                Err(TrainError::Faults {
                    lost,
                    total: outcomes.len(),
                    last: last.clone(),
                })
            }
            _ => Ok(done),
        }
    }

    /// Fills in the log-probabilities before the update and of the reference, and the values.
    fn score(&self, samples: &mut [Sample], metrics: &mut Metrics) -> Result<(), TrainError> {
        let (temperature, workers) = (self.config.rollout.temperature, self.config.workers);
        let current = score(
            &self.learner.inference(),
            &self.frame,
            samples,
            temperature,
            workers,
        )?;
        let reference = if self.config.ppo.beta > 0.0 {
            Some(score(
                &self.reference,
                &self.frame,
                samples,
                temperature,
                workers,
            )?)
        } else {
            None
        };
        let (mut gap_sum, mut gap_max, mut n) = (0.0f64, 0.0f64, 0usize);
        for (i, (sample, (old, values))) in samples.iter_mut().zip(current).enumerate() {
            for (a, b) in old.iter().zip(&sample.behaviour) {
                let gap = f64::from((a.exp() - b.exp()).abs());
                gap_sum += gap;
                gap_max = gap_max.max(gap);
                n += 1;
            }
            sample.old = old;
            sample.values = values;
            sample.reference = match &reference {
                Some(r) => r[i].0.clone(),
                None => sample.old.clone(),
            };
        }
        metrics.insert(
            "training/rollout_probs_diff_mean".into(),
            gap_sum / n.max(1) as f64,
        );
        metrics.insert("training/rollout_probs_diff_max".into(), gap_max);
        Ok(())
    }

    /// Rewards, returns and advantages of every turn.
    fn credit(&self, samples: &mut [Sample], metrics: &mut Metrics) {
        let ppo = &self.config.ppo;
        let (mut rewards, mut log_ratios) = (vec![], vec![]);
        for s in samples.iter_mut() {
            let k = s.log_ratios();
            let r = turn_rewards(&s.rewards, &k, ppo.beta);
            s.returns = returns(&r, ppo.gamma);
            s.advantages = advantages(&s.returns, &s.values);
            rewards.push(r.iter().sum());
            log_ratios.extend(k);
        }
        let all = |f: fn(&Sample) -> &Vec<f32>| -> Vec<f32> {
            samples.iter().flat_map(|s| f(s).clone()).collect()
        };
        let (g, v, mut a) = (
            all(|s| &s.returns),
            all(|s| &s.values),
            all(|s| &s.advantages),
        );
        spread("critic/rewards", &rewards, metrics);
        spread("critic/returns", &g, metrics);
        spread("critic/values", &v, metrics);
        spread("critic/advantages", &a, metrics);
        metrics.insert(
            "critic/vf_explained_var".into(),
            f64::from(explained_variance(&g, &v)),
        );
        metrics.insert("actor/reference_kl".into(), mean(&log_ratios));
        let lengths: Vec<f32> = samples
            .iter()
            .flat_map(|s| s.answers.iter().map(|r| r.len() as f32))
            .collect();
        let weights = match ppo.normalise {
            Normalise::None => None,
            Normalise::Turns => Some(vec![1.0; lengths.len()]),
            Normalise::Tokens => Some(lengths),
        };
        if let Some(weights) = weights {
            normalise(&mut a, &weights);
            let mut a = a.into_iter();
            for s in samples {
                s.advantages = a.by_ref().take(s.answers.len()).collect();
            }
        }
    }

    /// The passes and minibatches.
    fn update(&mut self, samples: &[Sample]) -> Result<Vec<UpdateStats>, TrainError> {
        let ppo = &self.config.ppo;
        let loss = LossSettings {
            clips: Clips {
                policy: ppo.clip,
                value: ppo.value_clip,
            },
            value_weight: ppo.value_weight,
            how: How {
                temperature: self.config.rollout.temperature,
                value_moves_policy: ppo.value_moves_policy,
            },
        };
        self.learner.scale_lr(lr_scale(
            self.iteration,
            self.config.iterations,
            ppo.lr_final,
        ));
        let mut stats = Vec::new();
        for pass in 0..ppo.passes {
            let mut order: Vec<usize> = (0..samples.len()).collect();
            let seed = [self.config.seed, self.iteration as u64, pass as u64]
                .iter()
                .fold(7u64, |h, x| {
                    h.wrapping_mul(0x0100_0000_01b3).wrapping_add(*x)
                });
            order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
            let size = samples.len().div_ceil(ppo.minibatches);
            for part in order.chunks(size.max(1)) {
                let batch: Vec<&Sample> = part.iter().map(|&i| &samples[i]).collect();
                stats.push(self.learner.ppo(&batch, loss)?);
            }
        }
        Ok(stats)
    }
}

/// Share of the learning rate in `iteration` (from 0) of `iterations`: from 1 in a straight line to `last`.
fn lr_scale(iteration: usize, iterations: usize, last: f64) -> f64 {
    let done = iteration as f64 / iterations.saturating_sub(1).max(1) as f64;
    1.0 - (1.0 - last) * done.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_learning_rate_falls_in_a_straight_line() {
        let scale = |i| lr_scale(i, 5, 0.2);
        let want = [1.0, 0.8, 0.6, 0.4, 0.2];
        for (i, want) in want.into_iter().enumerate() {
            assert!((scale(i) - want).abs() < 1e-12);
        }
        assert!((scale(9) - 0.2).abs() < 1e-12);
        assert_eq!(lr_scale(0, 1, 0.2), 1.0);
        assert_eq!(lr_scale(3, 5, 1.0), 1.0);
    }
}
