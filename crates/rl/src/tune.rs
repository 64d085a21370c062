//! Supervised fine-tuning of a model that is there: on the successes of a run (rejection sampling), or on dialogs.
//!
//! RLEF's baseline (A.3): trajectories that ended solved, the loss on their last answers, a learning rate that falls along
//! a cosine. What a run recorded is learned from as it is, token by token; dialogs that come as text are tokenised.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rlef_model::{ChatMessage, ModelError, ModelFolder, folder};
use serde::{Deserialize, Serialize};

use crate::batch::Sample;
use crate::config::{ConfigError, MOST, Optimiser, check_counts};
use crate::learner::Learner;
use crate::sft::{LossOn, Made, SftProgress};
use crate::trainer::TrainError;
use crate::trajectory::Record;

/// A fine-tuning run, as its TOML file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TuneConfig {
    /// `cpu`, `cuda` or `cuda:N`.
    pub device: String,
    /// Seed of the order.
    pub seed: u64,
    /// Threads.
    pub workers: usize,
    /// Which tokens are learned from.
    pub loss: LossOn,
    /// Passes over the dialogs.
    pub epochs: usize,
    /// Dialogs an update.
    pub batch: usize,
    /// Dialogs of one problem that are learned from, the latest ones; 0: all.
    pub max_per_problem: usize,
    /// The optimiser; the learning rate falls to a tenth along a cosine.
    pub optimiser: Optimiser,
}

impl Default for TuneConfig {
    fn default() -> Self {
        Self {
            device: "cpu".into(),
            seed: 0,
            workers: 2,
            loss: LossOn::LastAnswer,
            epochs: 2,
            batch: 64,
            max_per_problem: 0,
            optimiser: Optimiser {
                lr: 2e-4,
                warmup_updates: 10,
                weight_decay: 0.1,
                ..Optimiser::default()
            },
        }
    }
}

impl TuneConfig {
    /// Checks every setting.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_counts(&[
            ("workers", self.workers as u64),
            ("epochs", self.epochs as u64),
            ("batch", self.batch as u64),
        ])?;
        if self.max_per_problem as u64 > MOST {
            return Err(ConfigError {
                key: "max_per_problem".into(),
                why: format!("is {}; it must be at most {MOST}", self.max_per_problem),
            });
        }
        self.optimiser.check()
    }
}

/// The solved ones among a run's episodes, at most `max_per_problem` of each problem (0: all), the latest ones first to be
/// taken. A dialog that was sampled twice, token by token, counts once.
pub fn successes(records: Vec<Record>, max_per_problem: usize) -> Vec<Record> {
    let mut taken: BTreeMap<String, Vec<Vec<u32>>> = BTreeMap::new();
    let mut kept = vec![];
    for record in records.into_iter().rev().filter(|r| r.solved) {
        let known = taken.entry(record.problem.clone()).or_default();
        let full = max_per_problem > 0 && known.len() >= max_per_problem;
        if !full && !known.contains(&record.tokens) {
            known.push(record.tokens.clone());
            kept.push(record);
        }
    }
    kept.reverse();
    kept
}

/// The tokens of a dialog that no model sampled, laid out as if one had. `messages` are roles and texts.
///
/// # Errors
/// A dialog that the chat template refuses, or one without an answer.
pub fn tokenise(messages: &[(String, String)], base: &ModelFolder) -> Result<Sample, ModelError> {
    let chat: Vec<ChatMessage> = messages
        .iter()
        .map(|(role, content)| ChatMessage {
            role: role.clone(),
            content: content.clone(),
        })
        .collect();
    let pieces = base.tokenizer.segments(&chat)?;
    let answers: Vec<&str> = messages
        .iter()
        .filter(|(role, _)| role == "assistant")
        .map(|(_, content)| content.as_str())
        .collect();
    let end = base.tokenizer.eos_ids()[0];
    let end_text = base.tokenizer.piece(end);
    let mut tokens = Vec::new();
    let mut ranges = Vec::new();
    for (i, answer) in answers.iter().enumerate() {
        let piece = pieces.get(i).map_or("", String::as_str);
        let piece = if i > 0 {
            piece.strip_prefix(end_text.as_str()).unwrap_or(piece)
        } else {
            piece
        };
        tokens.extend(base.tokenizer.encode(piece)?);
        let from = tokens.len();
        tokens.extend(base.tokenizer.encode(&base.tokenizer.defuse(answer))?);
        tokens.push(end);
        ranges.push(from..tokens.len());
    }
    Ok(Sample::new(tokens, ranges))
}

