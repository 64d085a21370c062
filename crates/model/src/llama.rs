//! The network of the Llama family, laid out and named as Hugging Face lays out and names its weights. Families differ in
//! what is there: biases on q, k and v (Qwen2), norms on the heads of q and k (Qwen3).
//!
//! `x_btd` means a tensor of shape batch × time × width, and so on: b batch, t new positions, s all positions
//! seen, d width, f feed-forward width, h query heads, k key/value heads, e width of a head, v vocabulary.
//! Linear weights are stored `[in, out]`, the transpose of the file's `[out, in]`.
//! Not here: sampling (`generate.rs`), files (`weights.rs`), the operations themselves (`ops`).

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::cache::Cache;
use crate::config::LlamaConfig;
use crate::ops::{self, AttentionShape, Rope};

/// The network without any head but the output layer.
#[derive(Module, Debug)]
pub struct Llama {
    /// `model.embed_tokens.weight`, `[v, d]`.
    pub embed_tokens: Param<Tensor<2>>,
    /// `model.layers.*`.
    pub layers: Vec<Block>,
    /// `model.norm.weight`, `[d]`.
    pub norm: Param<Tensor<1>>,
    /// `lm_head.weight` transposed, `[d, v]`; absent when tied to the embedding.
    pub lm_head: Option<Param<Tensor<2>>>,
}

/// One block: attention and gated feed-forward, each behind a norm and added to the stream.
#[derive(Module, Debug)]
pub struct Block {
    /// `input_layernorm.weight`, `[d]`.
    pub input_layernorm: Param<Tensor<1>>,
    /// `self_attn.q_proj.weight` transposed, `[d, h·e]`.
    pub q_proj: Param<Tensor<2>>,
    /// `self_attn.k_proj.weight` transposed, `[d, k·e]`.
    pub k_proj: Param<Tensor<2>>,
    /// `self_attn.v_proj.weight` transposed, `[d, k·e]`.
    pub v_proj: Param<Tensor<2>>,
    /// `self_attn.o_proj.weight` transposed, `[h·e, d]`.
    pub o_proj: Param<Tensor<2>>,
    /// `self_attn.q_proj.bias`, `[h·e]`, where the family has biases on q, k and v.
    pub q_bias: Option<Param<Tensor<1>>>,
    /// `self_attn.k_proj.bias`, `[k·e]`.
    pub k_bias: Option<Param<Tensor<1>>>,
    /// `self_attn.v_proj.bias`, `[k·e]`.
    pub v_bias: Option<Param<Tensor<1>>>,
    /// `self_attn.q_norm.weight`, `[e]`, where the family normalises each head of q and k.
    pub q_norm: Option<Param<Tensor<1>>>,
    /// `self_attn.k_norm.weight`, `[e]`.
    pub k_norm: Option<Param<Tensor<1>>>,
    /// `post_attention_layernorm.weight`, `[d]`.
    pub post_attention_layernorm: Param<Tensor<1>>,
    /// `mlp.gate_proj.weight` transposed, `[d, f]`.
    pub gate_proj: Param<Tensor<2>>,
    /// `mlp.up_proj.weight` transposed, `[d, f]`.
    pub up_proj: Param<Tensor<2>>,
    /// `mlp.down_proj.weight` transposed, `[f, d]`.
    pub down_proj: Param<Tensor<2>>,
}

/// What is constant beside the weights: shapes and the rotary table.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The configuration.
    pub config: LlamaConfig,
    /// Heads and their width.
    pub shape: AttentionShape,
    /// Rotary table, for positions below `config.max_position_embeddings`.
    pub rope: Rope,
}

impl Frame {
    /// Tables for `config` on `device`.
    pub fn new(config: &LlamaConfig, device: &Device) -> Self {
        let shape = AttentionShape {
            heads: config.num_attention_heads,
            kv_heads: config.kv_heads(),
            head_size: config.head_size(),
        };
        let rope = Rope::new(
            &config.rope_frequencies(),
            config.max_position_embeddings,
            device,
        );
        Self {
            config: config.clone(),
            shape,
            rope,
        }
    }
}

