//! Attention over the cache: keys and values are read where they lie.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

use super::math::{add_scaled, dot, exp_shifted, max};
use super::{Input, numbers, tensor};

/// Heads of a tensor `[b, n, s, e]` whose last dimension is dense, at any strides of the others.
struct Heads<'a> {
    data: &'a [f32],
    offset: usize,
    strides: [usize; 3],
    width: usize,
}

impl<'a> Heads<'a> {
    fn new(t: &'a FlexTensor) -> Option<Self> {
        let layout = t.layout();
        let strides: Vec<usize> = layout
            .strides()
            .iter()
            .map(|&s| usize::try_from(s).ok())
            .collect::<Option<_>>()?;
        let &[b, n, s, 1] = strides.as_slice() else {
            return None;
        };
        Some(Self {
            data: t.storage(),
            offset: layout.start_offset(),
            strides: [b, n, s],
            width: layout.shape()[3],
        })
    }

    #[inline(always)]
    fn row(&self, b: usize, n: usize, s: usize) -> &'a [f32] {
        let [by, ny, sy] = self.strides;
        &self.data[self.offset + b * by + n * ny + s * sy..][..self.width]
    }
}

/// Keeps a view whose last dimension is dense; copies any other.
fn readable(t: &Tensor<4>) -> Option<FlexTensor> {
    let t = t.plain()?;
    Some(if Heads::new(&t).is_some() {
        t
    } else {
        t.to_contiguous()
    })
}

/// See [`crate::ops::attend`]; without gradients.
pub(crate) fn attend(
    q: &Tensor<4>,
    k: &Tensor<4>,
    v: &Tensor<4>,
    bias: &Tensor<4>,
    kv_heads: usize,
    scale: f32,
) -> Option<Tensor<3>> {
    let [b, h, t, e] = q.dims();
    let s = k.dims()[2];
    let [bias_rows, one, bias_t, bias_s] = bias.dims();
    let fits = kv_heads > 0
        && h % kv_heads == 0
        && k.dims() == [b, kv_heads, s, e]
        && v.dims() == k.dims()
        && [one, bias_t, bias_s] == [1, t, s]
        && (bias_rows == b || bias_rows == 1);
    if !fits || b * h * t * e * s == 0 {
        return None;
    }
    let (q, k, v) = (readable(q)?, readable(k)?, readable(v)?);
    let bias = bias.plain()?.to_contiguous();
    let bias = numbers(&bias);
    let (q, k, v) = (Heads::new(&q)?, Heads::new(&k)?, Heads::new(&v)?);
    let group = h / kv_heads;
    let mut out = vec![0.0f32; b * t * h * e];
    let mut weights = vec![0.0f32; s];
    for row in 0..b {
        for head in 0..h {
            for step in 0..t {
                let from = (if bias_rows == 1 { 0 } else { row } * t + step) * s;
                let bias = &bias[from..from + s];
                let query = q.row(row, head, step);
                for (slot, (w, &bias)) in weights.iter_mut().zip(bias).enumerate() {
                    // Most slots of a short row are holes.
                    *w = if bias == f32::NEG_INFINITY {
                        bias
                    } else {
                        dot(query, k.row(row, head / group, slot)) * scale + bias
                    };
                }
                let largest = max(&weights);
                let factor = 1.0 / exp_shifted(&mut weights, largest);
                let to = ((row * t + step) * h + head) * e;
                let out = &mut out[to..to + e];
                for (slot, &w) in weights.iter().enumerate() {
                    if w != 0.0 {
                        add_scaled(out, w * factor, v.row(row, head / group, slot));
                    }
                }
            }
        }
    }
    Some(Tensor::from_primitive::<Flex>(tensor(out, [b, t, h * e])))
}
