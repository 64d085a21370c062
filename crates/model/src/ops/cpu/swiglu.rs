//! y = a · σ(a) · u.

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops};
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

use super::math::{fma, sigmoid};
use super::{inputs, numbers, output, tensor};

pub(crate) fn swiglu(gate: &Tensor<3>, up: &Tensor<3>) -> Option<Tensor<3>> {
    let shape = gate.dims();
    if up.dims() != shape {
        return None;
    }
    let inputs = inputs([gate, up])?;
    let [gate, up] = inputs.dense();
    let out = numbers(&gate)
        .iter()
        .zip(numbers(&up))
        .map(|(&a, &u)| a * sigmoid(a) * u)
        .collect();
    let out = tensor(out, shape);
    Some(output(SwiGlu, inputs, out, || State { gate, up, shape }))
}

#[derive(Debug)]
struct SwiGlu;

#[derive(Debug, Clone)]
struct State {
    gate: FlexTensor,
    up: FlexTensor,
    shape: [usize; 3],
}

impl Backward<Flex, 2> for SwiGlu {
    type State = State;

    fn backward(self, ops: Ops<State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<Flex>(&ops.node).to_contiguous();
        let State { gate, up, shape } = ops.state;
        let (a, u, g) = (numbers(&gate), numbers(&up), numbers(&grad));
        let n = g.len().min(a.len()).min(u.len());
        let (a, u, g) = (&a[..n], &u[..n], &g[..n]);
        let (mut da, mut du) = (vec![0.0f32; n], vec![0.0f32; n]);
        for i in 0..n {
            let s = sigmoid(a[i]);
            let silu = a[i] * s;
            da[i] = g[i] * u[i] * fma(silu, 1.0 - s, s);
            du[i] = g[i] * silu;
        }
        let [node_gate, node_up] = ops.parents;
        if let Some(node) = node_gate {
            grads.register::<Flex>(node.id, tensor(da, shape));
        }
        if let Some(node) = node_up {
            grads.register::<Flex>(node.id, tensor(du, shape));
        }
    }
}
