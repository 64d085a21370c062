//! The settings of a training run, as its TOML file has them.
//!
//! Where the paper gives a number, the default of [`TrainConfig`] is for the embedded small model and
//! `configs/rlef-8b.toml` has the paper's. What the paper leaves open is marked NF.

use rlef_env::EpisodeConfig;
use rlef_judge::JudgeConfig;
use rlef_model::Sampling;
use serde::{Deserialize, Serialize};

use crate::advantage::Normalise;

/// Where the value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    /// A linear layer on the policy's own stream.
    #[default]
    Head,
    /// A network of its own, started from the same weights (as in the paper).
    Separate,
}

/// A training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// `tiny` (embedded) or a folder in Hugging Face layout.
    pub model: String,
    /// The problem set: `micro`, `micro:SEED`, `basics`, a JSONL file, or a folder of them.
    pub problems: String,
    /// The split to learn from.
    pub train_split: String,
    /// `cpu`, `cuda` or `cuda:N`.
    pub device: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Iterations: rollouts, then updates.
    pub iterations: usize,
    /// Threads that generate, run programs and compute gradients.
    pub workers: usize,
    /// The dialog and its reward.
    pub episode: EpisodeConfig,
    /// How rollouts are sampled.
    pub rollout: RolloutConfig,
    /// The objective.
    pub ppo: PpoConfig,
    /// The optimiser.
    pub optimiser: Optimiser,
    /// When the policy is measured, and on what.
    pub eval: EvalSettings,
    /// Iterations between checkpoints; 0: only at the end.
    pub checkpoint_every: usize,
    /// How programs are judged.
    pub judge: JudgeConfig,
}

/// Rollouts of an iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolloutConfig {
    /// Problems an iteration.
    pub problems: usize,
    /// Rollouts of each problem.
    pub per_problem: usize,
    /// Dialogs that decode together.
    pub batch: usize,
    /// Temperature; 1 in the paper.
    pub temperature: f32,
    /// Longest answer, in tokens. NF.
    pub max_new_tokens: usize,
    /// A run stops when more than this share of an iteration's episodes was lost to faults of the machinery.
    pub max_fault_rate: f32,
}

/// The objective and its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PpoConfig {
    /// ε of the clipped surrogate.
    pub clip: f32,
    /// α of the clipped value loss.
    pub value_clip: f32,
    /// Weight of the value loss. NF.
    pub value_weight: f32,
    /// Where the value comes from.
    pub value: ValueKind,
    /// Whether the value loss also moves the policy's own network (`value = "head"` only). NF. Off, the value is read
    /// from the stream without disturbing it.
    pub value_moves_policy: bool,
    /// β: price of leaving the reference policy.
    pub beta: f32,
    /// γ.
    pub gamma: f32,
    /// Over what the advantage is normalised. NF.
    pub normalise: Normalise,
    /// Updates an iteration and pass, each on an equal share of the rollouts.
    pub minibatches: usize,
    /// Passes over an iteration's rollouts. NF (4 updates of 256 on 1024 rollouts: one).
    pub passes: usize,
}

/// AdamW with linear warm-up and a bound on the gradient's norm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Optimiser {
    /// Learning rate after the warm-up.
    pub lr: f64,
    /// Updates until the learning rate is reached.
    pub warmup_updates: u64,
    /// Weight decay.
    pub weight_decay: f32,
    /// NF.
    pub beta_1: f32,
    /// NF.
    pub beta_2: f32,
    /// NF.
    pub epsilon: f32,
    /// Largest global gradient norm; 0: no bound. NF.
    pub grad_clip: f32,
}

/// Measuring while training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvalSettings {
    /// Split watched while training.
    pub valid_split: String,
    /// Split reported on at the end.
    pub test_split: String,
    /// Iterations between measurements on the valid split; 0: none.
    pub every: usize,
    /// Problems of the valid split that are measured; 0: all.
    pub valid_problems: usize,
    /// Problems of the test split that are measured; 0: all.
    pub test_problems: usize,
    /// Temperature; the paper has 0.2 for 1@3.
    pub temperature: f32,
    /// Top-p; the paper has 0.95.
    pub top_p: f32,
    /// Rollouts of a problem in the final table.
    pub rollouts: u64,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            model: "tiny".into(),
            problems: "micro".into(),
            train_split: "train".into(),
            device: "cpu".into(),
            seed: 0,
            iterations: 500,
            workers: 2,
            episode: EpisodeConfig {
                prompt: rlef_env::PromptStyle::Brief,
                ..EpisodeConfig::default()
            },
            rollout: RolloutConfig::default(),
            ppo: PpoConfig::default(),
            optimiser: Optimiser::default(),
            eval: EvalSettings::default(),
            checkpoint_every: 0,
            judge: JudgeConfig::default(),
        }
    }
}

impl Default for RolloutConfig {
    fn default() -> Self {
        Self {
            problems: 128,
            per_problem: 1,
            batch: 64,
            temperature: 1.0,
            max_new_tokens: 48,
            max_fault_rate: 0.2,
        }
    }
}

