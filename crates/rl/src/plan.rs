//! What training holds in memory, told before anything is loaded.
//!
//! Counts what this implementation keeps: weights, gradients and averages in f32 on one device, one gradient a thread,
//! and for every token of an update what the operations keep for their steps back. Tests hold it against what an update
//! asks the allocator for. Not here: the program itself, its libraries and the sandbox (some 60 MB).

use rlef_model::LlamaConfig;

use crate::config::{TrainConfig, ValueKind};

/// Bytes of a number.
const F32: u64 = 4;

/// What is trained.
#[derive(Debug, Clone)]
pub struct Networks<'a> {
    /// The policy's shape.
    pub shape: &'a LlamaConfig,
    /// Where the value comes from; a network of its own is as large as the policy.
    pub value: ValueKind,
    /// Threads that compute gradients, each its own.
    pub shards: usize,
}

/// What goes through the networks at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Dialogs in one update.
    pub update_rows: usize,
    /// Dialogs that decode at once, over all threads.
    pub decode_rows: usize,
    /// Tokens of a dialog, the longest.
    pub length: usize,
    /// Answer tokens of a dialog.
    pub answers: usize,
}

impl Workload {
    /// That of a training run whose dialogs have `length` tokens.
    pub fn new(config: &TrainConfig, length: usize) -> Self {
        let rollouts = config.rollout.problems * config.rollout.per_problem;
        let at_once = config.rollout.batch.saturating_mul(config.workers.max(1));
        Self {
            update_rows: rollouts.div_ceil(config.ppo.minibatches.max(1)),
            decode_rows: rollouts.min(at_once),
            length,
            answers: (config.episode.max_turns * config.rollout.max_new_tokens).min(length),
        }
    }
}

/// Bytes, by what they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The weights of the policy, and of a value network of its own.
    pub weights: u64,
    /// The policy as it was at the start, which the KL penalty and the comparison at the end need.
    pub reference: u64,
    /// AdamW's two averages.
    pub optimiser: u64,
    /// Gradients of all threads, at the end of a backward pass.
    pub gradients: u64,
    /// What the operations keep for their steps back, at the end of a forward pass.
    pub activations: u64,
    /// Logits of the answer tokens and their gradients.
    pub logits: u64,
    /// Keys and values while answers are sampled.
    pub cache: u64,
}

impl Memory {
    /// What training `networks` under `load` holds.
    pub fn new(networks: &Networks, load: Workload) -> Self {
        let shape = networks.shape;
        let copies = match networks.value {
            ValueKind::Head => 1,
            ValueKind::Separate => 2,
        };
        let weights = F32 * shape.num_params() as u64;
        let (d, v) = (shape.hidden_size as u64, shape.vocab_size as u64);
        let shards = networks.shards.clamp(1, load.update_rows.max(1)) as u64;
        // The two gradients of a tied table, that of the output layer and that of the embedding, and their sum are
        // there together; where it is not tied, the embedding's alone is made beside its place.
        let table = F32 * d * v * if shape.tie_word_embeddings { 2 } else { 1 };
        let tokens = (load.update_rows * load.length) as u64;
        let keys = (shape.kv_heads() * shape.head_size()) as u64;
        let slots = (load.decode_rows * load.length) as u64;
        Self {
            weights: copies * weights,
            reference: weights,
            optimiser: 2 * copies * weights,
            gradients: shards * (copies * weights + table),
            activations: copies * F32 * tokens * kept(shape),
            logits: 2 * F32 * v * (load.update_rows * load.answers) as u64,
            cache: 2 * F32 * keys * shape.num_hidden_layers as u64 * slots,
        }
    }

    /// What is there all the time.
    pub fn standing(&self) -> u64 {
        self.weights + self.reference + self.optimiser
    }

    /// The most that is there at once. In a backward pass activations go as gradients come, so the larger of the two
    /// counts; answers are sampled when neither is there.
    pub fn peak(&self) -> u64 {
        let update = self.gradients.max(self.activations + self.logits);
        // The next weights are made before the last ones go.
        self.standing() + update.max(self.cache).max(2 * self.weights)
    }
}

/// Numbers that a token leaves behind in a forward pass for the backward pass.
fn kept(shape: &LlamaConfig) -> u64 {
    let (d, f) = (shape.hidden_size, shape.intermediate_size);
    let q = shape.num_attention_heads * shape.head_size();
    let k = shape.kv_heads() * shape.head_size();
    // The stream before each norm and after it; queries, keys, values and what they come to; gate, up and their product.
    let mut layer = 4 * d + 2 * q + 2 * k + 3 * f;
    if shape.family().qk_norm() {
        layer += q + k;
    }
    (shape.num_hidden_layers * layer + 2 * d) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> LlamaConfig {
        LlamaConfig::parse(text.as_bytes(), "config.json".as_ref()).unwrap()
    }

    /// 2 layers, width 4, 1 head of width 4, feed-forward width 6, 10 tokens: 40 + 2·(64 + 72 + 8) + 4 = 332 weights.
    #[test]
    fn numbers_by_hand() {
        let shape = shape(
            r#"{"vocab_size": 10, "hidden_size": 4, "intermediate_size": 6, "num_hidden_layers": 2,
                "num_attention_heads": 1, "num_key_value_heads": 1, "max_position_embeddings": 64,
                "tie_word_embeddings": true}"#,
        );
        assert_eq!(shape.num_params(), 332);
        let networks = Networks {
            shape: &shape,
            value: ValueKind::Head,
            shards: 2,
        };
        let load = Workload {
            update_rows: 3,
            decode_rows: 5,
            length: 7,
            answers: 2,
        };
        let memory = Memory::new(&networks, load);
        assert_eq!(
            memory,
            Memory {
                weights: 1328,
                reference: 1328,
                optimiser: 2656,
                gradients: 2 * (1328 + 320),
                // A layer: 16 + 8 + 8 + 18 = 50 numbers; 2·50 + 8 = 108 a token.
                activations: 4 * 21 * 108,
                logits: 2 * 4 * 10 * 6,
                cache: 2 * 4 * 4 * 2 * 35,
            }
        );
        assert_eq!(memory.peak(), 1328 + 1328 + 2656 + 9072 + 480);
        let separate = Memory::new(
            &Networks {
                value: ValueKind::Separate,
                ..networks
            },
            load,
        );
        assert_eq!(separate.standing(), 7 * 1328);
    }
}
