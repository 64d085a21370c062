//! The operations in the backend's own, on any device, with gradients by the backend.

use burn::tensor::activation::{log_softmax, silu, softmax};
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::{AttentionShape, Rope};

/// `x · w` over the last dimension; `w` is `[in, out]`.
pub fn linear(x_btd: Tensor<3>, w: Tensor<2>) -> Tensor<3> {
    let [b, t, d] = x_btd.dims();
    let out = w.dims()[1];
    x_btd.reshape([b * t, d]).matmul(w).reshape([b, t, out])
}

/// Root mean square norm: `x / √(mean(x²) + eps) · w` over the last dimension.
pub fn rms_norm(x_btd: Tensor<3>, w_d: Tensor<1>, eps: f64) -> Tensor<3> {
    let mean_square = x_btd.clone().square().mean_dim(2);
    let scaled = x_btd / mean_square.add_scalar(eps).sqrt();
    scaled * w_d.unsqueeze()
}

/// `silu(gate) · up`.
pub fn swiglu(gate: Tensor<3>, up: Tensor<3>) -> Tensor<3> {
    silu(gate) * up
}

/// Causal self-attention over whole sequences from position 0: rotates, attends, `[b, t, h·e]`.
///
/// `q` is `[b, t, h·e]`, `k` and `v` are `[b, t, k·e]`.
pub fn attention(
    q: Tensor<3>,
    k: Tensor<3>,
    v: Tensor<3>,
    shape: AttentionShape,
    rope: &Rope,
) -> Tensor<3> {
    let [b, t, _] = q.dims();
    let rope = rope.first(t);
    let q_bhte = rotate(&rope, q, shape.head_size);
    let k_bkte = rotate(&rope, k, shape.head_size);
    let v_bkte = v
        .reshape([b, t, shape.kv_heads, shape.head_size])
        .swap_dims(1, 2);
    let bias = causal_bias(t, &q_bhte.device());
    attend(q_bhte, k_bkte, v_bkte, bias, shape)
}

/// Scaled dot-product attention of rotated queries `[b, h, t, e]` over rotated keys and values `[b, k, s, e]`,
/// with `bias` added to the scores; gives `[b, t, h·e]`.
pub fn attend(
    q_bhte: Tensor<4>,
    k_bkse: Tensor<4>,
    v_bkse: Tensor<4>,
    bias_b1ts: Tensor<4>,
    shape: AttentionShape,
) -> Tensor<3> {
    let [b, h, t, e] = q_bhte.dims();
    let s = k_bkse.dims()[2];
    let (k, group) = (shape.kv_heads, h / shape.kv_heads);
    // Query heads of one group become rows of one product with their shared keys.
    let q = q_bhte.reshape([b, k, group * t, e]);
    let scores = q.matmul(k_bkse.transpose()).mul_scalar(shape.scale());
    let scores = scores.reshape([b, k * group, t, s]) + bias_b1ts;
    let weights = softmax(scores, 3).reshape([b, k, group * t, s]);
    let out = weights.matmul(v_bkse).reshape([b, h, t, e]);
    out.swap_dims(1, 2).reshape([b, t, h * e])
}

/// `[1, 1, t, t]`: 0 on and below the diagonal, −∞ above.
fn causal_bias(t: usize, device: &Device) -> Tensor<4> {
    let values: Vec<f32> = (0..t * t)
        .map(|i| {
            if i % t > i / t {
                f32::NEG_INFINITY
            } else {
                0.0
            }
        })
        .collect();
    Tensor::from_data(TensorData::new(values, [1, 1, t, t]), device)
}

/// Log-probability of `targets[n]` under row n of `logits_nv`, and the entropy of the row: `[n]` each.
pub fn pick_logprobs(logits_nv: Tensor<2>, targets_n: Tensor<1, Int>) -> (Tensor<1>, Tensor<1>) {
    let n = targets_n.dims()[0];
    let logprobs_nv = log_softmax(logits_nv, 1);
    let picked_n = logprobs_nv
        .clone()
        .gather(1, targets_n.reshape([n, 1]))
        .reshape([n]);
    let entropy_n = (logprobs_nv.clone().exp() * logprobs_nv)
        .sum_dim(1)
        .neg()
        .reshape([n]);
    (picked_n, entropy_n)
}

/// [`Rope::rotate`].
pub fn rotate(rope: &Rope, x: Tensor<3>, head_size: usize) -> Tensor<4> {
    let [b, t, width] = x.dims();
    let (n, half) = (width / head_size, head_size / 2);
    let [rows, steps] = rope.rows.unwrap_or([1, t]);
    let shape = [rows, 1, steps, half];
    let (cos, sin) = (
        rope.cos.clone().reshape(shape),
        rope.sin.clone().reshape(shape),
    );
    let x = x.reshape([b, t, n, head_size]).swap_dims(1, 2);
    let low = x.clone().slice([0..b, 0..n, 0..t, 0..half]);
    let high = x.slice([0..b, 0..n, 0..t, half..head_size]);
    Tensor::cat(
        vec![
            low.clone() * cos.clone() - high.clone() * sin.clone(),
            high * cos + low * sin,
        ],
        3,
    )
}
