//! Where a run comes from: a checkpoint, of itself or of another run.

use anyhow::{Result, bail};
use rlef_rl::{Load, TrainConfig, Trainer};

use super::folder::Past;
use super::resume::Point;
use crate::settings::resolve;

/// Where a run comes from.
pub struct Origin {
    /// The run, and the point that was named.
    pub point: Point,
    /// The iteration of the checkpoint.
    pub step: usize,
    /// The settings there.
    pub config: TrainConfig,
}

impl Origin {
    /// To begin another run from.
    ///
    /// # Errors
    /// No good checkpoint, or settings that cannot follow on it.
    pub fn open(point: Point, config: &TrainConfig) -> Result<Self> {
        let step = point.to_fork()?;
        let before: TrainConfig = resolve(Some(&point.config()), &[])?;
        if config.iterations <= step {
            bail!(
                "iterations is {}, and the checkpoint is already of iteration {step}; give more --iterations",
                config.iterations
            );
        }
        if before.model != config.model {
            bail!(
                "a run from a checkpoint keeps its model ({}), which is the reference policy; leave `model` out",
                before.model
            );
        }
        Ok(Self {
            point,
            step,
            config: before,
        })
    }

    /// `RUN@STEP`.
    pub fn name(&self) -> String {
        format!("{}@{}", self.point.run.display(), self.step)
    }

    /// Whether the position in the data means nothing in the new run.
    pub fn new_data(&self, config: &TrainConfig) -> bool {
        let of = |c: &TrainConfig| (c.problems.clone(), c.train_split.clone(), c.seed);
        of(&self.config) != of(config)
    }

    /// Takes the checkpoint up; what of the run was there.
    ///
    /// # Errors
    /// A checkpoint that cannot be read or does not fit.
    pub fn load(&self, trainer: &mut Trainer, load: Load) -> Result<Past> {
        let checkpoints = self.point.checkpoints();
        let path = checkpoints.path(self.step);
        let version = trainer.load_checkpoint(&path, load)?;
        if version != env!("CARGO_PKG_VERSION") {
            crate::say_err!(
                "warning: {} was written by rlef {version}; what follows may differ from what that version would do",
                path.display()
            );
        }
        Past::of(&self.point.run, &checkpoints, self.step)
    }
}
