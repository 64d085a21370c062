//! Every fused operation against the generic one: values, and gradients of every input.

use burn::tensor::{Device, Int, Tensor, TensorData};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rlef_model::ops::{self, AttentionShape, Rope, generic};

fn plain() -> Device {
    Device::flex()
}

fn graph() -> Device {
    Device::flex().autodiff()
}

struct Source(ChaCha8Rng);

impl Source {
    fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn numbers(&mut self, n: usize, size: f32) -> Vec<f32> {
        (0..n).map(|_| self.0.random_range(-size..size)).collect()
    }
}

/// How an input lies in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lie {
    Dense,
    /// A view with its first two dimensions exchanged.
    Transposed,
    /// A view of a larger tensor, with numbers before, after and between.
    Sliced,
}

fn lies() -> impl Strategy<Value = Lie> {
    prop_oneof![Just(Lie::Dense), Just(Lie::Transposed), Just(Lie::Sliced)]
}

/// A tensor of the given values and shape.
fn make<const D: usize>(values: &[f32], shape: [usize; D], lie: Lie, device: &Device) -> Tensor<D> {
    let t = Tensor::<D>::from_data(TensorData::new(values.to_vec(), shape), device);
    match lie {
        Lie::Transposed if D > 1 => {
            // A copy of the transposed numbers, transposed back as a view.
            let data = t.swap_dims(0, 1).into_data();
            Tensor::<D>::from_data(data, device).swap_dims(0, 1)
        }
        Lie::Sliced => {
            let around = Tensor::<D>::full(shape.map(|n| n + 2), 7.5, device);
            let place = shape.map(|n| 1..n + 1);
            around.slice_assign(place.clone(), t).slice(place)
        }
        _ => t,
    }
}

fn list<const D: usize>(t: Tensor<D>) -> Vec<f32> {
    t.into_data().to_vec().unwrap()
}

/// Both within `tolerance` of each other, relative to the largest number.
fn close(name: &str, got: &[f32], want: &[f32], tolerance: f32) {
    close_terms(name, got, want, tolerance, 1e-3);
}

/// Both within `tolerance` of each other, relative to the largest number, or to the size of the `terms` it is a sum of
/// where these cancel: the rounding of a sum is that of its terms.
fn close_terms(name: &str, got: &[f32], want: &[f32], tolerance: f32, terms: f32) {
    assert_eq!(got.len(), want.len(), "{name}");
    let size = want.iter().fold(terms, |m, x| m.max(x.abs()));
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!(
            (g - w).abs() <= tolerance * size,
            "{name}[{i}]: {g} is not {w} (largest {size})"
        );
    }
}

/// An input: values, shape, layout.
struct Given<const D: usize>(Vec<f32>, [usize; D], Lie);

impl<const D: usize> Given<D> {
    fn new(source: &mut Source, shape: [usize; D], lie: Lie, size: f32) -> Self {
        Self(source.numbers(shape.iter().product(), size), shape, lie)
    }

    fn plain(&self) -> Tensor<D> {
        make(&self.0, self.1, self.2, &plain())
    }

    /// The leaf, and the view of it that goes into the operation.
    fn leaf(&self) -> (Tensor<D>, Tensor<D>) {
        match self.2 {
            Lie::Transposed if D > 1 => {
                let data = make(&self.0, self.1, Lie::Dense, &plain())
                    .swap_dims(0, 1)
                    .into_data();
                let leaf = Tensor::<D>::from_data(data, &graph()).require_grad();
                (leaf.clone(), leaf.swap_dims(0, 1))
            }
            _ => {
                let leaf = make(&self.0, self.1, self.2, &graph()).require_grad();
                (leaf.clone(), leaf)
            }
        }
    }
}

/// Σ out · weights, so that every output has a gradient of its own.
fn loss<const D: usize>(out: Tensor<D>, weights: &[f32]) -> Tensor<1> {
    let shape: [usize; D] = out.dims();
    let n = shape.iter().product();
    (out * make(&weights[..n], shape, Lie::Dense, &graph())).sum()
}

