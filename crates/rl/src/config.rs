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
use crate::aggregate::Aggregation;
use crate::algorithm::Algorithm;
use crate::batch::{Level, Truncated};
use crate::kl::{Estimator, KlIn};
use crate::learner::How;
use crate::objective::LossSettings;
use crate::off_policy::OffPolicy;
use crate::ppo::Clips;

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
    /// What the policy learns by; decides the defaults of other settings.
    pub algorithm: Algorithm,
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
    /// Checkpoints that are kept: so many of the last ones, and the best one by the valid split; 0: all.
    pub checkpoint_keep: usize,
    /// Whether every rollout is recorded in the run's folder; `--replay` needs it.
    pub trajectories: bool,
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
    /// Rounds in which groups without signal, whose rewards are all equal, are replaced by those of further problems
    /// (DAPO's dynamic sampling); 0: they stay.
    pub refills: usize,
    /// A run stops when more than this share of an iteration's episodes was lost to faults of the machinery.
    pub max_fault_rate: f32,
}

/// The objective and its numbers. What is said of the value is for `algorithm = "ppo"` only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PpoConfig {
    /// ε of the clipped surrogate: the ratio counts down to 1 − ε …
    pub clip: f32,
    /// … and up to 1 + this; 0: the same as `clip`.
    pub clip_high: f32,
    /// α of the clipped value loss.
    pub value_clip: f32,
    /// Weight of the value loss. NF.
    pub value_weight: f32,
    /// Where the value comes from.
    pub value: ValueKind,
    /// Whether the value loss also moves the policy's own network (`value = "head"` only). NF. Off, the value is read
    /// from the stream without disturbing it.
    pub value_moves_policy: bool,
    /// What has a value: a turn, or every answer token (the paper's ablation, B.6).
    pub value_level: Level,
    /// β: price of leaving the reference policy.
    pub beta: f32,
    /// Where it is paid: in the reward, or in the loss.
    pub kl: KlIn,
    /// How it is estimated: k1, k2 or k3.
    pub kl_estimator: Estimator,
    /// γ, from one turn to the next, or from one answer token to the next.
    pub gamma: f32,
    /// λ of generalised advantage estimation; 1: Monte-Carlo returns, as in the paper.
    pub lambda: f32,
    /// Over what the advantage is normalised. NF.
    pub normalise: Normalise,
    /// From tokens' losses to that of a minibatch.
    pub aggregation: Aggregation,
    /// The constant that `aggregation = "sequence_mean_token_sum"` divides by; 0: the most that the answers of a dialog
    /// can have, `episode.max_turns` times `rollout.max_new_tokens`.
    pub sequence_length: usize,
    /// What is done about samples of other weights: `rlef` (its factor in the ratio), `truncated` (importance sampling,
    /// each token's weight bounded), `none`.
    pub off_policy: OffPolicy,
    /// The bound of `off_policy = "truncated"`.
    pub off_policy_cap: f32,
    /// Tokens whose weights are more than so many updates behind those that learn from them give no loss; 0: no bound.
    pub max_staleness: u64,
    /// What is done with answers that were cut at the length limit.
    pub truncated: Truncated,
    /// What such an answer costs with `truncated = "penalise"`.
    pub truncation_penalty: f32,
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
            algorithm: Algorithm::Ppo,
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
            checkpoint_keep: 3,
            trajectories: true,
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
            refills: 0,
            max_fault_rate: 0.2,
        }
    }
}

impl Default for PpoConfig {
    fn default() -> Self {
        Self {
            clip: 0.2,
            clip_high: 0.0,
            value_clip: 0.2,
            value_weight: 0.5,
            value: ValueKind::Head,
            value_moves_policy: false,
            value_level: Level::Turn,
            beta: 0.05,
            kl: KlIn::Reward,
            kl_estimator: Estimator::K1,
            gamma: 1.0,
            lambda: 1.0,
            normalise: Normalise::Tokens,
            aggregation: Aggregation::TokenMean,
            sequence_length: 0,
            off_policy: OffPolicy::Rlef,
            off_policy_cap: 2.0,
            max_staleness: 0,
            truncated: Truncated::Keep,
            truncation_penalty: 1.0,
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
    /// How the loss of a minibatch is put together.
    pub fn loss(&self) -> LossSettings {
        let ppo = &self.ppo;
        let most = self
            .episode
            .max_turns
            .saturating_mul(self.rollout.max_new_tokens);
        LossSettings {
            clips: Clips {
                policy: ppo.clip,
                policy_high: if ppo.clip_high > 0.0 {
                    ppo.clip_high
                } else {
                    ppo.clip
                },
                value: ppo.value_clip,
            },
            value_weight: ppo.value_weight,
            how: How {
                temperature: self.rollout.temperature,
                value_moves_policy: ppo.value_moves_policy,
            },
            off_policy: ppo.off_policy,
            off_policy_cap: ppo.off_policy_cap,
            beta: match ppo.kl {
                KlIn::Loss => ppo.beta,
                KlIn::Reward => 0.0,
            },
            estimator: ppo.kl_estimator,
            aggregation: ppo.aggregation,
            constant: match ppo.sequence_length {
                0 => most,
                n => n,
            },
            max_staleness: (ppo.max_staleness > 0).then_some(ppo.max_staleness),
        }
    }

    /// Where the value comes from; `None` where the algorithm has none.
    pub fn value(&self) -> Option<ValueKind> {
        (!self.algorithm.is_group()).then_some(self.ppo.value)
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
