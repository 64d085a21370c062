//! Rollouts, advantages, objectives, the trainer, metrics and supervised fine-tuning.
#![recursion_limit = "256"]

pub mod advantage;
pub mod batch;
mod config;
mod describe;
mod gradients;
mod learner;
mod plan;
pub mod ppo;
mod score;
mod sft;
mod trainer;

pub use config::{
    ConfigError, EvalSettings, Optimiser, PpoConfig, RolloutConfig, TrainConfig, ValueKind,
};
pub use learner::{ActorCritic, Evaluated, How, Learner, LossSettings, UpdateStats};
pub use plan::{Load, Memory, Networks};
pub use score::{Score, score};
pub use sft::{LossOn, Made, SftConfig, SftProgress, Shape, sft};
pub use trainer::{Metrics, TrainError, Trainer};