/// Runs an operation of three inputs both ways and compares values and gradients; the result without gradients
/// must be the same number for number.
fn check3<const A: usize, const B: usize, const C: usize, const O: usize>(
    given: (&Given<A>, &Given<B>, &Given<C>),
    tolerance: f32,
    source: &mut Source,
    fused: impl Fn(Tensor<A>, Tensor<B>, Tensor<C>, &Device) -> Tensor<O>,
    generic: impl Fn(Tensor<A>, Tensor<B>, Tensor<C>, &Device) -> Tensor<O>,
) {
    let (a, b, c) = given;
    let without = fused(a.plain(), b.plain(), c.plain(), &plain());
    let weights = source.numbers(without.shape().num_elements(), 1.0);
    let run = |f: &dyn Fn(Tensor<A>, Tensor<B>, Tensor<C>, &Device) -> Tensor<O>| {
        let ((la, va), (lb, vb), (lc, vc)) = (a.leaf(), b.leaf(), c.leaf());
        let out = f(va, vb, vc, &graph());
        let grads = loss(out.clone(), &weights).backward();
        let all = [
            list(la.grad(&grads).unwrap()),
            list(lb.grad(&grads).unwrap()),
            list(lc.grad(&grads).unwrap()),
        ];
        (list(out.inner()), all)
    };
    let (out, got) = run(&fused);
    let (want_out, want) = run(&generic);
    assert_eq!(list(without), out, "with and without gradients");
    close("out", &out, &want_out, tolerance);
    for (i, (g, w)) in got.iter().zip(&want).enumerate() {
        // The loss weighs outputs by up to 1, so a gradient is a sum of terms of the order of the inputs; through a
        // saturated softmax they nearly cancel (seen: 6e-3 left of terms of 1, off by 5e-7).
        // Of an input that is broadcast, it is a sum over all outputs that it reaches, and grows as the root of their
        // number while the rounding goes with the terms (seen: 0.23 left of 1,056 terms, off by 6e-6).
        let reached = (want_out.len() as f32 / w.len() as f32).max(1.0);
        let terms = 0.1 * reached.sqrt();
        close_terms(&format!("gradient {i}"), g, w, tolerance, terms);
    }
}

fn rope(e: usize, positions: usize, device: &Device) -> Rope {
    let frequencies: Vec<f64> = (0..e / 2)
        .map(|i| 100f64.powf(-2.0 * i as f64 / e as f64))
        .collect();
    Rope::new(&frequencies, positions, device)
}

