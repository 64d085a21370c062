//! Supervised fine-tuning on dialogs, and the recipe of the embedded small model.
//!
//! The dialogs come from the same loop as everything else, with a policy that guesses among a problem's stored
//! programs whatever the feedback says. A model that imitates them writes programs that run but gains from a dialog
//! no more than from a fresh try: the starting point that RLEF describes for its base models.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rlef_env::EpisodeConfig;
use rlef_judge::{Judge, JudgeConfig};
use rlef_model::{Llama, LlamaConfig, ModelError, ModelFolder, bpe, device};
use rlef_policy::{Drive, GuessPolicy, Rollout, drive, tasks};
use rlef_problems::Problem;
use serde::{Deserialize, Serialize};

use crate::batch::Sample;
use crate::config::{ConfigError, MOST, Optimiser, check_counts, check_parts};
use crate::learner::Learner;
use crate::trainer::TrainError;
use crate::tune::{Fit, fit, tokenise};

/// A supervised run, as its TOML file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SftConfig {
    /// The problem set.
    pub problems: String,
    /// Its split.
    pub train_split: String,
    /// `cpu`, `cuda` or `cuda:N`.
    pub device: String,
    /// Seed of weights, dialogs and order.
    pub seed: u64,
    /// Threads.
    pub workers: usize,
    /// The dialog.
    pub episode: EpisodeConfig,
    /// Dialogs of each problem.
    pub dialogs_per_problem: u64,
    /// Which tokens are learned from.
    pub loss: LossOn,
    /// Passes over the dialogs.
    pub epochs: usize,
    /// Dialogs an update.
    pub batch: usize,
    /// The optimiser; the learning rate falls to a tenth along a cosine.
    pub optimiser: Optimiser,
    /// The shape of the model.
    pub model: Shape,
    /// How programs are judged.
    pub judge: JudgeConfig,
}

/// Which tokens of a dialog are learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossOn {
    /// The last answer (RLEF A.3: slightly better than all answers).
    LastAnswer,
    /// The answers.
    Answers,
    /// Every token, as in pre-training: the model also learns what programs print and what feedback says.
    #[default]
    All,
}

/// The shape of a small model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shape {
    /// Entries of the BPE vocabulary.
    pub vocab_size: usize,
    /// Width.
    pub hidden_size: usize,
    /// Width of the feed-forward layer.
    pub intermediate_size: usize,
    /// Blocks.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key/value heads.
    pub kv_heads: usize,
    /// Longest dialog, in tokens.
    pub positions: usize,
}

impl Default for SftConfig {
    fn default() -> Self {
        Self {
            problems: "micro".into(),
            train_split: "train".into(),
            device: "cpu".into(),
            seed: 0,
            workers: 2,
            episode: EpisodeConfig {
                prompt: rlef_env::PromptStyle::Brief,
                ..EpisodeConfig::default()
            },
            dialogs_per_problem: 6,
            loss: LossOn::All,
            epochs: 4,
            batch: 32,
            optimiser: Optimiser {
                lr: 2e-3,
                warmup_updates: 20,
                weight_decay: 0.05,
                ..Optimiser::default()
            },
            model: Shape::default(),
            judge: JudgeConfig::default(),
        }
    }
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            vocab_size: 512,
            hidden_size: 128,
            intermediate_size: 320,
            layers: 3,
            heads: 4,
            kv_heads: 2,
            positions: 512,
        }
    }
}

impl SftConfig {
    /// Checks every setting.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_parts(&self.episode, &self.judge, self.workers)?;
        check_counts(&[
            ("dialogs_per_problem", self.dialogs_per_problem),
            ("epochs", self.epochs as u64),
            ("batch", self.batch as u64),
        ])?;
        self.optimiser.check()?;
        self.shape().map(|_| ())
    }

    /// The model that would be made, checked.
    ///
    /// # Errors
    /// A shape that cannot be.
    pub fn shape(&self) -> Result<LlamaConfig, ConfigError> {
        let fail = |key: &str, why: String| ConfigError {
            key: format!("model.{key}"),
            why,
        };
        let s = &self.model;
        for (key, n, least) in [
            // Fewer could not even spell every byte.
            ("vocab_size", s.vocab_size, bpe::LEAST),
            ("hidden_size", s.hidden_size, 1),
            ("intermediate_size", s.intermediate_size, 1),
            ("layers", s.layers, 1),
            ("heads", s.heads, 1),
            ("kv_heads", s.kv_heads, 1),
            ("positions", s.positions, 2),
        ] {
            if !(least..=LARGEST).contains(&n) {
                let why = format!("is {n}; it must be from {least} to {LARGEST}");
                return Err(fail(key, why));
            }
        }
        if !s.hidden_size.is_multiple_of(s.heads) {
            let why = format!("is {}, which {} heads cannot share", s.hidden_size, s.heads);
            return Err(fail("hidden_size", why));
        }
        let wrong = |e: ModelError| fail("heads", format!("cannot be: {e}"));
        let (_, config) = model_config(s).map_err(wrong)?;
        Ok(config)
    }

    /// Checks what only the problems tell: dialogs are made from their stored programs.
    ///
    /// # Errors
    /// A problem without programs, or more dialogs than anybody waits for.
    pub fn check_problems(&self, problems: &[Arc<Problem>]) -> Result<(), ConfigError> {
        let total = self
            .dialogs_per_problem
            .saturating_mul(problems.len() as u64);
        if total > MOST {
            return Err(ConfigError {
                key: "dialogs_per_problem".into(),
                why: format!("makes {total} dialogs; there may be at most {MOST}"),
            });
        }
        match problems
            .iter()
            .find(|p| p.solutions.is_empty() && p.wrong_solutions.is_empty())
        {
            None => Ok(()),
            Some(p) => Err(ConfigError {
                key: "problems".into(),
                why: format!(
                    "has problem {} without stored programs; dialogs are made from `solutions` and `wrong_solutions`",
                    p.id
                ),
            }),
        }
    }
}

