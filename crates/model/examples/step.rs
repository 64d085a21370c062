//! What the fused operations are worth: tokens a second of one training step of a small model on one thread, and of
//! each operation, the generic way and the fused way in turn.
//!
//! `RAYON_NUM_THREADS=1 cargo run --release -p rlef-model --example step -- [rows] [tokens] [repeats]`

use std::hint::black_box;
use std::time::{Duration, Instant};

use burn::module::{AutodiffModule, Module, ModuleMapper, Param};
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor, TensorData};
use rlef_model::ops::{self, AttentionShape};
use rlef_model::{Frame, Llama, LlamaConfig};

/// The allocator of the `rlef` program: the system's gives large blocks back to the kernel at once.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse().ok());
    let mut next = |or: usize| args.next().flatten().unwrap_or(or);
    let (b, t, repeats) = (next(32), next(112), next(15));
    let device = Device::flex().autodiff();
    let config: LlamaConfig = match serde_json::from_str(CONFIG) {
        Ok(config) => config,
        Err(e) => return eprintln!("the configuration does not read: {e}"),
    };
    println!("{b} rows of {t} tokens, best of {repeats}");
    step(&config, b, t, repeats, &device);
    single(&config, b, t, repeats, &device);
}

const CONFIG: &str = r#"{
    "architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "vocab_size": 512, "hidden_size": 128, "intermediate_size": 320, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "initializer_range": 0.02,
    "tie_word_embeddings": true, "bos_token_id": 1, "eos_token_id": 2
}"#;

/// The best time of both ways, measured in turn: what else runs on the machine only ever adds to a time.
fn both(repeats: usize, mut f: impl FnMut()) -> [Duration; 2] {
    let mut times = [vec![], vec![]];
    for i in 0..2 * (repeats + 1) {
        ops::set_fused(i % 2 == 1);
        let start = Instant::now();
        f();
        if i > 1 {
            times[i % 2].push(start.elapsed());
        }
    }
    ops::set_fused(true);
    times.map(|t| t.into_iter().min().unwrap_or_default())
}

fn report(name: &str, [generic, fused]: [Duration; 2], tokens: usize) {
    let rate = |d: Duration| tokens as f64 / d.as_secs_f64();
    println!(
        "{name:<28} generic {:>9.2?} {:>9.0} tokens/s   fused {:>9.2?} {:>9.0} tokens/s   {:.2} times",
        generic,
        rate(generic),
        fused,
        rate(fused),
        generic.as_secs_f64() / fused.as_secs_f64()
    );
}

/// Any numbers, always the same.
fn numbers(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as f32 / u32::MAX as f32 * 2.0 - 1.0
        })
        .collect()
}

/// Asks for the gradient of every weight.
struct Learn;

impl ModuleMapper for Learn {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.set_require_grad(true)
    }
}

/// Forward, backward and AdamW of the whole network, every token a target.
fn step(config: &LlamaConfig, b: usize, t: usize, repeats: usize, device: &Device) {
    let frame = Frame::new(config, device);
    let mut model = Llama::from_inner(Llama::random(config, 1, &Device::flex())).map(&mut Learn);
    let mut optimiser = AdamWConfig::new().init();
    let tokens: Vec<i32> = numbers(b * t, 5)
        .iter()
        .map(|x| ((x + 1.0) * 255.0) as i32)
        .collect();
    let tokens = Tensor::<2, Int>::from_data(TensorData::new(tokens, [b, t]), device);
    let n = b * (t - 1);
    let targets = tokens.clone().slice([0..b, 1..t]).reshape([n]);
    let mut parts = [vec![], vec![], vec![]];
    let whole = both(repeats, || {
        let start = Instant::now();
        let hidden = model.hidden(tokens.clone(), &frame);
        let d = config.hidden_size;
        let hidden = hidden.slice([0..b, 0..t - 1, 0..d]).reshape([n, d]);
        let (logprob_n, _) = ops::pick_logprobs(model.logits(hidden), targets.clone());
        let loss = logprob_n.mean().neg();
        parts[0].push(start.elapsed());
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        parts[1].push(start.elapsed());
        model = optimiser.step(1e-4, model.clone(), grads);
        parts[2].push(start.elapsed());
    });
    println!("{} weights", model.num_params());
    report("step", whole, b * t);
    for (name, i) in [("  forward", 0), ("  backward", 1), ("  AdamW", 2)] {
        let best = |way: usize| {
            (2 + way..parts[i].len())
                .step_by(2)
                .map(|x| {
                    parts[i][x]
                        - if i == 0 {
                            Duration::ZERO
                        } else {
                            parts[i - 1][x]
                        }
                })
                .min()
                .unwrap_or_default()
        };
        report(name, [best(0), best(1)], b * t);
    }
    let plain = Device::flex();
    let (model, frame) = (model.valid(), Frame::new(config, &plain));
    let tokens = tokens.inner();
    report(
        "scoring (no gradients)",
        both(repeats, || {
            black_box(model.hidden(tokens.clone(), &frame));
        }),
        b * t,
    );
}

