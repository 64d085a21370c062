//! Loops over numbers that the compiler turns into vector instructions.

/// Numbers handled together in a loop: one 512-bit or two 256-bit registers.
pub(super) const LANES: usize = 16;

/// `a · b + c`, rounded once where the target has an instruction for it.
#[inline(always)]
pub(super) fn fma(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
        a.mul_add(b, c)
    } else {
        // Without the instruction `mul_add` is a call into the C library.
        a * b + c
    }
}

/// Below this e^x is given as 0 (it would be 1.6e-38).
const LOWEST: f32 = -87.0;
/// Above this e^x is given as e^88 (the next power of two is no longer finite).
const HIGHEST: f32 = 88.0;

/// e^x within 2 units in the last place, with no branch and no call, so that a loop over it vectorises; not a
/// number stays not a number.
///
/// x = n·ln 2 + r with |r| ≤ ln 2 / 2; e^r by its Taylor series up to r⁷ (the next term is below 1e-8), and 2ⁿ is
/// put together from its exponent bits.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // 1.5 · 2²³: adding it leaves the nearest whole number in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts: the first has few bits, so that n times it is exact.
    const LN2_HIGH: f32 = 355.0 / 512.0;
    const LN2_LOW: f32 = (std::f64::consts::LN_2 - 355.0 / 512.0) as f32;
    let y = if x > HIGHEST { HIGHEST } else { x };
    let shifted = fma(y, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, y));
    let mut p = 1.0 / 5040.0;
    p = fma(p, r, 1.0 / 720.0);
    p = fma(p, r, 1.0 / 120.0);
    p = fma(p, r, 1.0 / 24.0);
    p = fma(p, r, 1.0 / 6.0);
    p = fma(p, r, 0.5);
    p = fma(p, r, 1.0);
    p = fma(p, r, 1.0);
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    if x < LOWEST { 0.0 } else { p * power }
}

/// 1 / (1 + e^−x).
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Folds lanes of partial results into one, in a fixed order.
#[inline(always)]
fn fold(lanes: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = lanes;
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = f(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// The larger; `a` where `b` is not a number.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

/// The largest number of `x`, −∞ when empty.
#[inline(always)]
pub(super) fn max(x: &[f32]) -> f32 {
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for c in chunks {
        for i in 0..LANES {
            lanes[i] = larger(lanes[i], c[i]);
        }
    }
    rest.iter().fold(fold(lanes, larger), |m, &v| larger(m, v))
}

/// Σ xᵢ·yᵢ.
#[inline(always)]
pub(super) fn dot(x: &[f32], y: &[f32]) -> f32 {
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (ys, y_rest) = y.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for (a, b) in xs.iter().zip(ys) {
        for i in 0..LANES {
            lanes[i] = fma(a[i], b[i], lanes[i]);
        }
    }
    x_rest
        .iter()
        .zip(y_rest)
        .fold(fold(lanes, |a, b| a + b), |s, (&a, &b)| fma(a, b, s))
}

/// Σ xᵢ·yᵢ·zᵢ.
#[inline(always)]
pub(super) fn dot3(x: &[f32], y: &[f32], z: &[f32]) -> f32 {
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (ys, y_rest) = y.as_chunks::<LANES>();
    let (zs, z_rest) = z.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for ((a, b), c) in xs.iter().zip(ys).zip(zs) {
        for i in 0..LANES {
            lanes[i] = fma(a[i] * b[i], c[i], lanes[i]);
        }
    }
    x_rest
        .iter()
        .zip(y_rest)
        .zip(z_rest)
        .fold(fold(lanes, |a, b| a + b), |s, ((&a, &b), &c)| {
            fma(a * b, c, s)
        })
}

/// Replaces each x by e^(x − shift); gives their sum.
#[inline(always)]
pub(super) fn exp_shifted(x: &mut [f32], shift: f32) -> f32 {
    let (chunks, rest) = x.as_chunks_mut::<LANES>();
    let mut lanes = [0.0; LANES];
    for c in chunks {
        for i in 0..LANES {
            c[i] = exp(c[i] - shift);
            lanes[i] += c[i];
        }
    }
    rest.iter_mut().fold(fold(lanes, |a, b| a + b), |s, v| {
        *v = exp(*v - shift);
        s + *v
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_exact_to_two_units() {
        let mut worst = 0.0f64;
        for i in -8_600..8_800 {
            let x = i as f32 * 0.01 + 0.003;
            let right = f64::from(x).exp();
            worst = worst.max((f64::from(exp(x)) / right - 1.0).abs());
        }
        assert!(worst < 2.0 * f64::from(f32::EPSILON), "{worst}");
    }

    #[test]
    fn exp_at_the_ends() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1e30), 0.0);
        assert!(exp(f32::INFINITY).is_finite() && exp(f32::INFINITY) > 1e38);
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(sigmoid(f32::INFINITY), 1.0);
        assert!(sigmoid(-1e30) < 1e-37);
    }

    #[test]
    fn sums_and_maxima_of_odd_lengths() {
        for n in [0, 1, 15, 16, 17, 40] {
            let x: Vec<f32> = (0..n).map(|i| ((i * 7) % 11) as f32 - 5.0).collect();
            let want: f32 = x.iter().map(|v| v * v).sum();
            assert_eq!(dot(&x, &x), want);
            let want: f32 = x.iter().map(|v| v * v * v).sum();
            assert_eq!(dot3(&x, &x, &x), want);
            let want = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(max(&x), want);
        }
    }
}
