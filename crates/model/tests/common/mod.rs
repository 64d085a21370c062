//! The models in `reference` and what Hugging Face transformers computes with them.

#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rlef_model::{Ask, Cache, Frame, Generator, Llama, LlamaConfig, Sampled, Sampling, weights};
use safetensors::{Dtype, SafeTensors};

/// The tiny models, one of each family.
pub const TINY: [&str; 3] = ["llama3", "qwen2", "qwen3"];

/// The likeliest token every time.
pub const GREEDY: Sampling = Sampling {
    temperature: 0.0,
    top_p: 1.0,
    top_k: 0,
    max_new_tokens: 64,
};

pub fn reference() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference")
}

/// A model with what it needs to be run.
pub struct Loaded {
    pub config: LlamaConfig,
    pub model: Llama,
    pub frame: Frame,
}

impl Loaded {
    pub fn new(config: LlamaConfig, named: weights::Named, origin: &Path) -> Self {
        let device = Device::flex();
        let model = Llama::from_named(named, &config, origin, &device).unwrap();
        let frame = Frame::new(&config, &device);
        Self {
            config,
            model,
            frame,
        }
    }

    pub fn open(dir: &Path) -> Self {
        let config = LlamaConfig::load(dir).unwrap();
        Self::new(config, weights::read_dir(dir).unwrap(), dir)
    }

    /// Logits of every position of `prompts`, which go side by side, filled up at the right.
    pub fn logits(&self, prompts: &[Vec<i32>]) -> Vec<Vec<f32>> {
        let device = Device::flex();
        let (b, d) = (prompts.len(), self.config.hidden_size);
        let t = prompts.iter().map(Vec::len).max().unwrap();
        let padded: Vec<i32> = prompts
            .iter()
            .flat_map(|p| p.iter().copied().chain(std::iter::repeat_n(3, t - p.len())))
            .collect();
        let tokens = Tensor::<2, Int>::from_data(TensorData::new(padded, [b, t]), &device);
        let hidden_btd = self.model.hidden(tokens, &self.frame);
        prompts
            .iter()
            .enumerate()
            .map(|(i, p)| {
                let mine = hidden_btd.clone().slice([i..i + 1, 0..p.len(), 0..d]);
                weights::values(self.model.logits(mine.reshape([p.len(), d]))).unwrap()
            })
            .collect()
    }

    /// Logits of every position of one prompt that is read in pieces of the given sizes, over and over.
    pub fn chunked(&self, prompt: &[i32], sizes: &[usize]) -> Vec<f32> {
        let device = Device::flex();
        let d = self.config.hidden_size;
        let mut cache = Cache::new(self.model.layers.len(), 1, &device);
        let mut out = Vec::new();
        let mut from = 0;
        for &size in sizes.iter().cycle() {
            let t = size.min(prompt.len() - from);
            if t == 0 {
                break;
            }
            let s = from + t;
            let positions: Vec<usize> = (from..s).collect();
            let bias: Vec<f32> = positions
                .iter()
                .flat_map(|&p| (0..s).map(move |q| if q > p { f32::NEG_INFINITY } else { 0.0 }))
                .collect();
            let tokens = TensorData::new(prompt[from..s].to_vec(), [1, t]);
            let hidden = self.model.extend(
                Tensor::<2, Int>::from_data(tokens, &device),
                &positions,
                Tensor::<4>::from_data(TensorData::new(bias, [1, 1, t, s]), &device),
                &mut cache,
                &self.frame,
            );
            let logits = self.model.logits(hidden.reshape([t, d]));
            out.extend(weights::values(logits).unwrap());
            from = s;
        }
        out
    }

    /// Answers to `prompts`, side by side in one batch that is filled up at the left.
    pub fn answers(&self, prompts: &[Vec<i32>], sampling: &Sampling) -> Vec<Sampled> {
        let mut generator = Generator::new(&self.model, &self.frame, prompts.len());
        let tokens: Vec<Vec<u32>> = prompts
            .iter()
            .map(|p| p.iter().map(|&t| t as u32).collect())
            .collect();
        let asks = tokens
            .iter()
            .enumerate()
            .map(|(i, append)| Ask {
                append,
                rng: ChaCha8Rng::seed_from_u64(i as u64),
            })
            .collect();
        generator.turn(asks, sampling, &[]).unwrap()
    }
}

/// A file of numbers.
pub struct Numbers {
    whole: BTreeMap<String, Vec<i32>>,
    real: BTreeMap<String, Vec<f32>>,
    bytes: BTreeMap<String, Vec<u8>>,
}

impl Numbers {
    pub fn open(path: &Path) -> Self {
        let file = std::fs::read(path).unwrap();
        let mut numbers = Self {
            whole: BTreeMap::new(),
            real: BTreeMap::new(),
            bytes: BTreeMap::new(),
        };
        for (name, view) in SafeTensors::deserialize(&file).unwrap().tensors() {
            let words = view.data().as_chunks::<4>().0;
            match view.dtype() {
                Dtype::I32 => {
                    let all = words.iter().map(|b| i32::from_le_bytes(*b)).collect();
                    numbers.whole.insert(name, all);
                }
                Dtype::F32 => {
                    let all = words.iter().map(|b| f32::from_le_bytes(*b)).collect();
                    numbers.real.insert(name, all);
                }
                Dtype::U8 => drop(numbers.bytes.insert(name, view.data().to_vec())),
                other => panic!("{name} is {other:?}"),
            }
        }
        numbers
    }

    pub fn whole(&self, name: &str) -> &[i32] {
        &self.whole[name]
    }

    pub fn real(&self, name: &str) -> &[f32] {
        &self.real[name]
    }

    pub fn bytes(&self, name: &str) -> &[u8] {
        &self.bytes[name]
    }

    /// `name.0`, `name.1` …
    pub fn lists(&self, name: &str) -> Vec<Vec<i32>> {
        (0..)
            .map_while(|i| self.whole.get(&format!("{name}.{i}")).cloned())
            .collect()
    }
}

/// The largest difference.
pub fn gap(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |m, (x, y)| m.max((x - y).abs()))
}

/// Log-probability of every token after the first, from the logits of all positions.
pub fn logprobs(logits: &[f32], tokens: &[i32]) -> Vec<f32> {
    let v = logits.len() / tokens.len();
    logits
        .chunks_exact(v)
        .zip(&tokens[1..])
        .map(|(row, &t)| (f64::from(row[t as usize]) - logsumexp(row)) as f32)
        .collect()
}

pub fn logsumexp(row: &[f32]) -> f64 {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|&x| f64::from(x - max).exp()).sum();
    f64::from(max) + sum.ln()
}
