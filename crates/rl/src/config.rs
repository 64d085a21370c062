//! The settings of a training run, as its TOML file has them.
//!
//! Where the paper gives a number, the default of [`TrainConfig`] is for the embedded small model and
//! `configs/rlef-8b.toml` has the paper's. What the paper leaves open is marked NF.

mod check;

use rlef_env::EpisodeConfig;
use rlef_judge::JudgeConfig;
use rlef_model::Sampling;
use serde::{Deserialize, Serialize};

use crate::advantage::Normalise;

pub use check::ConfigError;
pub(crate) use check::{MOST, check_counts, check_parts};

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
    /// Share of the learning rate that is left in the last iteration, reached in a straight line; 1: it stays constant
    /// after the warm-up, as in the paper.
    pub lr_final: f64,
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
            iterations: 450,
            workers: 2,
            episode: EpisodeConfig {
                prompt: rlef_env::PromptStyle::Brief,
                ..EpisodeConfig::default()
            },
            rollout: RolloutConfig::default(),
            ppo: PpoConfig::default(),
            optimiser: Optimiser::default(),
            eval: EvalSettings::default(),
            checkpoint_every: 50,
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
            lr_final: 0.2,
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

impl TrainConfig {
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
