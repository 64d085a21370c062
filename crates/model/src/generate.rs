//! Answers for a batch of dialogs at once, with the cache kept from turn to turn.
//!
//! Not here: what a dialog is made of. Rows are lists of tokens that only grow.

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;

use crate::ModelError;
use crate::cache::Cache;
use crate::llama::{Frame, Llama};
use crate::sample::{Sampling, sample};
use crate::weights::values;

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// Its tokens, the ending token included.
    pub tokens: Vec<u32>,
    /// The log-probability of each.
    pub logprobs: Vec<f32>,
    /// Whether an ending token ended it; otherwise it was cut at the length limit.
    pub finished: bool,
}

/// What a row asks for in a turn.
pub struct Ask<'a> {
    /// Tokens to append before the answer; at least one.
    pub append: &'a [u32],
    /// The source of the answer's randomness.
    pub rng: ChaCha8Rng,
}

struct Row {
    /// Positions in the cache.
    len: usize,
    /// Which cache slots hold this row's tokens.
    slots: Vec<bool>,
    /// Sampled last, not yet in the cache.
    pending: Option<u32>,
}

/// A batch of dialogs on one model.
pub struct Generator<'m> {
    model: &'m Llama,
    frame: &'m Frame,
    device: Device,
    cache: Cache,
    rows: Vec<Row>,
}

impl<'m> Generator<'m> {
    /// `rows` empty dialogs. `model` and `frame` must be on a device without autodiff.
    pub fn new(model: &'m Llama, frame: &'m Frame, rows: usize) -> Self {
        let device = model.embed_tokens.val().device();
        let cache = Cache::new(model.layers.len(), rows, &device);
        let rows = (0..rows)
            .map(|_| Row {
                len: 0,
                slots: vec![],
                pending: None,
            })
            .collect();
        Self {
            model,
            frame,
            device,
            cache,
            rows,
        }
    }

    /// Positions that a row needs for `append` further tokens and the longest answer.
    pub fn needed(&self, row: usize, append: usize, sampling: &Sampling) -> usize {
        let row = self
            .rows
            .get(row)
            .map_or(0, |r| r.len + usize::from(r.pending.is_some()));
        row + append + sampling.max_new_tokens
    }

    /// Appends each row's tokens and samples each row's answer until a token of `stop` or the length limit.
    ///
    /// # Errors
    /// A row that would outgrow the model's positions, an empty append, or numbers that are not finite.
    pub fn turn(
        &mut self,
        asks: Vec<Ask>,
        sampling: &Sampling,
        stop: &[u32],
    ) -> Result<Vec<Sampled>, ModelError> {
        let b = self.rows.len();
        if asks.len() != b {
            return Err(ModelError::Compute(format!(
                "{} rows but {} asks",
                b,
                asks.len()
            )));
        }
        if b == 0 {
            return Ok(vec![]);
        }
        for (i, ask) in asks.iter().enumerate() {
            let need = self.needed(i, ask.append.len(), sampling);
            let limit = self.frame.config.max_position_embeddings;
            if ask.append.is_empty() || need > limit {
                return Err(ModelError::Compute(format!(
                    "a dialog with {} new tokens would need {need} of the model's {limit} positions",
                    ask.append.len(),
                )));
            }
        }
        let chunks: Vec<Vec<u32>> = self
            .rows
            .iter_mut()
            .zip(&asks)
            .map(|(row, ask)| {
                row.pending
                    .take()
                    .into_iter()
                    .chain(ask.append.iter().copied())
                    .collect()
            })
            .collect();
        let longest = chunks.iter().map(Vec::len).max().unwrap_or(0);
        self.cache
            .reserve(longest + sampling.max_new_tokens, self.frame.shape);
        let mut rngs: Vec<ChaCha8Rng> = asks.into_iter().map(|a| a.rng).collect();
        let mut out = vec![
            Sampled {
                tokens: vec![],
                logprobs: vec![],
                finished: false
            };
            b
        ];
        let mut logits = self.step(&chunks)?;
        loop {
            let vocab = logits.len() / b;
            let mut next: Vec<Vec<u32>> = vec![vec![]; b];
            for i in 0..b {
                if out[i].finished || out[i].tokens.len() >= sampling.max_new_tokens {
                    continue;
                }
                let row = &logits[i * vocab..(i + 1) * vocab];
                if !row.iter().all(|x| x.is_finite()) {
                    return Err(ModelError::Compute(
                        "a logit is not finite; the weights are damaged".into(),
                    ));
                }
                let (token, logprob) = sample(row, sampling, &mut rngs[i]);
                out[i].tokens.push(token);
                out[i].logprobs.push(logprob);
                self.rows[i].pending = Some(token);
                if stop.contains(&token) {
                    out[i].finished = true;
                } else if out[i].tokens.len() < sampling.max_new_tokens {
                    next[i].push(token);
                }
            }
            if next.iter().all(Vec::is_empty) {
                return Ok(out);
            }
            for (row, chunk) in self.rows.iter_mut().zip(&next) {
                if !chunk.is_empty() {
                    row.pending = None;
                }
            }
            logits = self.step(&next)?;
        }
    }

    /// Keeps the given rows, in the given order.
    pub fn keep(&mut self, rows: &[usize]) {
        self.cache.keep(rows);
        let mut old: Vec<Option<Row>> = std::mem::take(&mut self.rows)
            .into_iter()
            .map(Some)
            .collect();
        self.rows = rows
            .iter()
            .filter_map(|&r| old.get_mut(r).and_then(Option::take))
            .collect();
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Runs one chunk a row (possibly empty), right-aligned so that every row's last token is in the last column;
    /// gives the logits after it, b·v of them.
    fn step(&mut self, chunks: &[Vec<u32>]) -> Result<Vec<f32>, ModelError> {
        let b = chunks.len();
        let t = chunks.iter().map(Vec::len).max().unwrap_or(0);
        let used = self.cache.used();
        let s = used + t;
        let mut tokens = vec![0i32; b * t];
        let mut positions = vec![0usize; b * t];
        let mut bias = vec![f32::NEG_INFINITY; b * t * s];
        for (i, (row, chunk)) in self.rows.iter_mut().zip(chunks).enumerate() {
            let pad = t - chunk.len();
            row.slots.resize(used, false);
            row.slots.extend((0..t).map(|j| j >= pad));
            for j in 0..t {
                let line = &mut bias[(i * t + j) * s..(i * t + j + 1) * s];
                if j < pad {
                    // A column of padding sees itself only: no row of the scores may be all −∞.
                    line[used + j] = 0.0;
                    continue;
                }
                tokens[i * t + j] = chunk[j - pad] as i32;
                positions[i * t + j] = row.len + j - pad;
                for (x, &mine) in line[..=used + j].iter_mut().zip(&row.slots) {
                    if mine {
                        *x = 0.0;
                    }
                }
            }
            row.len += chunk.len();
        }
        let tokens = Tensor::<2, Int>::from_data(TensorData::new(tokens, [b, t]), &self.device);
        let bias = Tensor::<4>::from_data(TensorData::new(bias, [b, 1, t, s]), &self.device);
        let hidden = self
            .model
            .extend(tokens, &positions, bias, &mut self.cache, self.frame);
        let [_, _, d] = hidden.dims();
        let last = hidden.slice([0..b, t - 1..t, 0..d]).reshape([b, d]);
        values(self.model.logits(last))
    }
}