impl Llama {
    /// Fresh weights: normal with `config.initializer_range`, output projections scaled down by √(2·layers)
    /// (GPT-2's rule), norms at one, biases at zero. The same seed gives the same weights on every device.
    pub fn random(config: &LlamaConfig, seed: u64, device: &Device) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut matrix = |rows: usize, cols: usize, std: f64| {
            let values: Vec<f32> = (0..rows * cols)
                .map(|_| (normal(&mut rng) * std) as f32)
                .collect();
            Param::from_tensor(Tensor::<2>::from_data(
                TensorData::new(values, [rows, cols]),
                device,
            ))
        };
        let (d, f, e) = (
            config.hidden_size,
            config.intermediate_size,
            config.head_size(),
        );
        let (qe, ke) = (config.num_attention_heads * e, config.kv_heads() * e);
        let std = config.initializer_range;
        let std_out = std / (2.0 * config.num_hidden_layers as f64).sqrt();
        let filled = |n: usize, x: f32| Param::from_tensor(Tensor::<1>::full([n], x, device));
        let ones = || filled(d, 1.0);
        let family = config.family();
        let bias = |n: usize| family.qkv_bias().then(|| filled(n, 0.0));
        let head_norm = || family.qk_norm().then(|| filled(e, 1.0));
        let embed_tokens = matrix(config.vocab_size, d, std);
        let layers = (0..config.num_hidden_layers)
            .map(|_| Block {
                input_layernorm: ones(),
                q_proj: matrix(d, qe, std),
                k_proj: matrix(d, ke, std),
                v_proj: matrix(d, ke, std),
                o_proj: matrix(qe, d, std_out),
                q_bias: bias(qe),
                k_bias: bias(ke),
                v_bias: bias(ke),
                q_norm: head_norm(),
                k_norm: head_norm(),
                post_attention_layernorm: ones(),
                gate_proj: matrix(d, f, std),
                up_proj: matrix(d, f, std),
                down_proj: matrix(f, d, std_out),
            })
            .collect();
        let lm_head = (!config.tie_word_embeddings).then(|| matrix(d, config.vocab_size, std));
        Self {
            embed_tokens,
            layers,
            norm: ones(),
            lm_head,
        }
    }

    /// The stream after the final norm, `[b, t, d]`, for whole sequences that start at position 0.
    ///
    /// Sequences are padded at the right with any token: no position sees a later one, so padding changes
    /// nothing before it.
    pub fn hidden(&self, tokens_bt: Tensor<2, Int>, frame: &Frame) -> Tensor<3> {
        let mut x_btd = self.embed(tokens_bt);
        for block in &self.layers {
            x_btd = block.forward(x_btd, frame);
        }
        ops::rms_norm(x_btd, self.norm.val(), frame.config.rms_norm_eps)
    }

    /// The stream after the final norm, `[b, t, d]`, for new tokens after those in `cache`, which grows by them.
    ///
    /// `positions` holds each new token's position, row by row, b·t of them; `bias_bts` is 0 where a new token
    /// may look and −∞ where not, `[b, 1, t, s]` with s counting the new tokens.
    pub fn extend(
        &self,
        tokens_bt: Tensor<2, Int>,
        positions: &[usize],
        bias_b1ts: Tensor<4>,
        cache: &mut Cache,
        frame: &Frame,
    ) -> Tensor<3> {
        let [_, t] = tokens_bt.dims();
        let rope = frame.rope.at(positions, t);
        let mut x_btd = self.embed(tokens_bt);
        for (i, block) in self.layers.iter().enumerate() {
            x_btd = block.extend(x_btd, &rope, bias_b1ts.clone(), i, cache, frame);
        }
        cache.advance(t);
        ops::rms_norm(x_btd, self.norm.val(), frame.config.rms_norm_eps)
    }

    /// Logits `[n, v]` of the positions whose stream `[n, d]` is given. Callers pick positions first: over a
    /// large vocabulary this is the largest tensor by far.
    pub fn logits(&self, hidden_nd: Tensor<2>) -> Tensor<2> {
        match &self.lm_head {
            Some(head) => hidden_nd.matmul(head.val()),
            None => hidden_nd.matmul(self.embed_tokens.val().transpose()),
        }
    }

    fn embed(&self, tokens_bt: Tensor<2, Int>) -> Tensor<3> {
        let [b, t] = tokens_bt.dims();
        let table = self.embed_tokens.val();
        let d = table.dims()[1];
        table
            .select(0, tokens_bt.reshape([b * t]))
            .reshape([b, t, d])
    }
}

