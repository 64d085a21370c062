//! Products of small matrices, in blocks that stay in registers.
//!
//! All sizes are padded by the caller: rows to a multiple of `MR`, columns to a multiple of `NR`.

use super::math::fma;

/// A matrix in a slice, its rows `stride` numbers apart.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) data: &'a [f32],
    pub(super) stride: usize,
}

impl<'a> Rows<'a> {
    pub(super) fn new(data: &'a [f32], stride: usize) -> Self {
        Self { data, stride }
    }
}

/// One block `MR × NR` of `c`, from column `j`: the sum over `k` of `left(k)` times row k of `b`, in place of what
/// is there or added to it.
#[inline(always)]
fn block<const MR: usize, const NR: usize, const ADD: bool>(
    left: impl Fn(usize) -> [f32; MR],
    k: std::ops::Range<usize>,
    b: Rows,
    c: &mut [f32],
    c_stride: usize,
    j: usize,
) {
    let mut sum = [[0.0f32; NR]; MR];
    if ADD {
        for (r, sum) in sum.iter_mut().enumerate() {
            sum.copy_from_slice(&c[r * c_stride + j..][..NR]);
        }
    }
    for k in k {
        let a = left(k);
        let row = &b.data[k * b.stride + j..][..NR];
        for r in 0..MR {
            for x in 0..NR {
                sum[r][x] = fma(a[r], row[x], sum[r][x]);
            }
        }
    }
    for (r, sum) in sum.iter().enumerate() {
        c[r * c_stride + j..][..NR].copy_from_slice(sum);
    }
}

/// `MR` rows of `c = a · b`, columns `0..n`, from `MR` rows of `a` of length `k`.
#[inline(always)]
pub(super) fn rows_times<const MR: usize, const NR: usize>(
    a: Rows,
    b: Rows,
    c: &mut [f32],
    c_stride: usize,
    n: usize,
    k: usize,
) {
    let rows: [&[f32]; MR] = std::array::from_fn(|r| &a.data[r * a.stride..][..k]);
    for j in (0..n).step_by(NR) {
        let left = |k: usize| std::array::from_fn(|r| rows[r][k]);
        block::<MR, NR, false>(left, 0..k, b, c, c_stride, j);
    }
}

/// Adds to `MR` rows of `c` the product of columns `i..i + MR` of `a`, transposed, with `b`, over the rows `k` of
/// both; columns `0..n`.
#[inline(always)]
pub(super) fn add_columns_times<const MR: usize, const NR: usize>(
    a: Rows,
    i: usize,
    b: Rows,
    c: &mut [f32],
    c_stride: usize,
    n: usize,
    k: std::ops::Range<usize>,
) {
    for j in (0..n).step_by(NR) {
        let left = |k: usize| {
            let row = &a.data[k * a.stride + i..][..MR];
            std::array::from_fn(|r| row[r])
        };
        block::<MR, NR, true>(left, k.clone(), b, c, c_stride, j);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_whole_numbers_are_exact() {
        let (m, n, k) = (4, 32, 5);
        let a: Vec<f32> = (0..m * k).map(|i| (i % 7) as f32).collect();
        let b: Vec<f32> = (0..k * n).map(|i| (i % 5) as f32).collect();
        let want: Vec<f32> = (0..m * n)
            .map(|x| {
                (0..k)
                    .map(|l| a[x / n * k + l] * b[l * n + x % n])
                    .sum::<f32>()
            })
            .collect();
        let mut c = vec![9.0; m * n];
        rows_times::<4, 16>(Rows::new(&a, k), Rows::new(&b, n), &mut c, n, n, k);
        assert_eq!(c, want);
        let turned: Vec<f32> = (0..k * m).map(|x| a[x % m * k + x / m]).collect();
        add_columns_times::<4, 16>(
            Rows::new(&turned, m),
            0,
            Rows::new(&b, n),
            &mut c,
            n,
            n,
            0..k,
        );
        assert!(c.iter().zip(&want).all(|(c, w)| *c == 2.0 * w));
    }
}