/// Each operation alone, forward and backward.
fn single(config: &LlamaConfig, b: usize, t: usize, repeats: usize, device: &Device) {
    let shape = AttentionShape {
        heads: config.num_attention_heads,
        kv_heads: config.kv_heads(),
        head_size: config.head_size(),
    };
    let make = |shape: [usize; 3], seed| {
        let values = numbers(shape.iter().product(), seed);
        Tensor::<3>::from_data(TensorData::new(values, shape), device).require_grad()
    };
    let (d, f, v) = (
        config.hidden_size,
        config.intermediate_size,
        config.vocab_size,
    );
    let kv = shape.kv_heads * shape.head_size;
    let (q, k, w) = (make([b, t, d], 1), make([b, t, kv], 2), make([b, t, kv], 3));
    let frame = Frame::new(config, device);
    let all = b * t;
    let times = both(repeats, || {
        let out = ops::attention(q.clone(), k.clone(), w.clone(), shape, &frame.rope);
        black_box(out.backward());
    });
    report("attention", times, all);
    let times = both(repeats, || {
        black_box(ops::attention(
            q.clone().detach(),
            k.clone().detach(),
            w.clone().detach(),
            shape,
            &frame.rope,
        ));
    });
    report("attention, forward only", times, all);
    let ones = Tensor::<1>::ones([d], device).require_grad();
    let times = both(repeats, || {
        black_box(ops::rms_norm(q.clone(), ones.clone(), 1e-5).backward());
    });
    report("rms_norm", times, all);
    let (gate, up) = (make([b, t, f], 4), make([b, t, f], 5));
    let times = both(repeats, || {
        black_box(ops::swiglu(gate.clone(), up.clone()).backward());
    });
    report("swiglu", times, all);
    let logits = make([1, all, v], 6).reshape([all, v]);
    let targets = Tensor::<1, Int>::zeros([all], device);
    let times = both(repeats, || {
        let (p, _) = ops::pick_logprobs(logits.clone(), targets.clone());
        black_box(p.backward());
    });
    report("pick_logprobs", times, all);
    let plain = |shape: [usize; 4], seed| {
        let values = numbers(shape.iter().product(), seed);
        Tensor::<4>::from_data(TensorData::new(values, shape), &Device::flex())
    };
    let (h, kv, e) = (shape.heads, shape.kv_heads, shape.head_size);
    let q = plain([b, h, 1, e], 7);
    let (k, v) = (plain([b, kv, 2 * t, e], 8), plain([b, kv, 2 * t, e], 9));
    let bias = Tensor::<4>::zeros([b, 1, 1, t], &Device::flex());
    let times = both(20 * repeats, || {
        let view = |x: &Tensor<4>| x.clone().slice([0..b, 0..kv, 0..t, 0..e]);
        black_box(ops::attend(
            q.clone(),
            view(&k),
            view(&v),
            bias.clone(),
            shape,
        ));
    });
    report("attend, 1 token from cache", times, b);
}
