//! Log-probability of one entry of each row, and the row's entropy, from one pass over the logits.
//!
//! With z the row, L = ln Σ eᶻ and p = e^(z − L): the log-probability of entry k is z_k − L, the entropy
//! H = L − Σ p·z, and their gradients are [j = k] − p_j and −p_j·(z_j − L + H).

use std::sync::Arc;

use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops};
use burn::backend::flex::FlexTensor;
use burn::tensor::{Int, Tensor};

use super::math::{dot, exp, exp_shifted, fma, max};
use super::{indices, inputs, numbers, output, tensor};

pub(crate) fn pick_logprobs(
    logits: &Tensor<2>,
    targets: &Tensor<1, Int>,
) -> Option<(Tensor<1>, Tensor<1>)> {
    let [n, v] = logits.dims();
    if n == 0 || v == 0 || targets.dims() != [n] {
        return None;
    }
    let targets = indices(targets)?;
    if targets.iter().any(|&k| k >= v) {
        return None;
    }
    let inputs = inputs([logits])?;
    let [logits] = inputs.dense();
    let mut logsums = Vec::with_capacity(n);
    // Row 0 the log-probabilities, row 1 the entropies: one result, because a step back has one.
    let mut out = vec![0.0f32; 2 * n];
    let (picked, entropy) = out.split_at_mut(n);
    let (mut p, mut shifted) = (vec![0.0f32; v], vec![0.0f32; v]);
    for (i, z) in numbers(&logits).chunks_exact(v).enumerate() {
        let m = max(z);
        // The entropy from z − m, not from z: with large logits the difference below would lose all its digits.
        // What is 200 below the largest has weight 0 in it, and −∞ would make 0 · ∞.
        for (s, &z) in shifted.iter_mut().zip(z) {
            let below = z - m;
            *s = if below < -200.0 { -200.0 } else { below };
        }
        p.copy_from_slice(&shifted);
        let sum = exp_shifted(&mut p, 0.0);
        let log_of_sum = sum.ln();
        entropy[i] = log_of_sum - dot(&p, &shifted) / sum;
        picked[i] = (z[targets[i]] - m) - log_of_sum;
        logsums.push([m, log_of_sum]);
    }
    let both = out.clone();
    let out: Tensor<2> = output(PickLogprobs, inputs, tensor(out, [2, n]), || State {
        logits,
        targets: targets.into(),
        logsums: logsums.into(),
        entropies: both[n..].into(),
        shape: [n, v],
    });
    let row = |i: usize| out.clone().slice([i..i + 1, 0..n]).reshape([n]);
    Some((row(0), row(1)))
}

#[derive(Debug)]
struct PickLogprobs;

#[derive(Debug, Clone)]
struct State {
    logits: FlexTensor,
    targets: Arc<[usize]>,
    /// Of each row: the largest logit, and the logarithm of the sum of e^(z − largest).
    logsums: Arc<[[f32; 2]]>,
    entropies: Arc<[f32]>,
    shape: [usize; 2],
}

impl Backward<Flex, 1> for PickLogprobs {
    type State = State;

    fn backward(self, ops: Ops<State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<Flex>(&ops.node).to_contiguous();
        let State {
            logits,
            targets,
            logsums,
            entropies,
            shape: [n, v],
        } = ops.state;
        let [Some(node)] = ops.parents else { return };
        let g = numbers(&grad);
        let mut out = Vec::with_capacity(n * v);
        for (i, z) in numbers(&logits).chunks_exact(v).enumerate() {
            let (g_picked, g_entropy) = (g[i], g[n + i]);
            let [m, log_of_sum] = logsums[i];
            if g_entropy == 0.0 {
                out.extend(z.iter().map(|&z| -g_picked * exp(z - m - log_of_sum)));
            } else {
                let h = entropies[i];
                out.extend(z.iter().map(|&z| {
                    let logprob = z - m - log_of_sum;
                    let p = exp(logprob);
                    let pull = fma(g_entropy, logprob + h, g_picked);
                    if p == 0.0 { 0.0 } else { -p * pull }
                }));
            }
            out[i * v + targets[i]] += g_picked;
        }
        grads.register::<Flex>(node.id, tensor(out, [n, v]));
    }
}
