//! Attention over the cache: keys and values are read where they lie.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

use super::math::{dot, exp_shifted, fma, max};
use super::{Input, numbers, tensor};

/// Heads of a tensor `[b, n, s, e]` whose last dimension is dense, at any strides of the others.
struct Heads<'a> {
    data: &'a [f32],
    offset: usize,
    strides: [usize; 3],
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
        })
    }

    /// The rows of one head, and how far apart they are.
    #[inline(always)]
    fn head(&self, b: usize, n: usize) -> (&'a [f32], usize) {
        let [by, ny, sy] = self.strides;
        (&self.data[self.offset + b * by + n * ny..], sy)
    }
}

/// `W` columns, from `from` on, of the sum over the rows of weight times row; gives the first column not done.
#[inline(always)]
fn columns<const W: usize>(
    weights: &[f32],
    (rows, stride): (&[f32], usize),
    factor: f32,
    from: usize,
    out: &mut [f32],
) -> usize {
    let mut from = from;
    while from + W <= out.len() {
        let mut sum = [0.0f32; W];
        for (slot, &w) in weights.iter().enumerate() {
            // Most slots of a short row are holes.
            if w != 0.0 {
                let row = &rows[slot * stride + from..][..W];
                for x in 0..W {
                    sum[x] = fma(w, row[x], sum[x]);
                }
            }
        }
        for (o, s) in out[from..from + W].iter_mut().zip(sum) {
            *o = s * factor;
        }
        from += W;
    }
    from
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
            let (queries, query_stride) = q.head(row, head);
            let (keys, key_stride) = k.head(row, head / group);
            let values = v.head(row, head / group);
            for step in 0..t {
                let from = (if bias_rows == 1 { 0 } else { row } * t + step) * s;
                let bias = &bias[from..from + s];
                let query = &queries[step * query_stride..][..e];
                for (slot, (w, &bias)) in weights.iter_mut().zip(bias).enumerate() {
                    *w = if bias == f32::NEG_INFINITY {
                        bias
                    } else {
                        dot(query, &keys[slot * key_stride..][..e]) * scale + bias
                    };
                }
                let largest = max(&weights);
                let factor = 1.0 / exp_shifted(&mut weights, largest);
                let to = ((row * t + step) * h + head) * e;
                let out = &mut out[to..to + e];
                let done = columns::<32>(&weights, values, factor, 0, out);
                let done = columns::<8>(&weights, values, factor, done, out);
                columns::<1>(&weights, values, factor, done, out);
            }
        }
    }
    Some(Tensor::from_primitive::<Flex>(tensor(out, [b, t, h * e])))
}
