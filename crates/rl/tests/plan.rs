//! What an update takes, as the plan says, against what it asks the allocator for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use burn::tensor::Device;
use rlef_model::{Llama, LlamaConfig};
use rlef_rl::batch::Sample;
use rlef_rl::{Learner, LossSettings, Memory, Networks, Optimiser, ValueKind, Workload};

/// Counts the memory in use.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn more(bytes: usize) {
    MOST.fetch_max(USED.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: `memory` came from the system's allocator, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn sample(length: usize, answer: usize) -> Sample {
    Sample {
        behaviour: vec![-3.0; answer],
        old: vec![-3.0; answer],
        reference: vec![-3.0; answer],
        returns: vec![0.5],
        advantages: vec![1.0],
        ..Sample::new(
            (0..length as u32).map(|t| t % 7).collect(),
            std::iter::once(length - answer..length).collect(),
        )
    }
}

fn shape(text: &str) -> LlamaConfig {
    LlamaConfig::parse(text.as_bytes(), "config.json".as_ref()).unwrap()
}

/// The embedded model.
const TINY: &str = r#"{"vocab_size": 512, "hidden_size": 128, "intermediate_size": 320, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512, "tie_word_embeddings": true}"#;

/// SmolLM2-135M with a third of its layers: the large vocabulary is what sets it apart.
const SMOLLM2: &str = r#"{"vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 10,
    "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 512, "tie_word_embeddings": true}"#;

const UNTIED: &str = r#"{"vocab_size": 2048, "hidden_size": 128, "intermediate_size": 320, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512, "tie_word_embeddings": false}"#;

const QWEN3: &str = r#"{"model_type": "qwen3", "vocab_size": 512, "hidden_size": 128, "intermediate_size": 320,
    "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 48,
    "max_position_embeddings": 512, "tie_word_embeddings": true}"#;

/// One test, since the count is of the whole process.
#[test]
fn an_update_takes_what_the_plan_says() {
    use ValueKind::{Head, Separate};
    for (i, (text, value, shards, rows, length, answers)) in [
        // Not measured: what the libraries keep once they have run.
        (TINY, Head, 2, 2, 24, 8),
        // Gradients decide …
        (TINY, Head, 2, 2, 24, 8),
        (UNTIED, Head, 2, 2, 24, 8),
        (SMOLLM2, Head, 2, 2, 24, 8),
        // … or activations, and with them the logits. With one thread: of several, one may be done with its forward pass
        // when another begins, and then less is there at once than the plan has to allow for.
        (TINY, Head, 1, 64, 128, 40),
        (TINY, Separate, 1, 64, 128, 40),
        (UNTIED, Head, 1, 48, 200, 150),
        (QWEN3, Head, 1, 64, 128, 40),
        (SMOLLM2, Head, 1, 6, 200, 60),
    ]
    .into_iter()
    .enumerate()
    {
        let shape = shape(text);
        let load = Workload {
            update_rows: rows,
            decode_rows: 0,
            length,
            answers,
        };
        let networks = Networks {
            shape: &shape,
            value,
            shards,
        };
        let planned = Memory::new(&networks, load);
        let before = USED.load(Relaxed);
        let policy = Llama::random(&shape, 1, &Device::flex());
        let reference = policy.clone();
        let settings = Optimiser::default();
        let mut learner = Learner::new(policy, Some(value), &shape, &settings, shards, 1);
        let samples: Vec<Sample> = (0..rows).map(|_| sample(length, answers)).collect();
        let batch: Vec<&Sample> = samples.iter().collect();
        let loss = LossSettings::default();
        // The optimiser's averages and weights that are not the reference's are there from the second update on.
        learner.ppo(&batch, loss).unwrap();
        let standing = USED.load(Relaxed) - before;
        MOST.store(USED.load(Relaxed), Relaxed);
        learner.ppo(&batch, loss).unwrap();
        let peak = MOST.load(Relaxed) - before;
        drop(reference);
        if i == 0 {
            continue;
        }
        for (what, measured, planned) in [
            ("standing", standing, planned.standing()),
            ("peak", peak, planned.peak()),
        ] {
            let ratio = planned as f64 / measured as f64;
            println!(
                "{value:?}, {shards} shards, {rows} × {length}: {what} {measured}, planned {ratio:.3} of it"
            );
            assert!(
                (0.85..1.15).contains(&ratio),
                "{what}: planned {planned}, measured {measured} bytes for {rows} × {length}, {value:?}, {text}"
            );
        }
    }
}
