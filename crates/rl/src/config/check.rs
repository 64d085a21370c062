//! Every setting's range, and settings that would have no effect.

use rlef_env::{EpisodeConfig, EpisodeError, FeedbackMode};
use rlef_judge::{Fault, JudgeConfig};

use crate::advantage::Normalise;
use crate::aggregate::Aggregation;
use crate::batch::Truncated;
use crate::off_policy::OffPolicy;

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
            ("checkpoint_keep", self.checkpoint_keep as u64),
            ("rollout.refills", rollout.refills as u64),
            ("ppo.sequence_length", ppo.sequence_length as u64),
            ("ppo.max_staleness", ppo.max_staleness),
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
                "ppo.clip_high",
                ppo.clip_high.into(),
                "a number from 0",
                ppo.clip_high >= 0.0,
            ),
            (
                "ppo.lambda",
                ppo.lambda.into(),
                share,
                (0.0..=1.0).contains(&ppo.lambda),
            ),
            (
                "ppo.off_policy_cap",
                ppo.off_policy_cap.into(),
                "a number over 0",
                ppo.off_policy_cap > 0.0,
            ),
            (
                "ppo.truncation_penalty",
                ppo.truncation_penalty.into(),
                "a number over 0",
                ppo.truncation_penalty > 0.0,
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
        self.check_unused()?;
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

impl TrainConfig {
    /// Settings that the algorithm, or another setting, leaves without effect. They count as typed where they differ
    /// from what the algorithm starts from.
    fn check_unused(&self) -> Result<(), ConfigError> {
        let (ppo, start) = (&self.ppo, self.algorithm.settings());
        let from = &start.ppo;
        let name = self.algorithm.name();
        let group = self.algorithm.is_group();
        let unless = |key: &str, same: bool, why: &str| match same {
            true => Ok(()),
            false => fail(key, format!("has no effect with {why}: leave it out")),
        };
        if group {
            let why = format!("algorithm = \"{name}\", which learns no value");
            let all = [
                ("ppo.value", ppo.value == from.value),
                ("ppo.value_clip", ppo.value_clip == from.value_clip),
                ("ppo.value_weight", ppo.value_weight == from.value_weight),
                (
                    "ppo.value_moves_policy",
                    ppo.value_moves_policy == from.value_moves_policy,
                ),
                ("ppo.value_level", ppo.value_level == from.value_level),
                ("ppo.gamma", ppo.gamma == from.gamma),
                ("ppo.lambda", ppo.lambda == from.lambda),
            ];
            for (key, same) in all {
                unless(key, same, &why)?;
            }
        } else {
            let why = "algorithm = \"ppo\", which compares no rollouts of one problem";
            unless("rollout.refills", self.rollout.refills == 0, why)?;
        }
        if (group || ppo.normalise == Normalise::Group) && self.rollout.per_problem < 2 {
            let what = if group {
                format!("algorithm = \"{name}\"")
            } else {
                "ppo.normalise = \"group\"".to_owned()
            };
            fail(
                "rollout.per_problem",
                format!("is 1; {what} compares the rollouts of one problem and needs at least 2"),
            )?;
        }
        if ppo.beta == 0.0 {
            let why = "ppo.beta = 0";
            unless("ppo.kl", ppo.kl == from.kl, why)?;
            let same = ppo.kl_estimator == from.kl_estimator;
            unless("ppo.kl_estimator", same, why)?;
        }
        if ppo.aggregation != Aggregation::SequenceMeanTokenSum {
            let why = "another ppo.aggregation than \"sequence_mean_token_sum\"";
            unless("ppo.sequence_length", ppo.sequence_length == 0, why)?;
        }
        if ppo.off_policy != OffPolicy::Truncated {
            let same = ppo.off_policy_cap == from.off_policy_cap;
            let why = "another ppo.off_policy than \"truncated\"";
            unless("ppo.off_policy_cap", same, why)?;
        }
        if ppo.truncated != Truncated::Penalise {
            let same = ppo.truncation_penalty == from.truncation_penalty;
            let why = "another ppo.truncated than \"penalise\"";
            unless("ppo.truncation_penalty", same, why)?;
        }
        let stalest = (ppo.minibatches * ppo.passes) as u64 - 1;
        if ppo.max_staleness > 0 && ppo.max_staleness >= stalest {
            fail(
                "ppo.max_staleness",
                format!(
                    "has no effect: with {} updates an iteration no token is more than {stalest} behind; lower it or \
                     leave it out",
                    stalest + 1
                ),
            )?;
        }
        Ok(())
    }
}
