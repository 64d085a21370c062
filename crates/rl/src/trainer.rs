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
use rlef_policy::{
    Drive, DriveError, LocalPolicy, Outcome, Progress, Rollout, Task, Timing, drive, tasks,
};
use rlef_problems::Problem;
use serde::{Deserialize, Serialize};

use crate::batch::Sample;
use crate::checkpoint;
use crate::config::{ConfigError, TrainConfig};
use crate::credit::credit;
use crate::dapo;
use crate::describe::{describe_rollouts, describe_time, describe_update};
use crate::learner::{ActorCritic, Learner, UpdateStats};
use crate::score::score;
use crate::trajectory::Record;

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
    /// A checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] checkpoint::CheckpointError),
    /// A recorded rollout cannot be learned from.
    #[error("the record {0}")]
    Record(String),
    /// There is nothing to fine-tune on.
    #[error("there are no dialogs to learn from")]
    NoDialogs,
    /// The split to learn from is empty.
    #[error("the split to learn from has no problems")]
    Empty,
}

/// Numbers of an iteration under the names that dashboards know.
pub type Metrics = BTreeMap<String, f64>;

/// What an iteration came to.
#[derive(Debug, Clone)]
pub struct Iteration {
    /// What the same run gives again.
    pub metrics: Metrics,
    /// What depends on the machine and the moment.
    pub times: Metrics,
    /// Every episode.
    pub records: Vec<Record>,
}

/// The rollouts of an iteration.
#[derive(Default)]
struct Sampled {
    outcomes: Vec<Outcome>,
    /// The group of each outcome: the rollouts of one problem.
    groups: Vec<usize>,
    /// How many groups there are.
    rolled_out: usize,
    /// Those that are learned from.
    kept: std::collections::BTreeSet<usize>,
    /// The share of groups without signal, where that is looked at.
    silent: Option<f64>,
    timing: Timing,
}

/// The position in the data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Position {
    /// Problems that are still to come before the order is shuffled anew, the next one last.
    pub(crate) queue: Vec<usize>,
    /// How often the order was shuffled.
    pub(crate) epoch: u64,
    /// How often each problem has been rolled out: numbers its samples.
    pub(crate) used: Vec<u64>,
}

