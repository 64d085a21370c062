//! Fused operations on the CPU backend, each with a backward pass of its own.
//!
//! Every function gives `None` when its inputs are not 32-bit floats on that backend (with or without gradients) or
//! have a shape it does not know; the caller then takes the generic operations. One call uses one thread: a batch
//! is cut into one part a core outside.

mod attend;
mod attention;
mod blocks;
mod logprobs;
mod math;
mod norm;
mod rotate;
mod swiglu;

use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::ops::{Backward, OpsKind};
use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::{Bytes, DType, Int, Tensor};

pub(super) use attend::attend;
pub(super) use attention::attention;
pub(super) use logprobs::pick_logprobs;
pub(super) use norm::rms_norm;
pub(super) use rotate::rotate;
pub(super) use swiglu::swiglu;

/// A tensor of the CPU backend with its place in the graph of gradients.
type Tracked = FloatTensor<Autodiff<Flex>>;

/// The inputs of an operation, all without gradients or all in a graph.
enum Inputs<const N: usize> {
    Plain([FlexTensor; N]),
    Tracked([Tracked; N]),
}

impl<const N: usize> Inputs<N> {
    /// The values, dense: a view with gaps or of another order is copied.
    fn dense(&self) -> [FlexTensor; N] {
        match self {
            Self::Plain(all) => std::array::from_fn(|i| all[i].to_contiguous()),
            Self::Tracked(all) => std::array::from_fn(|i| all[i].primitive.to_contiguous()),
        }
    }
}

/// A tensor of any rank, seen as an input.
trait Input {
    fn plain(&self) -> Option<FlexTensor>;
    fn tracked(&self) -> Option<Tracked>;
}

impl<const D: usize> Input for Tensor<D> {
    fn plain(&self) -> Option<FlexTensor> {
        let t = self.clone().try_into_primitive::<Flex>().ok()?;
        (t.dtype() == DType::F32).then_some(t)
    }

    fn tracked(&self) -> Option<Tracked> {
        let t = self.clone().try_into_primitive::<Autodiff<Flex>>().ok()?;
        (t.primitive.dtype() == DType::F32).then_some(t)
    }
}

fn inputs<const N: usize>(all: [&dyn Input; N]) -> Option<Inputs<N>> {
    fn each<T, const N: usize>(
        all: [&dyn Input; N],
        f: impl Fn(&dyn Input) -> Option<T>,
    ) -> Option<[T; N]> {
        let found: Vec<T> = all.iter().map(|t| f(*t)).collect::<Option<_>>()?;
        found.try_into().ok()
    }
    if let Some(all) = each(all, |t| t.plain()) {
        return Some(Inputs::Plain(all));
    }
    each(all, |t| t.tracked()).map(Inputs::Tracked)
}

/// The values of a constant, gradients left out of account.
fn constant<const D: usize>(t: &Tensor<D>) -> Option<FlexTensor> {
    let t = t
        .plain()
        .or_else(|| t.tracked().map(|t| t.primitive.clone()))?;
    Some(t.to_contiguous())
}

/// Whole numbers as indices; `None` when one is negative.
fn indices<const D: usize>(t: &Tensor<D, Int>) -> Option<Vec<usize>> {
    let t = t
        .clone()
        .try_into_primitive::<Flex>()
        .or_else(|_| t.clone().try_into_primitive::<Autodiff<Flex>>())
        .ok()?
        .to_contiguous();
    match t.dtype() {
        DType::I32 => t
            .as_slice::<i32>()?
            .iter()
            .map(|&i| usize::try_from(i).ok())
            .collect(),
        DType::I64 => t
            .as_slice::<i64>()?
            .iter()
            .map(|&i| usize::try_from(i).ok())
            .collect(),
        _ => None,
    }
}

/// The numbers of a dense tensor made by [`Inputs::dense`], [`constant`] or [`tensor`].
fn numbers(t: &FlexTensor) -> &[f32] {
    t.as_slice().unwrap_or(&[])
}

/// A new tensor.
fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> FlexTensor {
    FlexTensor::new(
        Bytes::from_elems(values),
        Layout::contiguous(shape.into()),
        DType::F32,
    )
}

/// Hands out the result; in a graph, with the step back from it to the inputs.
fn output<const D: usize, const N: usize, B>(
    step: B,
    inputs: Inputs<N>,
    out: FlexTensor,
    state: impl FnOnce() -> B::State,
) -> Tensor<D>
where
    B: Backward<Flex, N>,
{
    match inputs {
        Inputs::Plain(_) => Tensor::from_primitive::<Flex>(out),
        Inputs::Tracked(all) => {
            let nodes = all.map(|t| t.node.clone());
            let tracked = match step
                .prepare::<NoCheckpointing>(nodes)
                .compute_bound()
                .stateful()
            {
                OpsKind::Tracked(prep) => prep.finish(state(), out),
                OpsKind::UnTracked(prep) => prep.finish(out),
            };
            Tensor::from_primitive::<Autodiff<Flex>>(tracked)
        }
    }
}
