//! Rollouts, advantages, objectives, the trainer, checkpoints, metrics and supervised fine-tuning.
