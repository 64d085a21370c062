//! Root mean square norm: y = x · r · w with r = 1 / √(mean(x²) + eps).

use std::sync::Arc;

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops};
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

use super::math::{dot, dot3, fma};
use super::{inputs, numbers, output, tensor};

pub(crate) fn rms_norm(x: &Tensor<3>, w: &Tensor<1>, eps: f64) -> Option<Tensor<3>> {
    let shape = x.dims();
    let d = shape[2];
    if w.dims() != [d] || shape.contains(&0) {
        return None;
    }
    let inputs = inputs([x, w])?;
    let [x, w] = inputs.dense();
    let (xs, ws) = (numbers(&x), numbers(&w));
    let mut out = Vec::with_capacity(xs.len());
    let mut factors = Vec::with_capacity(xs.len() / d);
    for row in xs.chunks_exact(d) {
        let r = 1.0 / (dot(row, row) / d as f32 + eps as f32).sqrt();
        factors.push(r);
        out.extend(row.iter().zip(ws).map(|(x, w)| x * r * w));
    }
    let out = tensor(out, shape);
    Some(output(RmsNorm, inputs, out, || State {
        x,
        w,
        factors: factors.into(),
        shape,
    }))
}

#[derive(Debug)]
struct RmsNorm;

#[derive(Debug, Clone)]
struct State {
    x: FlexTensor,
    w: FlexTensor,
    /// r of each row.
    factors: Arc<[f32]>,
    shape: [usize; 3],
}

impl Backward<Flex, 2> for RmsNorm {
    type State = State;

    fn backward(self, ops: Ops<State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<Flex>(&ops.node).to_contiguous();
        let State {
            x,
            w,
            factors,
            shape,
        } = ops.state;
        let d = shape[2];
        let (xs, ws, gs) = (numbers(&x), numbers(&w), numbers(&grad));
        let [node_x, node_w] = ops.parents;
        if let Some(node) = node_w {
            let mut dw = vec![0.0f32; d];
            for ((x, g), &r) in xs.chunks_exact(d).zip(gs.chunks_exact(d)).zip(&*factors) {
                for ((dw, x), g) in dw.iter_mut().zip(x).zip(g) {
                    *dw = fma(x * r, *g, *dw);
                }
            }
            grads.register::<Flex>(node.id, tensor(dw, [d]));
        }
        if let Some(node) = node_x {
            let mut dx = Vec::with_capacity(xs.len());
            for ((x, g), &r) in xs.chunks_exact(d).zip(gs.chunks_exact(d)).zip(&*factors) {
                // r moves with x: dr/dxᵢ = −r³·xᵢ/d.
                let pull = -dot3(x, g, ws) * r * r * r / d as f32;
                dx.extend(
                    x.iter()
                        .zip(g)
                        .zip(ws)
                        .map(|((x, g), w)| fma(g * w, r, x * pull)),
                );
            }
            grads.register::<Flex>(node.id, tensor(dx, shape));
        }
    }
}
