//! GGUF files that llama.cpp's own package wrote, whole and damaged.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Numbers, reference};
use proptest::prelude::*;
use rlef_model::gguf::{self, Gguf, Kind};
use rlef_model::{LlamaConfig, weights};

/// Counts the largest piece of memory that was asked for.
struct Counting;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` came from the system's allocator, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn file(name: &str) -> Vec<u8> {
    std::fs::read(reference().join("gguf").join(name)).unwrap()
}

/// What becomes of a file with these bytes.
fn read(bytes: &[u8]) -> Result<(gguf::Files, weights::Named), String> {
    let mut file = tempfile::Builder::new().suffix(".gguf").tempfile().unwrap();
    file.write_all(bytes).unwrap();
    gguf::read(file.path()).map_err(|e| e.to_string())
}

#[test]
fn every_format_gives_the_numbers_of_llama_cpp() {
    let blocks = Numbers::open(&reference().join("gguf/quants.safetensors"));
    for kind in Kind::ALL {
        let got = kind.dequantise(blocks.bytes(&format!("{}.bytes", kind.name())));
        let want = blocks.real(&format!("{}.values", kind.name()));
        assert_eq!(got.len(), want.len(), "{}", kind.name());
        for (i, (g, w)) in got.iter().zip(want).enumerate() {
            // The order of the products may differ.
            assert!(
                (g - w).abs() <= 2e-7 * w.abs(),
                "{} {i}: {g} is not {w}",
                kind.name()
            );
        }
    }
}

#[test]
fn tensors_come_out_in_hugging_faces_order() {
    let dir = reference();
    for (name, want) in [
        (
            "llama",
            weights::read_file(&dir.join("gguf/llama.safetensors")),
        ),
        ("qwen2", weights::read_dir(&dir.join("qwen2"))),
        ("qwen3", weights::read_dir(&dir.join("qwen3"))),
    ] {
        let (files, got) = gguf::read(&dir.join("gguf").join(format!("{name}.gguf"))).unwrap();
        let want = want.unwrap();
        assert!(got.keys().eq(want.keys()), "{name}");
        for (tensor, (shape, values)) in &got {
            assert_eq!(shape, &want[tensor].0, "{name} {tensor}");
            let gap = common::gap(values, &want[tensor].1);
            assert!(gap < 1e-6, "{name} {tensor}: {gap}");
        }
        let config = LlamaConfig::parse(&files[0].1, Path::new("config.json")).unwrap();
        if name == "llama" {
            let scaling = config.rope_scaling.as_ref().unwrap();
            assert_eq!(
                (scaling.factor, scaling.original_max_position_embeddings),
                (8.0, 8192.0)
            );
        } else {
            let original = LlamaConfig::load(&dir.join(name)).unwrap();
            assert_eq!(config.rope_frequencies(), original.rope_frequencies());
            assert_eq!(config.num_params(), original.num_params());
            assert_eq!(config.rms_norm_eps, original.rms_norm_eps);
            assert_eq!(config.eos_ids(), original.eos_ids());
        }
        let device = burn::tensor::Device::flex();
        rlef_model::ModelFolder::from_parts(files, got, Path::new(name), &device).unwrap();
    }
}

#[test]
fn a_file_that_is_cut_off_names_the_tensor() {
    let whole = file("llama.gguf");
    let error = read(&whole[..whole.len() - 1])
        .map(|_| "a model")
        .unwrap_err();
    assert!(
        error.contains("tensor ") && error.contains("incomplete"),
        "{error}"
    );
    for length in (0..whole.len()).step_by(97) {
        assert!(read(&whole[..length]).is_err(), "cut after {length}");
    }
}

#[test]
fn a_file_of_another_kind_is_an_error_that_names_what_is_wrong() {
    let whole = file("llama.gguf");
    let with = |from: &[u8], to: &[u8]| {
        assert_eq!(from.len(), to.len());
        let at = whole
            .windows(from.len())
            .position(|w| w == from)
            .unwrap_or_else(|| panic!("{from:?}"));
        let mut changed = whole.clone();
        changed[at..at + to.len()].copy_from_slice(to);
        read(&changed).map(|_| "a model").unwrap_err()
    };
    for (from, to, why) in [
        (
            "blk.1.attn_q.weight",
            "blk.9.attn_q.weight",
            "blk.1.attn_q.weight: missing",
        ),
        ("blk.1.attn_k.weight", "blk.01attn_k.weight", "blk.01attn_k"),
        ("blk.1.ffn_up.weight", "blk.1.ffn_xx.weight", "blk.1.ffn_xx"),
        (
            "llama.block_count",
            "llama.block_xount",
            "llama.block_count",
        ),
        (
            "llama.rope.freq_base",
            "llama.rope.freq_bass",
            "llama.rope.freq_bass",
        ),
        ("llama-bpe", "llama-spm", "tokenizer.ggml.pre"),
        ("tokenizer.ggml.merges", "tokenizer.ggml.nerges", "merges"),
    ] {
        let error = with(from.as_bytes(), to.as_bytes());
        assert!(error.contains(why), "{from} to {to}: {error}");
    }
    // Two heads more than there are rows; the first tensor that shows it is named.
    let mut key = b"llama.attention.head_count".to_vec();
    key.extend(4u32.to_le_bytes());
    let (mut four, mut six) = (key.clone(), key);
    four.extend(4u32.to_le_bytes());
    six.extend(6u32.to_le_bytes());
    let error = with(&four, &six);
    let first = "blk.0.attn_output.weight: has shape [32, 64], the configuration asks for [32, 96]";
    assert!(error.contains(first), "{error}");
    // The divisors of another scaling.
    let path = reference().join("gguf/llama.gguf");
    let divisors = Gguf::open(&path)
        .unwrap()
        .values("rope_freqs.weight")
        .unwrap();
    let bytes: Vec<u8> = divisors.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut other = bytes.clone();
    other[16..20].copy_from_slice(&2f32.to_le_bytes());
    let error = with(&bytes, &other);
    assert!(error.contains("rope_freqs.weight"), "{error}");
}

#[test]
fn an_announced_length_is_not_believed() {
    let whole = file("llama.gguf");
    // Numbers of tensors and keys, the length of the first key.
    for at in [8, 16, 24] {
        for lie in [u64::MAX, u64::MAX / 2, 1 << 40, 1 << 32] {
            let mut changed = whole.clone();
            changed[at..at + 8].copy_from_slice(&lie.to_le_bytes());
            LARGEST.store(0, Ordering::Relaxed);
            assert!(read(&changed).is_err());
        }
    }
    // Numbers take 8 times the bytes of the smallest quantised ones, and lists grow by doubling.
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest < 64 * whole.len(), "{largest} bytes at once");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    /// Whatever is changed in the header: an error or a model, no panic, and no more memory than the file explains.
    #[test]
    fn a_damaged_header_is_an_error_or_harmless(
        changes in prop::collection::vec((0usize..9000, any::<[u8; 8]>(), 1usize..=8), 1..4),
        cut in prop::option::of(0usize..44_000),
        which in prop::sample::select(vec!["llama.gguf", "qwen2.gguf", "qwen3.gguf"]),
    ) {
        let mut bytes = file(which);
        for (at, new, n) in changes {
            let at = at.min(bytes.len() - 8);
            bytes[at..at + n].copy_from_slice(&new[..n]);
        }
        if let Some(cut) = cut {
            bytes.truncate(cut);
        }
        LARGEST.store(0, Ordering::Relaxed);
        let _ = read(&bytes);
        let largest = LARGEST.load(Ordering::Relaxed);
        prop_assert!(largest < 8 << 20, "{largest} bytes at once");
    }

    /// Anything at all.
    #[test]
    fn bytes_are_no_file(mut bytes in prop::collection::vec(any::<u8>(), 0..600), begins in any::<bool>()) {
        if begins && bytes.len() > 8 {
            bytes[..8].copy_from_slice(b"GGUF\x03\0\0\0");
        }
        prop_assert!(read(&bytes).is_err());
    }
}