/// Fine-tunes `base` and writes the model to `out`.
///
/// # Errors
/// No dialogs, or dialogs that do not fit the model; an update that fails. Stopped early, or when an update fails, the
/// model so far is written all the same.
pub fn tune(
    config: &TuneConfig,
    base: &ModelFolder,
    samples: &[Sample],
    out: &Path,
    stop: &AtomicBool,
    progress: &(dyn Fn(SftProgress) + Sync),
) -> Result<Made, TrainError> {
    config.check()?;
    if samples.is_empty() {
        return Err(TrainError::NoDialogs);
    }
    let positions = base.config.max_position_embeddings;
    for s in samples {
        let outside = s
            .tokens
            .iter()
            .any(|&t| t as usize >= base.config.vocab_size);
        if s.tokens.len() > positions || outside {
            let why = format!(
                "has {} tokens, and the model has {positions} positions and {} tokens in its vocabulary",
                s.tokens.len(),
                base.config.vocab_size
            );
            return Err(TrainError::Record(why));
        }
    }
    let mut learner = Learner::new(
        base.model.clone(),
        None,
        &base.config,
        &config.optimiser,
        config.workers,
        config.seed,
    );
    fit(
        &mut learner,
        base,
        samples,
        Fit {
            epochs: config.epochs,
            batch: config.batch,
            loss: config.loss,
            seed: config.seed,
        },
        out,
        stop,
        progress,
    )
}

/// How often and in what order dialogs are learned from.
pub(crate) struct Fit {
    pub(crate) epochs: usize,
    pub(crate) batch: usize,
    pub(crate) loss: LossOn,
    pub(crate) seed: u64,
}

/// The updates; the learning rate falls to a tenth along a cosine. Writes the model.
pub(crate) fn fit(
    learner: &mut Learner,
    base: &ModelFolder,
    samples: &[Sample],
    how: Fit,
    out: &Path,
    stop: &AtomicBool,
    progress: &(dyn Fn(SftProgress) + Sync),
) -> Result<Made, TrainError> {
    let mut made = Made {
        loss: f64::NAN,
        updates: 0,
        planned: how.epochs * samples.len().div_ceil(how.batch),
    };
    let mut failed = None;
    let mut rng = ChaCha8Rng::seed_from_u64(how.seed);
    'epochs: for _ in 0..how.epochs {
        let mut order: Vec<usize> = (0..samples.len()).collect();
        order.shuffle(&mut rng);
        for part in order.chunks(how.batch) {
            if stop.load(Ordering::Relaxed) {
                break 'epochs;
            }
            let done = made.updates as f64 / made.planned as f64;
            learner.scale_lr(0.1 + 0.9 * 0.5 * (1.0 + (std::f64::consts::PI * done).cos()));
            let batch: Vec<&Sample> = part.iter().map(|&i| &samples[i]).collect();
            match learner.supervised(&batch, how.loss) {
                Ok((loss, _)) => made.loss = loss,
                Err(why) => {
                    failed = Some(why);
                    break 'epochs;
                }
            }
            made.updates += 1;
            progress(SftProgress::Updates {
                done: made.updates,
                total: made.planned,
                loss: made.loss,
            });
        }
    }
    if made.updates > 0 {
        folder::save(out, &base.files, &learner.inference().policy.to_named()?)?;
    }
    match failed {
        None => Ok(made),
        Some(why) => Err(TrainError::Sft { made, why }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(step: usize, problem: &str, solved: bool, tokens: &[u32]) -> Record {
        Record {
            step,
            problem: problem.into(),
            sample: 0,
            group: 0,
            lost: None,
            learned: true,
            solved,
            full: false,
            tokens: tokens.to_vec(),
            turns: vec![],
            values: vec![],
            returns: vec![],
            advantages: vec![],
        }
    }

    #[test]
    fn the_latest_successes_are_taken_once() {
        let records = vec![
            record(1, "a", true, &[1]),
            record(1, "b", true, &[2]),
            record(2, "a", false, &[3]),
            record(2, "a", true, &[4]),
            record(3, "a", true, &[4]),
            record(3, "a", true, &[5]),
        ];
        let of = |max| -> Vec<(usize, u32)> {
            let kept = successes(records.clone(), max);
            kept.iter().map(|r| (r.step, r.tokens[0])).collect()
        };
        assert_eq!(of(0), [(1, 1), (1, 2), (3, 4), (3, 5)]);
        assert_eq!(of(2), [(1, 2), (3, 4), (3, 5)]);
        assert_eq!(of(1), [(1, 2), (3, 5)]);
    }
}
