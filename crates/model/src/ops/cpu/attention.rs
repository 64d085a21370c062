//! Rotary positions and causal attention over whole sequences in one operation.
//!
//! A row of the batch and a key/value head at a time: keys and values are rotated and laid out once, then the query
//! heads that share them go through in tiles of [`TILE`] positions. The weights of a tile are made, used and
//! forgotten; only the logarithm of each softmax's sum is kept, from which the step back makes them again.

use std::sync::Arc;

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops};
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

use super::blocks::{Rows, add_columns_times, rows_times};
use super::math::{LANES, dot, exp, exp_shifted, max};
use super::rotate::{turn, turn_back};
use super::{constant, inputs, numbers, output, tensor};
use crate::ops::AttentionShape;

/// Query positions handled together; a multiple of every block size.
const TILE: usize = 32;

/// Sizes of a call.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    /// Rows of the batch.
    b: usize,
    /// Positions.
    t: usize,
    /// Query heads.
    h: usize,
    /// Key/value heads.
    k: usize,
    /// Width of a head.
    e: usize,
}

impl Sizes {
    /// Positions and head width, rounded up to whole blocks.
    fn padded(&self, block: usize) -> (usize, usize) {
        (
            self.t.next_multiple_of(block),
            self.e.next_multiple_of(block),
        )
    }

    fn scale(&self) -> f32 {
        1.0 / (self.e as f32).sqrt()
    }

    /// Where head `head` of `heads` of position `i` in row `row` lies in `[b, t, heads·e]`.
    #[inline(always)]
    fn place(&self, row: usize, i: usize, heads: usize, head: usize) -> std::ops::Range<usize> {
        let from = ((row * self.t + i) * heads + head) * self.e;
        from..from + self.e
    }
}

/// What both directions read.
#[derive(Clone, Copy)]
struct Read<'a> {
    q: &'a [f32],
    k: &'a [f32],
    v: &'a [f32],
    cos: &'a [f32],
    sin: &'a [f32],
    sizes: Sizes,
}

impl<'a> Read<'a> {
    #[inline(always)]
    fn tables(&self, i: usize) -> (&'a [f32], &'a [f32]) {
        let half = self.sizes.e / 2;
        (&self.cos[i * half..][..half], &self.sin[i * half..][..half])
    }
}

pub(crate) fn attention(
    q: &Tensor<3>,
    k: &Tensor<3>,
    v: &Tensor<3>,
    shape: AttentionShape,
    cos: &Tensor<2>,
    sin: &Tensor<2>,
) -> Option<Tensor<3>> {
    let [b, t, width] = q.dims();
    let sizes = Sizes {
        b,
        t,
        h: shape.heads,
        k: shape.kv_heads,
        e: shape.head_size,
    };
    let [positions, half] = cos.dims();
    let fits = b * t * width > 0
        && sizes.k > 0
        && sizes.h.is_multiple_of(sizes.k)
        && width == sizes.h * sizes.e
        && k.dims() == [b, t, sizes.k * sizes.e]
        && v.dims() == k.dims()
        && sin.dims() == cos.dims()
        && sizes.e == 2 * half
        && positions >= t;
    if !fits {
        return None;
    }
    let (cos, sin) = (constant(cos)?, constant(sin)?);
    let inputs = inputs([q, k, v])?;
    let [q, k, v] = inputs.dense();
    let mut out = vec![0.0f32; b * t * width];
    let mut logsums = vec![0.0f32; b * sizes.h * t];
    let read = Read {
        q: numbers(&q),
        k: numbers(&k),
        v: numbers(&v),
        cos: numbers(&cos),
        sin: numbers(&sin),
        sizes,
    };
    forward(read, &mut out, &mut logsums);
    let out = tensor(out, [b, t, width]);
    Some(output(Attention, inputs, out, || State {
        q,
        k,
        v,
        cos,
        sin,
        logsums: logsums.into(),
        sizes,
    }))
}

#[derive(Debug)]
struct Attention;

#[derive(Debug, Clone)]
struct State {
    q: FlexTensor,
    k: FlexTensor,
    v: FlexTensor,
    cos: FlexTensor,
    sin: FlexTensor,
    /// Logarithm of the sum of the exponentials of each row of scores, `[b, h, t]`.
    logsums: Arc<[f32]>,
    sizes: Sizes,
}

impl Backward<Flex, 3> for Attention {
    type State = State;

