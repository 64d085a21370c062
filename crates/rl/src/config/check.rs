//! Every setting's range, and settings that would have no effect.

use rlef_env::{EpisodeConfig, EpisodeError};
use rlef_judge::{Fault, JudgeConfig};

use super::{Optimiser, TrainConfig, ValueKind};

/// More threads than any machine has.
const MOST_WORKERS: usize = 4096;

/// A setting that is out of range or would have no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting `{key}` {why}")]
pub struct ConfigError {
    /// The setting.
    pub key: String,
    /// What is wrong, and what to do.
    pub why: String,
}

fn fail(key: impl Into<String>, why: impl Into<String>) -> Result<(), ConfigError> {
    Err(ConfigError {
        key: key.into(),
        why: why.into(),
    })
}

/// The settings that every run has, whatever it is for.
pub(crate) fn check_parts(
    episode: &EpisodeConfig,
    judge: &JudgeConfig,
    workers: usize,
) -> Result<(), ConfigError> {
    match episode.check() {
        Err(EpisodeError::Setting { setting, what }) => fail(format!("episode.{setting}"), what)?,
        Err(other) => fail("episode", other.to_string())?,
        Ok(()) => {}
    }
    match judge.check() {
        Err(Fault::Setting { setting, what }) => fail(format!("judge.{setting}"), what)?,
        Err(other) => fail("judge", other.to_string())?,
        Ok(()) => {}
    }
    if !(1..=MOST_WORKERS).contains(&workers) {
        let why = format!("is {workers}; it must be from 1 to {MOST_WORKERS}");
        fail("workers", why)?;
    }
    Ok(())
}

/// Counts that nothing works without.
pub(crate) fn check_counts(counts: &[(&str, usize)]) -> Result<(), ConfigError> {
    match counts.iter().find(|(_, n)| *n == 0) {
        Some((key, _)) => fail(*key, "must be at least 1"),
        None => Ok(()),
    }
}

/// Numbers, each with whether it is in its range. One that is not finite never is.
fn check_ranges(numbers: &[(&str, f64, bool)]) -> Result<(), ConfigError> {
    match numbers.iter().find(|(_, x, ok)| !ok || !x.is_finite()) {
        Some((key, x, _)) => fail(*key, format!("is {x}, which is out of range")),
        None => Ok(()),
    }
}

impl Optimiser {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let below_one = 0.0..1.0;
        check_ranges(&[
            ("optimiser.lr", self.lr, self.lr > 0.0),
            (
                "optimiser.weight_decay",
                self.weight_decay.into(),
                self.weight_decay >= 0.0,
            ),
            (
                "optimiser.beta_1",
                self.beta_1.into(),
                below_one.contains(&self.beta_1),
            ),
            (
                "optimiser.beta_2",
                self.beta_2.into(),
                below_one.contains(&self.beta_2),
            ),
            ("optimiser.epsilon", self.epsilon.into(), self.epsilon > 0.0),
            (
                "optimiser.grad_clip",
                self.grad_clip.into(),
                self.grad_clip >= 0.0,
            ),
        ])
    }
}

impl TrainConfig {
    /// Checks every setting.
    ///
    /// # Errors
    /// The first setting that is out of range or would have no effect.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (rollout, ppo) = (&self.rollout, &self.ppo);
        check_parts(&self.episode, &self.judge, self.workers)?;
        check_counts(&[
            ("iterations", self.iterations),
            ("rollout.problems", rollout.problems),
            ("rollout.per_problem", rollout.per_problem),
            ("rollout.batch", rollout.batch),
            ("rollout.max_new_tokens", rollout.max_new_tokens),
            ("ppo.minibatches", ppo.minibatches),
            ("ppo.passes", ppo.passes),
            ("eval.rollouts", self.eval.rollouts as usize),
        ])?;
        if ppo.minibatches > rollout.problems.saturating_mul(rollout.per_problem) {
            fail(
                "ppo.minibatches",
                "is more than the rollouts of an iteration",
            )?;
        }
        if !(rollout.temperature > 0.0 && rollout.temperature.is_finite()) {
            fail(
                "rollout.temperature",
                "must be over 0: a policy that never varies cannot learn",
            )?;
        }
        self.optimiser.check()?;
        check_ranges(&[
            (
                "ppo.clip",
                ppo.clip.into(),
                ppo.clip > 0.0 && ppo.clip < 1.0,
            ),
            (
                "ppo.value_clip",
                ppo.value_clip.into(),
                ppo.value_clip > 0.0,
            ),
            (
                "ppo.value_weight",
                ppo.value_weight.into(),
                ppo.value_weight >= 0.0,
            ),
            ("ppo.beta", ppo.beta.into(), ppo.beta >= 0.0),
            (
                "ppo.lr_final",
                ppo.lr_final,
                (0.0..=1.0).contains(&ppo.lr_final),
            ),
            (
                "ppo.gamma",
                ppo.gamma.into(),
                (0.0..=1.0).contains(&ppo.gamma),
            ),
            (
                "rollout.max_fault_rate",
                rollout.max_fault_rate.into(),
                (0.0..=1.0).contains(&rollout.max_fault_rate),
            ),
        ])?;
        if ppo.value_moves_policy && ppo.value == ValueKind::Separate {
            fail(
                "ppo.value_moves_policy",
                "has no effect with ppo.value = \"separate\": leave it out",
            )?;
        }
        self.eval_sampling().check().map_err(|why| ConfigError {
            key: "eval".into(),
            why,
        })
    }
}
