//! Every setting's range, and settings that would have no effect.

use rlef_env::{EpisodeConfig, EpisodeError, FeedbackMode};
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

/// More than any count can usefully be: beyond it a slip of the finger is meant, or a sum would overflow.
pub(crate) const MOST: u64 = 100_000_000;

/// Counts that nothing works without.
pub(crate) fn check_counts(counts: &[(&str, u64)]) -> Result<(), ConfigError> {
    match counts.iter().find(|(_, n)| !(1..=MOST).contains(n)) {
        Some((key, n)) => fail(*key, format!("is {n}; it must be from 1 to {MOST}")),
        None => Ok(()),
    }
}

/// Counts of which 0 has a meaning.
fn check_optional(counts: &[(&str, u64)]) -> Result<(), ConfigError> {
    match counts.iter().find(|(_, n)| *n > MOST) {
        Some((key, n)) => fail(*key, format!("is {n}; it must be at most {MOST}")),
        None => Ok(()),
    }
}

/// Numbers, each with its range in words and whether it is in it. One that is not finite never is.
fn check_ranges(numbers: &[(&str, f64, &str, bool)]) -> Result<(), ConfigError> {
    match numbers.iter().find(|(_, x, _, ok)| !ok || !x.is_finite()) {
        Some((key, x, range, _)) => fail(*key, format!("is {x}; it must be {range}")),
        None => Ok(()),
    }
}

impl Optimiser {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let below_one = 0.0..1.0;
        let at_least_0 = "a number from 0";
        check_optional(&[("optimiser.warmup_updates", self.warmup_updates)])?;
        let (decay, clip) = (self.weight_decay, self.grad_clip);
        check_ranges(&[
            ("optimiser.lr", self.lr, "a number over 0", self.lr > 0.0),
            (
                "optimiser.weight_decay",
                decay.into(),
                at_least_0,
                decay >= 0.0,
            ),
            (
                "optimiser.beta_1",
                self.beta_1.into(),
                "from 0 to below 1",
                below_one.contains(&self.beta_1),
            ),
            (
                "optimiser.beta_2",
                self.beta_2.into(),
                "from 0 to below 1",
                below_one.contains(&self.beta_2),
            ),
            (
                "optimiser.epsilon",
                self.epsilon.into(),
                "a number over 0",
                self.epsilon > 0.0,
            ),
            ("optimiser.grad_clip", clip.into(), at_least_0, clip >= 0.0),
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
            ("iterations", self.iterations as u64),
            ("rollout.problems", rollout.problems as u64),
            ("rollout.per_problem", rollout.per_problem as u64),
            ("rollout.batch", rollout.batch as u64),
            ("rollout.max_new_tokens", rollout.max_new_tokens as u64),
            ("ppo.minibatches", ppo.minibatches as u64),
            ("ppo.passes", ppo.passes as u64),
            ("eval.rollouts", self.eval.rollouts),
        ])?;
        check_optional(&[
            ("eval.every", self.eval.every as u64),
            ("eval.valid_problems", self.eval.valid_problems as u64),
            ("eval.test_problems", self.eval.test_problems as u64),
            ("checkpoint_every", self.checkpoint_every as u64),
        ])?;
        let rollouts = rollout.problems as u64 * rollout.per_problem as u64;
        if rollouts > MOST {
            fail(
                "rollout.per_problem",
                format!("makes {rollouts} rollouts an iteration; it may have at most {MOST}"),
            )?;
        }
        if ppo.minibatches as u64 > rollouts {
            fail(
                "ppo.minibatches",
                format!("is more than the {rollouts} rollouts of an iteration"),
            )?;
        }
        if !(rollout.temperature > 0.0 && rollout.temperature.is_finite()) {
            fail(
                "rollout.temperature",
                "must be over 0: a policy that never varies cannot learn",
            )?;
        }
        self.optimiser.check()?;
        let (clip, value_clip, weight) = (ppo.clip, ppo.value_clip, ppo.value_weight);
        let share = "from 0 to 1";
        check_ranges(&[
            (
                "ppo.clip",
                clip.into(),
                "between 0 and 1",
                clip > 0.0 && clip < 1.0,
            ),
            (
                "ppo.value_clip",
                value_clip.into(),
                "a number over 0",
                value_clip > 0.0,
            ),
            (
                "ppo.value_weight",
                weight.into(),
                "a number from 0",
                weight >= 0.0,
            ),
            (
                "ppo.beta",
                ppo.beta.into(),
                "a number from 0",
                ppo.beta >= 0.0,
            ),
            (
                "ppo.lr_final",
                ppo.lr_final,
                share,
                (0.0..=1.0).contains(&ppo.lr_final),
            ),
            (
                "ppo.gamma",
                ppo.gamma.into(),
                share,
                (0.0..=1.0).contains(&ppo.gamma),
            ),
            (
                "rollout.max_fault_rate",
                rollout.max_fault_rate.into(),
                share,
                (0.0..=1.0).contains(&rollout.max_fault_rate),
            ),
        ])?;
        if self.episode.max_turns == 1 && self.episode.feedback != FeedbackMode::Real {
            fail(
                "episode.feedback",
                "has no effect with episode.max_turns = 1, where nothing is said between answers: leave it out",
            )?;
        }
        if ppo.value_moves_policy && ppo.value == ValueKind::Separate {
            fail(
                "ppo.value_moves_policy",
                "has no effect with ppo.value = \"separate\": leave it out",
            )?;
        }
        self.eval_sampling()
            .check()
            .map_err(|(field, why)| ConfigError {
                key: match field {
                    "max_new_tokens" => format!("rollout.{field}"),
                    _ => format!("eval.{field}"),
                },
                why,
            })
    }
}