    fn backward(self, ops: Ops<State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<Flex>(&ops.node).to_contiguous();
        let state = ops.state;
        let sizes = state.sizes;
        let read = Read {
            q: numbers(&state.q),
            k: numbers(&state.k),
            v: numbers(&state.v),
            cos: numbers(&state.cos),
            sin: numbers(&state.sin),
            sizes,
        };
        let mut out = Grads {
            q: vec![0.0; read.q.len()],
            k: vec![0.0; read.k.len()],
            v: vec![0.0; read.v.len()],
        };
        backward(read, numbers(&grad), &state.logsums, &mut out);
        let widths = [sizes.h, sizes.k, sizes.k].map(|n| n * sizes.e);
        for ((node, grad), width) in ops
            .parents
            .into_iter()
            .zip([out.q, out.k, out.v])
            .zip(widths)
        {
            if let Some(node) = node {
                grads.register::<Flex>(node.id, tensor(grad, [sizes.b, sizes.t, width]));
            }
        }
    }
}

/// Gradients of the inputs.
struct Grads {
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

fn forward(read: Read, out: &mut [f32], logsums: &mut [f32]) {
    forward_in::<4, 16>(read, out, logsums);
}

fn backward(read: Read, grad: &[f32], logsums: &[f32], out: &mut Grads) {
    backward_in::<4, 16>(read, grad, logsums, out);
}

/// Scores of the tile's rows from `i0` against keys `[e, t]` up to the diagonal's block.
#[inline(always)]
fn triangle<const MR: usize, const NR: usize>(
    left: &[f32],
    right: &[f32],
    i0: usize,
    rows: usize,
    (tp, ep): (usize, usize),
    tile: &mut [f32],
) {
    for i in (0..rows).step_by(MR) {
        rows_times::<MR, NR>(
            Rows::new(&left[(i0 + i) * ep..], ep),
            Rows::new(right, tp),
            &mut tile[i * tp..],
            tp,
            (i0 + i + MR).next_multiple_of(NR),
            ep,
        );
    }
}

#[inline(always)]
fn forward_in<const MR: usize, const NR: usize>(read: Read, out: &mut [f32], logsums: &mut [f32]) {
    let sizes @ Sizes { b, t, h, k, e } = read.sizes;
    let (tp, ep) = sizes.padded(NR);
    let group = h / k;
    let mut turned = vec![0.0f32; e];
    let mut k_et = vec![0.0f32; ep * tp];
    let mut v_te = vec![0.0f32; tp * ep];
    let mut q_te = vec![0.0f32; tp * ep];
    let mut tile = vec![0.0f32; TILE * tp];
    let mut sums = vec![0.0f32; MR * ep];
    for row in 0..b {
        for kv in 0..k {
            for i in 0..t {
                let (cos, sin) = read.tables(i);
                let place = sizes.place(row, i, k, kv);
                turn(&read.k[place.clone()], cos, sin, 1.0, &mut turned);
                for (x, &y) in turned.iter().enumerate() {
                    k_et[x * tp + i] = y;
                }
                v_te[i * ep..][..e].copy_from_slice(&read.v[place]);
            }
            for head in kv * group..(kv + 1) * group {
                for i in 0..t {
                    let (cos, sin) = read.tables(i);
                    let place = sizes.place(row, i, h, head);
                    turn(
                        &read.q[place],
                        cos,
                        sin,
                        sizes.scale(),
                        &mut q_te[i * ep..][..e],
                    );
                }
                for i0 in (0..tp).step_by(TILE) {
                    let rows = TILE.min(tp - i0);
                    triangle::<MR, NR>(&q_te, &k_et, i0, rows, (tp, ep), &mut tile);
                    for r0 in (0..rows).step_by(MR) {
                        let mut factors = [0.0f32; MR];
                        let end = i0 + r0 + MR;
                        for (r, factor) in factors.iter_mut().enumerate() {
                            let i = i0 + r0 + r;
                            let seen = (i + 1).next_multiple_of(LANES);
                            let line = &mut tile[(r0 + r) * tp..][..tp.min(end.max(seen))];
                            line[i + 1..].fill(f32::NEG_INFINITY);
                            let largest = max(line);
                            let sum = exp_shifted(line, largest);
                            *factor = 1.0 / sum;
                            if i < t {
                                logsums[(row * h + head) * t + i] = largest + sum.ln();
                            }
                        }
                        rows_times::<MR, NR>(
                            Rows::new(&tile[r0 * tp..], tp),
                            Rows::new(&v_te, ep),
                            &mut sums,
                            ep,
                            ep,
                            end,
                        );
                        for (r, factor) in factors.iter().enumerate() {
                            let i = i0 + r0 + r;
                            if i < t {
                                let out = &mut out[sizes.place(row, i, h, head)];
                                for (o, s) in out.iter_mut().zip(&sums[r * ep..]) {
                                    *o = s * factor;
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn backward_in<const MR: usize, const NR: usize>(
    read: Read,
    grad: &[f32],
    logsums: &[f32],
    out: &mut Grads,
) {
    let sizes @ Sizes { b, t, h, k, e } = read.sizes;
    let (tp, ep) = sizes.padded(NR);
    let group = h / k;
    let matrix = || vec![0.0f32; tp * ep];
    let (mut k_et, mut k_te, mut v_et) = (matrix(), matrix(), matrix());
    let (mut q_te, mut g_te) = (matrix(), matrix());
    let (mut dk_te, mut dv_te) = (matrix(), matrix());
    let mut weights = vec![0.0f32; TILE * tp];
    let mut pulls = vec![0.0f32; TILE * tp];
    let mut dq = vec![0.0f32; MR * ep];
    for row in 0..b {
        for kv in 0..k {
            for i in 0..t {
                let (cos, sin) = read.tables(i);
                let place = sizes.place(row, i, k, kv);
                let turned = &mut k_te[i * ep..][..e];
                turn(&read.k[place.clone()], cos, sin, 1.0, turned);
                for (x, (&y, &v)) in turned.iter().zip(&read.v[place]).enumerate() {
                    k_et[x * tp + i] = y;
                    v_et[x * tp + i] = v;
                }
            }
            dk_te.fill(0.0);
            dv_te.fill(0.0);
            for head in kv * group..(kv + 1) * group {
                for i in 0..t {
                    let (cos, sin) = read.tables(i);
                    let place = sizes.place(row, i, h, head);
                    let turned = &mut q_te[i * ep..][..e];
                    turn(&read.q[place.clone()], cos, sin, sizes.scale(), turned);
                    g_te[i * ep..][..e].copy_from_slice(&grad[place]);
                }
                for i0 in (0..tp).step_by(TILE) {
                    let rows = TILE.min(tp - i0);
                    let end = i0 + rows;
                    triangle::<MR, NR>(&q_te, &k_et, i0, rows, (tp, ep), &mut weights);
                    triangle::<MR, NR>(&g_te, &v_et, i0, rows, (tp, ep), &mut pulls);
                    for r in 0..rows {
                        let i = i0 + r;
                        // A padded row has gradient 0, so that its weights are of no effect.
                        let logsum = if i < t {
                            logsums[(row * h + head) * t + i]
                        } else {
                            0.0
                        };
                        let seen = (i + 1).next_multiple_of(LANES);
                        let (line, rest) = weights[r * tp..][..end].split_at_mut(seen);
                        line[i + 1..].fill(f32::NEG_INFINITY);
                        for w in line.iter_mut() {
                            *w = exp(*w - logsum);
                        }
                        rest.fill(0.0);
                        let (pull, rest) = pulls[r * tp..][..end].split_at_mut(seen);
                        let mean = dot(line, pull);
                        for (p, w) in pull.iter_mut().zip(line.iter()) {
                            *p = w * (*p - mean);
                        }
                        rest.fill(0.0);
                    }
                    for r0 in (0..rows).step_by(MR) {
                        rows_times::<MR, NR>(
                            Rows::new(&pulls[r0 * tp..], tp),
                            Rows::new(&k_te, ep),
                            &mut dq,
                            ep,
                            ep,
                            i0 + r0 + MR,
                        );
                        for (i, dq) in (i0 + r0..t).zip(dq.chunks_exact(ep)) {
                            let (cos, sin) = read.tables(i);
                            let place = sizes.place(row, i, h, head);
                            turn_back(dq, cos, sin, sizes.scale(), &mut out.q[place]);
                        }
                    }
                    for j in (0..end).step_by(MR) {
                        let seen_by = j.saturating_sub(i0)..rows;
                        let at = j * ep..(j + MR) * ep;
                        add_columns_times::<MR, NR>(
                            Rows::new(&pulls, tp),
                            j,
                            Rows::new(&q_te[i0 * ep..], ep),
                            &mut dk_te[at.clone()],
                            ep,
                            ep,
                            seen_by.clone(),
                        );
                        add_columns_times::<MR, NR>(
                            Rows::new(&weights, tp),
                            j,
                            Rows::new(&g_te[i0 * ep..], ep),
                            &mut dv_te[at],
                            ep,
                            ep,
                            seen_by,
                        );
                    }
                }
            }
            for i in 0..t {
                let (cos, sin) = read.tables(i);
                let place = sizes.place(row, i, k, kv);
                turn_back(
                    &dk_te[i * ep..][..e],
                    cos,
                    sin,
                    1.0,
                    &mut out.k[place.clone()],
                );
                out.v[place].copy_from_slice(&dv_te[i * ep..][..e]);
            }
        }
    }
}
