//! Rotary positions: component i of a head turns with component i + e/2.

use burn::tensor::Tensor;

use super::{constant, numbers, tensor};
use burn::backend::Flex;

/// Rotates one head at one position and multiplies it by `scale`.
#[inline(always)]
pub(super) fn turn(x: &[f32], cos: &[f32], sin: &[f32], scale: f32, out: &mut [f32]) {
    let half = cos.len();
    let ((low, high), sin) = (x.split_at(half), &sin[..half]);
    let (high, (out_low, out_high)) = (&high[..half], out[..2 * half].split_at_mut(half));
    for i in 0..half {
        out_low[i] = (low[i] * cos[i] - high[i] * sin[i]) * scale;
        out_high[i] = (high[i] * cos[i] + low[i] * sin[i]) * scale;
    }
}

/// The rotation back, which is also the way of the gradient.
#[inline(always)]
pub(super) fn turn_back(x: &[f32], cos: &[f32], sin: &[f32], scale: f32, out: &mut [f32]) {
    let half = cos.len();
    let ((low, high), sin) = (x.split_at(half), &sin[..half]);
    let (high, (out_low, out_high)) = (&high[..half], out[..2 * half].split_at_mut(half));
    for i in 0..half {
        out_low[i] = (low[i] * cos[i] + high[i] * sin[i]) * scale;
        out_high[i] = (high[i] * cos[i] - low[i] * sin[i]) * scale;
    }
}

/// `x`, `[b, t, n·e]`, into `[b, n, t, e]`, without gradients. The tables have a row a position: t of them, or b·t
/// when `by_row`.
pub(crate) fn rotate(
    x: &Tensor<3>,
    cos: &Tensor<2>,
    sin: &Tensor<2>,
    head_size: usize,
    by_row: bool,
) -> Option<Tensor<4>> {
    let [b, t, width] = x.dims();
    let [positions, half] = cos.dims();
    let fits = head_size > 0
        && head_size == 2 * half
        && width % head_size == 0
        && sin.dims() == [positions, half]
        && positions == if by_row { b * t } else { t };
    if !fits || b * t * width == 0 {
        return None;
    }
    let x = super::Input::plain(x)?.to_contiguous();
    let (cos, sin) = (constant(cos)?, constant(sin)?);
    let (xs, cos, sin) = (numbers(&x), numbers(&cos), numbers(&sin));
    let n = width / head_size;
    let mut out = vec![0.0f32; xs.len()];
    for (place, x) in xs.chunks_exact(width).enumerate() {
        let (row, step) = (place / t, place % t);
        let position = if by_row { place } else { step };
        let (cos, sin) = (
            &cos[position * half..][..half],
            &sin[position * half..][..half],
        );
        for (head, x) in x.chunks_exact(head_size).enumerate() {
            let to = ((row * n + head) * t + step) * head_size;
            turn(x, cos, sin, 1.0, &mut out[to..to + head_size]);
        }
    }
    Some(Tensor::from_primitive::<Flex>(tensor(
        out,
        [b, n, t, head_size],
    )))
}
