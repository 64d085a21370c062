//! What of a trainer a checkpoint holds, and back.

use std::path::Path;

use rlef_model::weights::{self, Named};
use rlef_model::{Llama, ModelError, ValueHead, ValueModel};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{CheckpointError, OPTIMISER, STATE, VALUE};
use crate::config::ValueKind;
use crate::learner::ActorCritic;
use crate::trainer::{Position, TrainError, Trainer};

/// The counters.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// The version of rlef that wrote it.
    version: String,
    /// Iterations done.
    iteration: usize,
    /// Updates made.
    updates: u64,
    /// SHA-256 of the weights that the run started from, which stay the reference.
    reference: String,
    data: Position,
}

/// How much of a checkpoint is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// All: the same run goes on.
    Resume,
    /// A run with other settings starts here. A value network of another kind starts anew; so does the position in the
    /// data if `new_data`.
    Fork {
        /// Whether the problems, their split or the seed are others.
        new_data: bool,
    },
}

impl Trainer {
    /// Writes all that [`Trainer::load_checkpoint`] needs into `dir`, which holds a model folder then.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn write_checkpoint(&self, dir: &Path) -> Result<(), TrainError> {
        self.save(dir)?;
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.join(name);
            std::fs::write(&path, bytes).map_err(|e| CheckpointError::Write {
                path,
                why: e.to_string(),
            })
        };
        write(OPTIMISER, &self.learner.optimiser_state()?)?;
        let state = State {
            version: env!("CARGO_PKG_VERSION").into(),
            iteration: self.iteration,
            updates: self.learner.updates(),
            reference: self.reference_sum()?,
            data: self.data.clone(),
        };
        let json = serde_json::to_vec(&state).map_err(|e| CheckpointError::Write {
            path: dir.join(STATE),
            why: e.to_string(),
        })?;
        Ok(write(STATE, &json)?)
    }

    /// Takes up what [`Trainer::write_checkpoint`] wrote. The trainer must have been made from the run's settings and
    /// the model that the run started from. Returns the version of rlef that wrote it.
    ///
    /// # Errors
    /// A checkpoint that cannot be read, or that is of another model or other problems.
    pub fn load_checkpoint(&mut self, dir: &Path, load: Load) -> Result<String, TrainError> {
        let damaged = |what: String| CheckpointError::Damaged {
            path: dir.to_owned(),
            what,
        };
        let other = |what: String| CheckpointError::Other {
            path: dir.to_owned(),
            what,
        };
        let read = |name: &str| {
            std::fs::read(dir.join(name)).map_err(|e| damaged(format!("cannot read {name}: {e}")))
        };
        let state: State =
            serde_json::from_slice(&read(STATE)?).map_err(|e| damaged(format!("{STATE}: {e}")))?;
        if state.reference != self.reference_sum()? {
            let what = "the model that the run started from has changed; it is the reference policy, so the run \
                        cannot go on with another one";
            return Err(other(what.into()).into());
        }
        let problems = self.problems.len();
        let data = match load {
            Load::Fork { new_data: true } => Position {
                used: vec![0; problems],
                ..Position::default()
            },
            _ => state.data,
        };
        if data.used.len() != problems || data.queue.iter().any(|&i| i >= problems) {
            let what = format!(
                "it was written on {} problems, and there are {problems} now",
                data.used.len()
            );
            return Err(other(what).into());
        }
        let weights = self.read_weights(dir, load)?;
        let optimiser = read(OPTIMISER)?;
        self.learner.resume(weights, optimiser, state.updates)?;
        self.iteration = state.iteration;
        self.data = data;
        Ok(state.version)
    }

    fn read_weights(&self, dir: &Path, load: Load) -> Result<ActorCritic, TrainError> {
        let fresh = self.learner.inference();
        let device = fresh.policy.embed_tokens.val().device();
        let config = &self.folder.config;
        let policy = Llama::from_named(weights::read_dir(dir)?, config, dir, &device)?;
        let path = dir.join(VALUE);
        let mut named = if path.exists() {
            weights::read_file(&path)?
        } else {
            Named::new()
        };
        let kind = match (named.contains_key("value_head.weight"), named.len() > 2) {
            (false, _) => None,
            (true, false) => Some(ValueKind::Head),
            (true, true) => Some(ValueKind::Separate),
        };
        let wanted = self.config.value();
        if kind != wanted {
            return match load {
                Load::Fork { .. } => Ok(ActorCritic { policy, ..fresh }),
                Load::Resume => Err(CheckpointError::Other {
                    path: dir.to_owned(),
                    what: format!(
                        "its value network is {kind:?}, and the settings ask for {wanted:?}"
                    ),
                }
                .into()),
            };
        }
        let (mut head, mut critic) = (None, None);
        if let Some(kind) = kind {
            let layer = ValueHead::from_named(&mut named, &path, &device)?;
            match kind {
                ValueKind::Head => head = Some(layer),
                ValueKind::Separate => {
                    let trunk = Llama::from_named(named, config, &path, &device)?;
                    critic = Some(ValueModel { trunk, head: layer });
                }
            }
        }
        Ok(ActorCritic {
            policy,
            head,
            critic,
        })
    }

    /// SHA-256 of the weights that the run started from.
    fn reference_sum(&self) -> Result<String, ModelError> {
        if let Some(sum) = self.reference_sum.get() {
            return Ok(sum.clone());
        }
        let mut hash = Sha256::new();
        for (name, (shape, values)) in self.reference.policy.to_named()? {
            hash.update(name.as_bytes());
            for n in shape {
                hash.update((n as u64).to_le_bytes());
            }
            for x in values {
                hash.update(x.to_le_bytes());
            }
        }
        let sum = format!("{:x}", hash.finalize());
        Ok(self.reference_sum.get_or_init(|| sum).clone())
    }
}