fn attention_case(b: usize, t: usize, shape: AttentionShape, lies: [Lie; 3], size: f32, seed: u64) {
    let mut source = Source::new(seed);
    let (h, k) = (
        shape.heads * shape.head_size,
        shape.kv_heads * shape.head_size,
    );
    let q = Given::new(&mut source, [b, t, h], lies[0], size);
    let kk = Given::new(&mut source, [b, t, k], lies[1], size);
    let v = Given::new(&mut source, [b, t, k], lies[2], 1.0);
    check3(
        (&q, &kk, &v),
        2e-5 * size.max(1.0),
        &mut source,
        |q, k, v, d| ops::attention(q, k, v, shape, &rope(shape.head_size, t + 3, d)),
        |q, k, v, d| generic::attention(q, k, v, shape, &rope(shape.head_size, t + 3, d)),
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn attention(
        b in 1usize..4, t in 1usize..70, kv in 1usize..3, group in 1usize..4,
        half in prop_oneof![Just(1usize), Just(3), Just(8), Just(16), Just(20)],
        lies in [lies(), lies(), lies()], size in prop_oneof![Just(1.0f32), Just(4.0)], seed: u64,
    ) {
        let shape = AttentionShape { heads: kv * group, kv_heads: kv, head_size: 2 * half };
        attention_case(b, t, shape, lies, size, seed);
    }

    #[test]
    fn rms_norm(b in 1usize..4, t in 1usize..9, d in 1usize..70, lies in [lies(), lies()], seed: u64) {
        let mut source = Source::new(seed);
        let x = Given::new(&mut source, [b, t, d], lies[0], 2.0);
        let w = Given::new(&mut source, [d], lies[1], 2.0);
        let other = Given::new(&mut source, [1], Lie::Dense, 1.0);
        // The third input only fills the place.
        check3(
            (&x, &w, &other), 1e-5, &mut source,
            |x, w, o, _| ops::rms_norm(x, w, 1e-5) * o.unsqueeze(),
            |x, w, o, _| generic::rms_norm(x, w, 1e-5) * o.unsqueeze(),
        );
    }

    #[test]
    fn swiglu(b in 1usize..4, t in 1usize..9, d in 1usize..70, lies in [lies(), lies()], seed: u64,
              size in prop_oneof![Just(1.0f32), Just(200.0)]) {
        let mut source = Source::new(seed);
        let gate = Given::new(&mut source, [b, t, d], lies[0], size);
        let up = Given::new(&mut source, [b, t, d], lies[1], 2.0);
        let other = Given::new(&mut source, [1], Lie::Dense, 1.0);
        check3(
            (&gate, &up, &other), 1e-5, &mut source,
            |g, u, o, _| ops::swiglu(g, u) * o.unsqueeze(),
            |g, u, o, _| generic::swiglu(g, u) * o.unsqueeze(),
        );
    }

    #[test]
    fn pick_logprobs(n in 1usize..20, v in 1usize..70, lie in lies(), seed: u64, entropy_too: bool,
                     size in prop_oneof![Just(1.0f32), Just(30.0)]) {
        let mut source = Source::new(seed);
        let logits = Given::new(&mut source, [n, v], lie, size);
        let (a, b) = (Given::new(&mut source, [1], Lie::Dense, 1.0), Given::new(&mut source, [1], Lie::Dense, 1.0));
        let targets: Vec<i32> = (0..n).map(|_| source.0.random_range(0..v as i32)).collect();
        let both = |(p, h): (Tensor<1>, Tensor<1>), a: Tensor<1>, b: Tensor<1>| {
            let h = if entropy_too { h } else { h.detach() };
            Tensor::cat(vec![p * a, h * b], 0)
        };
        let ids = |d: &Device| Tensor::<1, Int>::from_data(targets.as_slice(), d);
        check3(
            (&logits, &a, &b), 1e-5, &mut source,
            |l, a, b, d| both(ops::pick_logprobs(l, ids(d)), a, b),
            |l, a, b, d| both(generic::pick_logprobs(l, ids(d)), a, b),
        );
    }

    #[test]
    fn attend(b in 1usize..4, t in 1usize..6, s in 1usize..40, kv in 1usize..3, group in 1usize..4,
              half in 1usize..20, spare in 0usize..9, shared: bool, seed: u64) {
        let shape = AttentionShape { heads: kv * group, kv_heads: kv, head_size: 2 * half };
        let mut source = Source::new(seed);
        let e = shape.head_size;
        let q = make(&source.numbers(b * t * shape.heads * e, 2.0), [b, shape.heads, t, e], Lie::Transposed, &plain());
        let cache = |source: &mut Source| {
            let dims = [b, kv, s + spare, e];
            make(&source.numbers(dims.iter().product(), 2.0), dims, Lie::Dense, &plain())
                .slice([0..b, 0..kv, 0..s, 0..e])
        };
        let (k, v) = (cache(&mut source), cache(&mut source));
        let rows = if shared { 1 } else { b };
        let bias: Vec<f32> = (0..rows * t * s)
            .map(|i| if i % s == 0 || source.0.random_bool(0.6) { 0.0 } else { f32::NEG_INFINITY })
            .collect();
        let bias = make(&bias, [rows, 1, t, s], Lie::Dense, &plain());
        let got = ops::attend(q.clone(), k.clone(), v.clone(), bias.clone(), shape);
        let want = generic::attend(q, k, v, bias, shape);
        close("out", &list(got), &list(want), 1e-5);
    }

    #[test]
    fn rotate(b in 1usize..4, t in 1usize..9, n in 1usize..4, half in 1usize..20, lie in lies(), by_row: bool, seed: u64) {
        let mut source = Source::new(seed);
        let table = rope(2 * half, 50, &plain());
        let table = if by_row {
            let positions: Vec<usize> = (0..b * t).map(|_| source.0.random_range(0..50)).collect();
            table.at(&positions, t)
        } else {
            table.first(t)
        };
        let shape = [b, t, n * 2 * half];
        let x = make(&source.numbers(shape.iter().product(), 1.0), shape, lie, &plain());
        let got = table.rotate(x.clone(), 2 * half);
        assert_eq!(got.dims(), [b, n, t, 2 * half]);
        close("out", &list(got), &list(generic::rotate(&table, x, 2 * half)), 1e-6);
    }
}

#[test]
fn attention_of_long_rows() {
    let shape = AttentionShape {
        heads: 4,
        kv_heads: 2,
        head_size: 32,
    };
    attention_case(2, 220, shape, [Lie::Dense; 3], 1.0, 1);
    attention_case(1, 1, shape, [Lie::Dense; 3], 1.0, 2);
}

/// Gradients of the fused operations against differences of their own values.
#[test]
fn gradients_are_the_slope() {
    let shape = AttentionShape {
        heads: 2,
        kv_heads: 1,
        head_size: 4,
    };
    let (b, t) = (1, 5);
    let mut source = Source::new(3);
    let x = source.numbers(b * t * 16, 1.0);
    let weights = source.numbers(b * t * 8, 1.0);
    let w = source.numbers(8, 1.0);
    let targets = Tensor::<1, Int>::from_data([1i32, 0, 7, 3, 3].as_slice(), &graph());
    // All operations behind each other, so that one slope checks them all.
    let value = |x: Tensor<3>| -> Tensor<1> {
        let part = |from: usize, to: usize| x.clone().slice([0..b, 0..t, from..to]);
        let w = Tensor::<1>::from_data(w.as_slice(), &graph());
        let a = ops::attention(
            part(0, 8),
            part(8, 12),
            part(12, 16),
            shape,
            &rope(4, t, &graph()),
        );
        let y = ops::swiglu(ops::rms_norm(a.clone(), w, 1e-5), a);
        let (p, h) = ops::pick_logprobs(y.clone().reshape([b * t, 8]), targets.clone());
        loss(y, &weights) + p.sum() + h.sum().mul_scalar(0.5)
    };
    let leaf = make(&x, [b, t, 16], Lie::Dense, &graph()).require_grad();
    let grads = value(leaf.clone()).backward();
    let got = list(leaf.grad(&grads).unwrap());
    let step = 1e-2f32;
    for i in 0..x.len() {
        let at = |delta: f32| {
            let mut x = x.clone();
            x[i] += delta;
            f64::from(list(value(make(&x, [b, t, 16], Lie::Dense, &graph())))[0])
        };
        let slope = (at(step) - at(-step)) / (2.0 * f64::from(step));
        let error = (slope - f64::from(got[i])).abs();
        assert!(
            error < 5e-3 * slope.abs().max(1.0),
            "{i}: {} is not {slope}",
            got[i]
        );
    }
}

#[test]
fn large_logits_stay_numbers() {
    let values = [3e4f32, -3e4, 2.9e4, 0.0, 1e5, 1e5, -1e30, f32::NEG_INFINITY];
    let logits = make(&values, [2, 4], Lie::Dense, &graph()).require_grad();
    let targets = Tensor::<1, Int>::from_data([2i32, 1].as_slice(), &graph());
    let (p, h) = ops::pick_logprobs(logits.clone(), targets);
    assert_eq!(list(p.clone()), [-1000.0, -std::f32::consts::LN_2]);
    close(
        "entropy",
        &list(h.clone()),
        &[0.0, std::f32::consts::LN_2],
        1e-6,
    );
    let grads = (p.sum() + h.sum()).backward();
    let g = list(logits.grad(&grads).unwrap());
    assert!(g.iter().all(|x| x.is_finite()), "{g:?}");

    let shape = AttentionShape {
        heads: 1,
        kv_heads: 1,
        head_size: 2,
    };
    let q = make(&[1e4, -1e4, 1e4, 1e4], [1, 2, 2], Lie::Dense, &graph()).require_grad();
    let out = ops::attention(
        q.clone(),
        q.clone(),
        q.clone(),
        shape,
        &rope(2, 2, &graph()),
    );
    let grads = out.clone().sum().backward();
    assert!(list(out).iter().all(|x| x.is_finite()));
    assert!(list(q.grad(&grads).unwrap()).iter().all(|x| x.is_finite()));
}

#[test]
fn what_is_not_a_number_is_not_hidden() {
    let logits = make(&[0.0, f32::NAN, 1.0], [1, 3], Lie::Dense, &plain());
    let targets = Tensor::<1, Int>::from_data([0i32].as_slice(), &plain());
    let (p, h) = ops::pick_logprobs(logits, targets);
    assert!(list(p)[0].is_nan() && list(h)[0].is_nan());
    let x = make(&[1.0, f32::NAN], [1, 1, 2], Lie::Dense, &plain());
    let w = make(&[1.0, 1.0], [2], Lie::Dense, &plain());
    assert!(
        list(ops::rms_norm(x.clone(), w, 1e-5))
            .iter()
            .all(|x| x.is_nan())
    );
    assert!(list(ops::swiglu(x.clone(), x))[1].is_nan());
}

/// Gradients flow through one input when the others ask for none.
#[test]
fn one_input_alone() {
    let shape = AttentionShape {
        heads: 1,
        kv_heads: 1,
        head_size: 2,
    };
    let given = |lie| make(&[0.1, 0.2, 0.3, 0.4], [1, 2, 2], lie, &graph());
    let (q, k, v) = (
        given(Lie::Dense),
        given(Lie::Dense).require_grad(),
        given(Lie::Sliced),
    );
    let out = ops::attention(
        q.clone(),
        k.clone(),
        v.clone(),
        shape,
        &rope(2, 2, &graph()),
    );
    let grads = out.slice([0..1, 0..2, 0..1]).sum().backward();
    assert!(k.grad(&grads).is_some() && q.grad(&grads).is_none() && v.grad(&grads).is_none());
}

/// Empty tensors and other kinds of numbers take the generic way.
#[test]
fn odd_inputs_take_the_generic_way() {
    let x = Tensor::<3>::zeros([0, 4, 8], &plain());
    assert_eq!(ops::swiglu(x.clone(), x).dims(), [0, 4, 8]);
    let half = burn::tensor::FloatDType::F64;
    let x = make(&[3.0, 4.0], [1, 1, 2], Lie::Dense, &plain()).cast(half);
    let w = make(&[1.0, 2.0], [2], Lie::Dense, &plain()).cast(half);
    let y: Vec<f64> = ops::rms_norm(x, w, 0.0).into_data().to_vec().unwrap();
    assert!((y[1] / y[0] - 8.0 / 3.0).abs() < 1e-9);
}

/// Threads call the operations at the same time and get what one alone gets.
#[test]
fn threads_do_not_disturb_each_other() {
    let run = || {
        let shape = AttentionShape {
            heads: 2,
            kv_heads: 1,
            head_size: 8,
        };
        let mut source = Source::new(9);
        let q = Given::new(&mut source, [2, 33, 16], Lie::Dense, 1.0)
            .leaf()
            .0;
        let k = Given::new(&mut source, [2, 33, 8], Lie::Dense, 1.0)
            .leaf()
            .0;
        let out = ops::attention(
            q.clone(),
            k.clone(),
            k.clone(),
            shape,
            &rope(8, 33, &graph()),
        );
        let grads = out.sum().backward();
        (list(q.grad(&grads).unwrap()), list(k.grad(&grads).unwrap()))
    };
    let alone = run();
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(run)).collect();
    for t in threads {
        assert_eq!(t.join().unwrap(), alone);
    }
}