/// Largest of the numbers of a shape: what a model of this kind could have, with a margin.
const LARGEST: usize = 1 << 20;

/// What a run made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Made {
    /// Loss of the last update, nats a token; NaN before the first.
    pub loss: f64,
    /// Updates done.
    pub updates: usize,
    /// Updates that were planned; `stop` leaves some undone.
    pub planned: usize,
}

/// How far a run is.
#[derive(Debug, Clone, Copy)]
pub enum SftProgress {
    /// Dialogs are being made.
    Dialogs {
        /// Dialogs made.
        done: usize,
        /// Dialogs in all.
        total: usize,
    },
    /// The model is being updated.
    Updates {
        /// Updates done.
        done: usize,
        /// Updates in all.
        total: usize,
        /// Loss of the last update, nats a token.
        loss: f64,
    },
}

/// Makes dialogs, a tokeniser and a model, and writes the model to `out`.
///
/// # Errors
/// As for training. Stopped early, or when an update fails, the model so far is written all the same.
pub fn sft(
    config: &SftConfig,
    problems: &[Arc<Problem>],
    judge: &Judge,
    out: &Path,
    stop: &AtomicBool,
    progress: &(dyn Fn(SftProgress) + Sync),
) -> Result<Made, TrainError> {
    config.check()?;
    config.check_problems(problems)?;
    if problems.is_empty() {
        return Err(TrainError::Empty);
    }
    let dialogs = dialogs(config, problems, judge, stop, progress)?;

    let texts: Vec<String> = dialogs
        .iter()
        .flat_map(|d| d.messages.iter().map(|m| m.content.clone()))
        .collect();
    let tokenizer_files = bpe::train(&texts, config.model.vocab_size)?;
    let (bytes, model_config) = model_config(&config.model)?;
    let mut files = vec![("config.json".to_owned(), bytes)];
    files.extend(tokenizer_files);
    let device = device::open(&config.device)?;
    let fresh = Llama::random(&model_config, config.seed, &device);
    let base = ModelFolder::from_parts(files, fresh.to_named()?, out, &device)?;

    let samples: Vec<Sample> = dialogs
        .iter()
        .map(|d| {
            let messages = d.messages.iter();
            let texts: Vec<(String, String)> = messages
                .map(|m| (m.role.as_str().to_owned(), m.content.clone()))
                .collect();
            tokenise(&texts, &base)
        })
        .collect::<Result<_, ModelError>>()?;
    if let Some(long) = samples
        .iter()
        .map(|s| s.tokens.len())
        .max()
        .filter(|&n| n > config.model.positions)
    {
        return Err(ConfigError {
            key: "model.positions".into(),
            why: format!(
                "is {}, but the longest dialog has {long} tokens",
                config.model.positions
            ),
        }
        .into());
    }

    let mut learner = Learner::new(
        base.model.clone(),
        None,
        &base.config,
        &config.optimiser,
        config.workers,
        config.seed,
    );
    let how = Fit {
        epochs: config.epochs,
        batch: config.batch,
        loss: config.loss,
        seed: config.seed,
    };
    fit(&mut learner, &base, &samples, how, out, stop, progress)
}

fn dialogs(
    config: &SftConfig,
    problems: &[Arc<Problem>],
    judge: &Judge,
    stop: &AtomicBool,
    progress: &(dyn Fn(SftProgress) + Sync),
) -> Result<Vec<Rollout>, TrainError> {
    let settings = Drive {
        episode: config.episode.clone(),
        seed: config.seed,
        workers: config.workers,
        batch: 64,
    };
    let tasks = tasks(
        problems,
        0..config.dialogs_per_problem,
        &config.episode,
        config.seed,
    );
    let (outcomes, _) = drive(&GuessPolicy, judge, &tasks, &settings, stop, &|p| {
        progress(SftProgress::Dialogs {
            done: p.done,
            total: p.total,
        });
    })?;
    let total = outcomes.len();
    let mut dialogs = Vec::new();
    let mut last = String::new();
    for outcome in outcomes {
        match outcome {
            rlef_policy::Outcome::Done(r) => dialogs.push(*r),
            rlef_policy::Outcome::Lost { why, .. } => last = why,
        }
    }
    if dialogs.is_empty() {
        return Err(TrainError::Faults {
            lost: total,
            total,
            last,
        });
    }
    Ok(dialogs)
}

/// `config.json` and what it says.
fn model_config(s: &Shape) -> Result<(Vec<u8>, LlamaConfig), ModelError> {
    let json = serde_json::json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": s.vocab_size,
        "hidden_size": s.hidden_size,
        "intermediate_size": s.intermediate_size,
        "num_hidden_layers": s.layers,
        "num_attention_heads": s.heads,
        "num_key_value_heads": s.kv_heads,
        "max_position_embeddings": s.positions,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": true,
        "hidden_act": "silu",
        "initializer_range": 0.02,
        // <|end|>, the fourth role token of the tokeniser.
        "eos_token_id": 3,
        "torch_dtype": "float32",
    });
    let bytes = serde_json::to_vec_pretty(&json).map_err(|e| ModelError::Config {
        path: "config.json".into(),
        why: e.to_string(),
    })?;
    let parsed = LlamaConfig::parse(&bytes, Path::new("config.json"))?;
    Ok((bytes, parsed))
}