impl Block {
    fn forward(&self, x_btd: Tensor<3>, frame: &Frame) -> Tensor<3> {
        let eps = frame.config.rms_norm_eps;
        let h_btd = ops::rms_norm(x_btd.clone(), self.input_layernorm.val(), eps);
        let (q, k, v) = self.qkv(h_btd, frame);
        let a_btd = ops::attention(q, k, v, frame.shape, &frame.rope);
        let x_btd = x_btd + ops::linear(a_btd, self.o_proj.val());
        self.feed_forward(x_btd, eps)
    }

    fn extend(
        &self,
        x_btd: Tensor<3>,
        rope: &Rope,
        bias_b1ts: Tensor<4>,
        layer: usize,
        cache: &mut Cache,
        frame: &Frame,
    ) -> Tensor<3> {
        let eps = frame.config.rms_norm_eps;
        let h_btd = ops::rms_norm(x_btd.clone(), self.input_layernorm.val(), eps);
        let (q, k, v) = self.qkv(h_btd, frame);
        let (k_bkse, v_bkse) =
            cache.append(layer, rope.rotate(k, frame.shape.head_size), v, frame.shape);
        let q_bhte = rope.rotate(q, frame.shape.head_size);
        let a_btd = ops::attend(q_bhte, k_bkse, v_bkse, bias_b1ts, frame.shape);
        let x_btd = x_btd + ops::linear(a_btd, self.o_proj.val());
        self.feed_forward(x_btd, eps)
    }

    /// Queries `[b, t, h·e]`, keys and values `[b, t, k·e]` of the normalised stream, before they are rotated.
    fn qkv(&self, h_btd: Tensor<3>, frame: &Frame) -> (Tensor<3>, Tensor<3>, Tensor<3>) {
        let part = |w: &Param<Tensor<2>>, bias: &Option<Param<Tensor<1>>>| {
            let out = ops::linear(h_btd.clone(), w.val());
            match bias {
                Some(bias) => out + bias.val().unsqueeze(),
                None => out,
            }
        };
        let norm = |x: Tensor<3>, w: &Option<Param<Tensor<1>>>| match w {
            Some(w) => {
                let ([b, t, width], e) = (x.dims(), frame.shape.head_size);
                let heads = x.reshape([b, t * width / e, e]);
                ops::rms_norm(heads, w.val(), frame.config.rms_norm_eps).reshape([b, t, width])
            }
            None => x,
        };
        (
            norm(part(&self.q_proj, &self.q_bias), &self.q_norm),
            norm(part(&self.k_proj, &self.k_bias), &self.k_norm),
            part(&self.v_proj, &self.v_bias),
        )
    }

    fn feed_forward(&self, x_btd: Tensor<3>, eps: f64) -> Tensor<3> {
        let h_btd = ops::rms_norm(x_btd.clone(), self.post_attention_layernorm.val(), eps);
        let gate = ops::linear(h_btd.clone(), self.gate_proj.val());
        let up = ops::linear(h_btd, self.up_proj.val());
        x_btd + ops::linear(ops::swiglu(gate, up), self.down_proj.val())
    }
}

/// One number from the standard normal distribution (Box–Muller).
pub(crate) fn normal(rng: &mut impl Rng) -> f64 {
    let u: f64 = 1.0 - rng.random::<f64>();
    let v: f64 = rng.random();
    (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
}