impl Default for PpoConfig {
    fn default() -> Self {
        Self {
            clip: 0.2,
            value_clip: 0.2,
            value_weight: 0.5,
            value: ValueKind::Head,
            value_moves_policy: false,
            beta: 0.05,
            gamma: 1.0,
            normalise: Normalise::Tokens,
            minibatches: 4,
            passes: 1,
        }
    }
}

impl Default for Optimiser {
    fn default() -> Self {
        Self {
            lr: 1.5e-4,
            warmup_updates: 40,
            weight_decay: 0.01,
            beta_1: 0.9,
            beta_2: 0.98,
            epsilon: 1e-5,
            grad_clip: 1.0,
        }
    }
}

impl Default for EvalSettings {
    fn default() -> Self {
        Self {
            valid_split: "valid".into(),
            test_split: "test".into(),
            every: 25,
            valid_problems: 128,
            test_problems: 0,
            temperature: 0.2,
            top_p: 0.95,
            rollouts: 1,
        }
    }
}

/// A setting that is out of range or would have no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting `{key}` {why}")]
pub struct ConfigError {
    /// The setting.
    pub key: String,
    /// What is wrong, and what to do.
    pub why: String,
}

impl TrainConfig {
    /// Checks every number.
    pub fn check(&self) -> Result<(), ConfigError> {
        let fail = |key: &str, why: &str| {
            Err(ConfigError {
                key: key.into(),
                why: why.into(),
            })
        };
        self.episode.check().map_err(|e| ConfigError {
            key: "episode".into(),
            why: e.to_string(),
        })?;
        for (key, n) in [
            ("iterations", self.iterations),
            ("workers", self.workers),
            ("rollout.problems", self.rollout.problems),
            ("rollout.per_problem", self.rollout.per_problem),
            ("rollout.batch", self.rollout.batch),
            ("rollout.max_new_tokens", self.rollout.max_new_tokens),
            ("ppo.minibatches", self.ppo.minibatches),
            ("ppo.passes", self.ppo.passes),
        ] {
            if n == 0 {
                return fail(key, "must be at least 1");
            }
        }
        if self.ppo.minibatches > self.rollout.problems * self.rollout.per_problem {
            return fail(
                "ppo.minibatches",
                "is more than the rollouts of an iteration",
            );
        }
        if !(self.rollout.temperature > 0.0 && self.rollout.temperature.is_finite()) {
            return fail(
                "rollout.temperature",
                "must be over 0: a policy that never varies cannot learn",
            );
        }
        for (key, x, allowed) in [
            (
                "ppo.clip",
                self.ppo.clip,
                self.ppo.clip > 0.0 && self.ppo.clip < 1.0,
            ),
            (
                "ppo.value_clip",
                self.ppo.value_clip,
                self.ppo.value_clip > 0.0,
            ),
            (
                "ppo.value_weight",
                self.ppo.value_weight,
                self.ppo.value_weight >= 0.0,
            ),
            ("ppo.beta", self.ppo.beta, self.ppo.beta >= 0.0),
            (
                "ppo.gamma",
                self.ppo.gamma,
                (0.0..=1.0).contains(&self.ppo.gamma),
            ),
            (
                "optimiser.lr",
                self.optimiser.lr as f32,
                self.optimiser.lr > 0.0,
            ),
            (
                "optimiser.weight_decay",
                self.optimiser.weight_decay,
                self.optimiser.weight_decay >= 0.0,
            ),
            (
                "optimiser.beta_1",
                self.optimiser.beta_1,
                (0.0..1.0).contains(&self.optimiser.beta_1),
            ),
            (
                "optimiser.beta_2",
                self.optimiser.beta_2,
                (0.0..1.0).contains(&self.optimiser.beta_2),
            ),
            (
                "optimiser.epsilon",
                self.optimiser.epsilon,
                self.optimiser.epsilon > 0.0,
            ),
            (
                "optimiser.grad_clip",
                self.optimiser.grad_clip,
                self.optimiser.grad_clip >= 0.0,
            ),
            (
                "rollout.max_fault_rate",
                self.rollout.max_fault_rate,
                (0.0..=1.0).contains(&self.rollout.max_fault_rate),
            ),
        ] {
            if !allowed || !x.is_finite() {
                return fail(key, &format!("is {x}, which is out of range"));
            }
        }
        if self.ppo.value_moves_policy && self.ppo.value == ValueKind::Separate {
            return fail(
                "ppo.value_moves_policy",
                "has no effect with ppo.value = \"separate\": leave it out",
            );
        }
        self.eval_sampling().check().map_err(|why| ConfigError {
            key: "eval".into(),
            why,
        })
    }

    /// Sampling of rollouts to learn from: the whole distribution, as the objective needs it.
    pub fn rollout_sampling(&self) -> Sampling {
        Sampling {
            temperature: self.rollout.temperature,
            top_p: 1.0,
            top_k: 0,
            max_new_tokens: self.rollout.max_new_tokens,
        }
    }

    /// Sampling when measuring.
    pub fn eval_sampling(&self) -> Sampling {
        Sampling {
            temperature: self.eval.temperature,
            top_p: self.eval.top_p,
            top_k: 0,
            max_new_tokens: self.rollout.max_new_tokens,
        }
    }
}