/// A run in progress.
pub struct Trainer {
    pub(crate) config: TrainConfig,
    pub(crate) problems: Vec<Arc<Problem>>,
    pub(crate) folder: ModelFolder,
    tokenizer: Arc<rlef_model::ChatTokenizer>,
    frame: Arc<Frame>,
    pub(crate) learner: Learner,
    pub(crate) reference: ActorCritic,
    /// Iterations done.
    pub(crate) iteration: usize,
    pub(crate) data: Position,
    /// SHA-256 of the reference's weights, once it was asked for.
    pub(crate) reference_sum: std::sync::OnceLock<String>,
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
            config.value(),
            &folder.config,
            &config.optimiser,
            config.workers,
            config.seed,
        );
        Ok(Self {
            config: config.clone(),
            data: Position {
                used: vec![0; problems.len()],
                ..Position::default()
            },
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
            reference_sum: std::sync::OnceLock::new(),
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

    /// Writes the policy as a Hugging Face folder, the value network, if there is one, beside it (`value.safetensors`).
    pub fn save(&self, dir: &std::path::Path) -> Result<(), TrainError> {
        let model = self.learner.inference();
        self.folder.save(dir, &model.policy.to_named()?)?;
        let value = model.value_to_named()?;
        if value.is_empty() {
            return Ok(());
        }
        let path = dir.join(checkpoint::VALUE);
        Ok(rlef_model::weights::write_file(&path, &value)?)
    }

    /// One iteration. An error, also [`DriveError::Stopped`] after `stop`, leaves the weights and the position in the data
    /// as they were before it: a gradient that is not finite mostly follows updates that already did damage.
    pub fn step(
        &mut self,
        judge: &Judge,
        stop: &AtomicBool,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Iteration, TrainError> {
        let before = self.data.clone();
        let result = self.iterate(judge, stop, progress);
        if result.is_err() {
            self.data = before;
        }
        result
    }

    fn iterate(
        &mut self,
        judge: &Judge,
        stop: &AtomicBool,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Iteration, TrainError> {
        let start = Instant::now();
        let (mut metrics, mut times) = (Metrics::new(), Metrics::new());
        let sampled = self.sample(judge, stop, progress)?;
        let rollout_s = start.elapsed().as_secs_f64();
        check_faults(&sampled.outcomes, &self.config, &mut metrics)?;

        let step = self.iteration + 1;
        let mut records = vec![];
        let (mut samples, mut places) = (vec![], vec![]);
        for (i, (outcome, &group)) in sampled.outcomes.iter().zip(&sampled.groups).enumerate() {
            records.push(Record::new(step, group, outcome));
            if let (Outcome::Done(r), true) = (outcome, sampled.kept.contains(&group)) {
                places.push(i);
                samples.push(Sample {
                    group,
                    ..Sample::from_rollout(r)
                });
            }
        }
        let tokens: usize = samples.iter().map(|s| s.tokens.len()).sum();
        let [score_s, update_s] = self.learn(&mut samples, &mut metrics)?;
        for (&i, s) in places.iter().zip(&samples) {
            records[i].add(s);
        }
        let rollouts: Vec<&Rollout> = sampled
            .outcomes
            .iter()
            .filter_map(Outcome::rollout)
            .collect();
        describe_rollouts(&rollouts, &mut metrics);
        if let Some(silent) = sampled.silent {
            // Of all groups that were rolled out, not only of those that were kept.
            metrics.insert("frac_reward_zero_std".into(), silent);
            metrics.insert("rollout/groups".into(), sampled.rolled_out as f64);
            metrics.insert("rollout/groups_kept".into(), sampled.kept.len() as f64);
        }
        let total_s = start.elapsed().as_secs_f64();
        describe_time(
            sampled.timing,
            [rollout_s, score_s, update_s, total_s],
            tokens,
            &mut times,
        );
        Ok(Iteration {
            metrics,
            times,
            records,
        })
    }

    /// Redoes the updates of an iteration from its records: the same numbers as when it was done, as far as they come
    /// from what was learned and not from sampling.
    ///
    /// # Errors
    /// Records that are not of the next iteration or are no dialogs.
    pub fn replay(&mut self, records: &[Record]) -> Result<Metrics, TrainError> {
        let step = self.iteration + 1;
        let mut samples = vec![];
        for record in records {
            if record.step != step {
                let why = format!("holds a rollout of iteration {}, not {step}", record.step);
                return Err(TrainError::Record(why));
            }
            if record.learned {
                samples.push(record.sample().map_err(TrainError::Record)?);
            }
        }
        let mut metrics = Metrics::new();
        self.learn(&mut samples, &mut metrics)?;
        Ok(metrics)
    }

    /// Log-probabilities and values, credit, updates; the seconds that scoring and updating took. Ends the iteration.
    fn learn(
        &mut self,
        samples: &mut [Sample],
        metrics: &mut Metrics,
    ) -> Result<[f64; 2], TrainError> {
        let scoring = Instant::now();
        for s in samples.iter_mut() {
            s.divide(self.config.ppo.value_level);
        }
        self.score(samples, metrics)?;
        let score_s = scoring.elapsed().as_secs_f64();
        credit(samples, &self.config, metrics);
        let updating = Instant::now();
        let before = self.learner.inference();
        let stats = match self.update(samples) {
            Ok(stats) => stats,
            Err(why) => {
                self.learner.restore(before);
                return Err(why);
            }
        };
        let update_s = updating.elapsed().as_secs_f64();
        self.iteration += 1;
        describe_update(&stats, self.learner.learning_rate(), metrics);
        metrics.insert("training/updates".into(), self.learner.updates() as f64);
        Ok([score_s, update_s])
    }

    /// Rolls out an iteration's groups, with refills for those without signal if that is asked for.
    fn sample(
        &mut self,
        judge: &Judge,
        stop: &AtomicBool,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Sampled, TrainError> {
        let policy = self.policy(self.config.rollout_sampling());
        let settings = Drive {
            episode: self.config.episode.clone(),
            seed: self.config.seed,
            workers: self.config.workers,
            batch: self.config.rollout.batch,
        };
        let wanted = self.config.rollout.problems;
        let refills = self.config.rollout.refills;
        let mut all = Sampled::default();
        for round in 0..=refills {
            let tasks = self.next_tasks(wanted - all.kept.len());
            let (outcomes, timing) = drive(&policy, judge, &tasks, &settings, stop, progress)?;
            let each = self.config.rollout.per_problem;
            let first = all.rolled_out;
            all.groups
                .extend((0..outcomes.len()).map(|i| first + i / each));
            all.rolled_out += outcomes.len().div_ceil(each);
            all.outcomes.extend(outcomes);
            all.timing.generate += timing.generate;
            all.timing.execute += timing.execute;
            if refills == 0 {
                all.kept = (0..all.rolled_out).collect();
                break;
            }
            let mut rewards = vec![vec![]; all.rolled_out];
            for (outcome, &group) in all.outcomes.iter().zip(&all.groups) {
                rewards[group].extend(outcome.rollout().map(Rollout::reward));
            }
            let signal = dapo::keep(rewards.iter().map(Vec::as_slice), usize::MAX);
            all.silent = Some(1.0 - signal.len() as f64 / all.rolled_out.max(1) as f64);
            all.kept = signal.into_iter().take(wanted).collect();
            if all.kept.len() >= wanted || round == refills {
                break;
            }
        }
        Ok(all)
    }

    /// The tasks of the next iteration: the problems in shuffled order, over and over.
    fn next_tasks(&mut self, problems: usize) -> Vec<Task> {
        let mut all = Vec::new();
        for _ in 0..problems {
            if self.data.queue.is_empty() {
                self.data.queue = (0..self.problems.len()).collect();
                let seed = self
                    .config
                    .seed
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    .wrapping_add(self.data.epoch);
                self.data
                    .queue
                    .shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
                self.data.epoch += 1;
            }
            let Some(i) = self.data.queue.pop() else {
                break;
            };
            let n = self.config.rollout.per_problem as u64;
            let range = self.data.used[i]..self.data.used[i] + n;
            self.data.used[i] += n;
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
            if self.config.value().is_some() {
                sample.values = values;
            }
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

    /// The passes and minibatches.
    fn update(&mut self, samples: &[Sample]) -> Result<Vec<UpdateStats>, TrainError> {
        let ppo = &self.config.ppo;
        let loss = self.config.loss();
        self.learner.scale_lr(lr_scale(
            self.iteration,
            self.config.iterations,
            ppo.lr_final,
        ));
        let mut stats = Vec::new();
        if samples.is_empty() {
            return Ok(stats);
        }
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

/// The share of episodes that were lost to faults of the machinery; too many are an error.
fn check_faults(
    outcomes: &[Outcome],
    config: &TrainConfig,
    metrics: &mut Metrics,
) -> Result<(), TrainError> {
    let mut lost = outcomes.iter().filter_map(|o| match o {
        Outcome::Lost { why, .. } => Some(why),
        Outcome::Done(_) => None,
    });
    let last = lost.clone().next_back();
    let lost = lost.by_ref().count();
    let rate = lost as f64 / outcomes.len().max(1) as f64;
    metrics.insert("fault_rate".into(), rate);
    match last {
        Some(last) if lost == outcomes.len() || rate > f64::from(config.rollout.max_fault_rate) => {
            Err(TrainError::Faults {
                lost,
                total: outcomes.len(),
                last: last.clone(),
            })
        }
        _ => Ok(()),
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
