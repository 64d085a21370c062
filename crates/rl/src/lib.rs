//! Rollouts, advantages, objectives, the trainer, metrics and supervised fine-tuning.
#![recursion_limit = "256"]

pub mod advantage;
pub mod aggregate;
pub mod algorithm;
pub mod batch;
pub mod checkpoint;
mod config;
mod credit;
pub mod dapo;
mod describe;
pub mod dr_grpo;
mod gradients;
pub mod grpo;
pub mod grpo_plus_plus;
pub mod kl;
mod learner;
pub mod objective;
pub mod off_policy;
mod plan;
pub mod ppo;
pub mod rloo;
mod score;
mod sft;
mod trainer;
pub mod trajectory;
mod tune;

pub use algorithm::Algorithm;
pub use checkpoint::{CheckpointError, Checkpoints, Load};
pub use config::{
    ConfigError, EvalSettings, Optimiser, PpoConfig, RolloutConfig, TrainConfig, ValueKind,
};
pub use learner::{ActorCritic, Evaluated, How, Learner, UpdateStats};
pub use objective::LossSettings;
pub use plan::{Memory, Networks, Workload};
pub use score::{Score, score};
pub use sft::{LossOn, Made, SftConfig, SftProgress, Shape, sft};
pub use trainer::{Iteration, Metrics, TrainError, Trainer};
pub use trajectory::Record;
pub use tune::{TuneConfig, successes, tokenise, tune};
