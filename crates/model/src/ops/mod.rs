//! The operations of the network, each one function.
//!
//! Where the tensors are 32-bit floats on the CPU, a fused operation with a backward pass of its own (`cpu`) does
//! the work; everywhere else, and for shapes that it does not know, the operations of [`generic`].

mod cpu;
pub mod generic;

use std::sync::atomic::{AtomicBool, Ordering};

use burn::tensor::{Device, Int, Tensor, TensorData};

/// Whether fused operations may be used.
static FUSED: AtomicBool = AtomicBool::new(true);

/// Switches the fused operations off or on, for the whole process: to measure what they are worth, or to find out
/// whether a result comes from them. They are on at the start.
pub fn set_fused(on: bool) {
    FUSED.store(on, Ordering::Relaxed);
}

/// The fused operation's result, if there is one.
fn fused<T>(f: impl FnOnce() -> Option<T>) -> Option<T> {
    FUSED.load(Ordering::Relaxed).then(f).flatten()
}

/// Heads and their width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionShape {
    /// Query heads.
    pub heads: usize,
    /// Key/value heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_size: usize,
}

impl AttentionShape {
    /// Factor on the scores, 1/√e.
    pub fn scale(&self) -> f64 {
        1.0 / (self.head_size as f64).sqrt()
    }
}

/// `x · w` over the last dimension; `w` is `[in, out]`.
pub fn linear(x_btd: Tensor<3>, w: Tensor<2>) -> Tensor<3> {
    generic::linear(x_btd, w)
}

/// Root mean square norm: `x / √(mean(x²) + eps) · w` over the last dimension.
pub fn rms_norm(x_btd: Tensor<3>, w_d: Tensor<1>, eps: f64) -> Tensor<3> {
    fused(|| cpu::rms_norm(&x_btd, &w_d, eps)).unwrap_or_else(|| generic::rms_norm(x_btd, w_d, eps))
}

/// `silu(gate) · up`.
pub fn swiglu(gate: Tensor<3>, up: Tensor<3>) -> Tensor<3> {
    fused(|| cpu::swiglu(&gate, &up)).unwrap_or_else(|| generic::swiglu(gate, up))
}

/// Causal self-attention over whole sequences from position 0: rotates, attends, `[b, t, h·e]`.
///
/// `q` is `[b, t, h·e]`, `k` and `v` are `[b, t, k·e]`; `rope` is the table of all positions ([`Rope::new`]).
pub fn attention(
    q: Tensor<3>,
    k: Tensor<3>,
    v: Tensor<3>,
    shape: AttentionShape,
    rope: &Rope,
) -> Tensor<3> {
    let table = rope.rows.is_none().then_some(rope);
    fused(|| table.and_then(|r| cpu::attention(&q, &k, &v, shape, &r.cos, &r.sin)))
        .unwrap_or_else(|| generic::attention(q, k, v, shape, rope))
}

/// Scaled dot-product attention of rotated queries `[b, h, t, e]` over rotated keys and values `[b, k, s, e]`,
/// with `bias` added to the scores; gives `[b, t, h·e]`.
///
/// The bias is `[b, 1, t, s]` or `[1, 1, t, s]`. On the CPU without gradients, keys and values that are views of a
/// larger cache are read where they lie.
pub fn attend(
    q_bhte: Tensor<4>,
    k_bkse: Tensor<4>,
    v_bkse: Tensor<4>,
    bias_b1ts: Tensor<4>,
    shape: AttentionShape,
) -> Tensor<3> {
    let scale = shape.scale() as f32;
    fused(|| cpu::attend(&q_bhte, &k_bkse, &v_bkse, &bias_b1ts, shape.kv_heads, scale))
        .unwrap_or_else(|| generic::attend(q_bhte, k_bkse, v_bkse, bias_b1ts, shape))
}

/// Log-probability of `targets[n]` under row n of `logits_nv`, and the entropy of the row in nats: `[n]` each, both
/// with gradients.
pub fn pick_logprobs(logits_nv: Tensor<2>, targets_n: Tensor<1, Int>) -> (Tensor<1>, Tensor<1>) {
    fused(|| cpu::pick_logprobs(&logits_nv, &targets_n))
        .unwrap_or_else(|| generic::pick_logprobs(logits_nv, targets_n))
}

/// Cosines and sines of the rotary positions, `[p, e/2]` each.
#[derive(Debug, Clone)]
pub struct Rope {
    cos: Tensor<2>,
    sin: Tensor<2>,
    /// Rows (b) and positions a row (t) after [`Rope::at`]; `None` when shared by all rows.
    rows: Option<[usize; 2]>,
}

impl Rope {
    /// The table for positions `0..positions`.
    pub fn new(frequencies: &[f64], positions: usize, device: &Device) -> Self {
        let half = frequencies.len();
        let table = |f: fn(f64) -> f64| {
            let values: Vec<f32> = (0..positions)
                .flat_map(|p| frequencies.iter().map(move |w| f(p as f64 * w) as f32))
                .collect();
            Tensor::from_data(TensorData::new(values, [positions, half]), device)
        };
        Self {
            cos: table(f64::cos),
            sin: table(f64::sin),
            rows: None,
        }
    }

    /// The table of positions `0..t`.
    pub fn first(&self, t: usize) -> Self {
        let half = self.cos.dims()[1];
        Self {
            cos: self.cos.clone().slice([0..t, 0..half]),
            sin: self.sin.clone().slice([0..t, 0..half]),
            rows: None,
        }
    }

    /// The table of the given positions, `t` to a row.
    pub fn at(&self, positions: &[usize], t: usize) -> Self {
        let index: Vec<i32> = positions.iter().map(|&p| p as i32).collect();
        let index = Tensor::<1, Int>::from_data(index.as_slice(), &self.cos.device());
        Self {
            cos: self.cos.clone().select(0, index.clone()),
            sin: self.sin.clone().select(0, index),
            rows: Some([positions.len() / t, t]),
        }
    }

    /// Rotates `x`, `[b, t, n·e]`, into `[b, n, t, e]`: component i with component i + e/2 (Hugging Face's pairing).
    pub fn rotate(&self, x: Tensor<3>, head_size: usize) -> Tensor<4> {
        fused(|| cpu::rotate(&x, &self.cos, &self.sin, head_size, self.rows.is_some()))
            .unwrap_or_else(|| generic::rotate(self, x, head_size))
    }
}
