//! The same numbers as Hugging Face transformers, and the same whichever way a text goes through the network.
//!
//! The tiny models and all expected numbers are in `reference`, with the scripts that made them.

mod common;

use std::path::PathBuf;

use common::{GREEDY, Loaded, Numbers, TINY, gap, logprobs, logsumexp, reference};
use rlef_model::{ChatTokenizer, Sampling, folder};

/// Between two implementations in f32, on logits of the order of 10.
const TOLERANCE: f32 = 2e-3;

/// A tiny model and what transformers computes with it.
fn tiny(name: &str) -> (Loaded, Numbers) {
    let dir = reference().join(name);
    let expected = Numbers::open(&dir.join("expected.safetensors"));
    (Loaded::open(&dir), expected)
}

#[test]
fn logits_are_those_of_transformers() {
    for name in TINY {
        let (loaded, expected) = tiny(name);
        let prompts = expected.lists("tokens");
        assert_eq!(prompts.len(), 4);
        let together = loaded.logits(&prompts);
        for (i, prompt) in prompts.iter().enumerate() {
            let want = expected.real(&format!("logits.{i}"));
            let size = want.iter().fold(0.0f32, |m, x| m.max(x.abs()));
            assert!(
                size > 3.0,
                "{name}, prompt {i}: logits of at most {size} show little"
            );
            let alone = loaded.logits(std::slice::from_ref(prompt));
            for (how, got) in [("alone", &alone[0]), ("in a batch", &together[i])] {
                let gap = gap(got, want);
                assert!(gap < TOLERANCE, "{name}, prompt {i} {how}: {gap}");
            }
        }
    }
}

#[test]
fn greedy_answers_are_those_of_transformers() {
    for name in TINY {
        let (loaded, expected) = tiny(name);
        let prompts = expected.lists("tokens");
        let answers = loaded.answers(&prompts, &GREEDY);
        for (i, (answer, want)) in answers.iter().zip(expected.lists("greedy")).enumerate() {
            let got: Vec<i32> = answer.tokens.iter().map(|&t| t as i32).collect();
            assert_eq!(got, want, "{name}, prompt {i}");
        }
    }
}

/// Uncached alone, uncached in a batch filled up at the right, cached in a batch filled up at the left, and read in
/// pieces: the log-probabilities of an answer are the same within 1e-4.
#[test]
fn every_way_gives_the_same_log_probabilities() {
    const SAME: f32 = 1e-4;
    let sampling = Sampling {
        temperature: 1.0,
        max_new_tokens: 20,
        ..GREEDY
    };
    for name in TINY {
        let dir = reference().join(name);
        let loaded = Loaded::open(&dir);
        let prompts = Numbers::open(&dir.join("expected.safetensors")).lists("tokens");
        let answers = loaded.answers(&prompts, &sampling);
        let whole: Vec<Vec<i32>> = prompts
            .iter()
            .zip(&answers)
            .map(|(p, a)| p.iter().copied().chain(a.tokens.iter().map(|&t| t as i32)))
            .map(Iterator::collect)
            .collect();
        let together = loaded.logits(&whole);
        for (i, tokens) in whole.iter().enumerate() {
            let sampled = &answers[i].logprobs;
            let alone = &loaded.logits(std::slice::from_ref(tokens))[0];
            let ways = [
                ("alone", alone.clone()),
                ("in a batch", together[i].clone()),
                ("token by token", loaded.chunked(tokens, &[1])),
                ("in pieces", loaded.chunked(tokens, &[5, 1, 16])),
                ("in one piece", loaded.chunked(tokens, &[1000])),
            ];
            for (how, logits) in ways {
                let all = logprobs(&logits, tokens);
                let gap = gap(&all[prompts[i].len() - 1..], sampled);
                assert!(
                    gap < SAME,
                    "{name}, prompt {i} {how}: {gap} from what sampling recorded"
                );
            }
        }
    }
}

/// SmolLM2-135M-Instruct, if it is on this machine: `RLEF_SMOLLM2` names its GGUF file or its folder, else it is where
/// `rlef model get smollm2-135m` puts it.
fn smollm2() -> Option<(Loaded, ChatTokenizer)> {
    let got = folder::cache().map(|cache| cache.join("smollm2-135m"));
    let path = match std::env::var_os("RLEF_SMOLLM2") {
        Some(path) => PathBuf::from(path),
        None => got.filter(|path| path.join(folder::WEIGHTS).exists())?,
    };
    if path.is_dir() {
        let files =
            folder::FILES.map(|name| (name.to_owned(), std::fs::read(path.join(name)).unwrap()));
        let (_, tokenizer) = folder::understand(&files, &path).unwrap();
        return Some((Loaded::open(&path), tokenizer));
    }
    let (files, named) = rlef_model::gguf::read(&path).unwrap();
    let (config, tokenizer) = folder::understand(&files, &path).unwrap();
    Some((Loaded::new(config, named, &path), tokenizer))
}

#[test]
fn smollm2_is_that_of_transformers() {
    let Some((loaded, tokenizer)) = smollm2() else {
        eprintln!(
            "SKIPPED: SmolLM2-135M is not here; run `rlef model get smollm2-135m`, or set RLEF_SMOLLM2 to its GGUF file"
        );
        return;
    };
    let expected = Numbers::open(&reference().join("smollm2.safetensors"));
    let prompts = expected.lists("tokens");
    assert!(prompts.iter().any(|p| p.len() > 512));
    // Transformers' tokens, as text and back; markers, which the text would leave out, are the first 17 tokens.
    for prompt in prompts.iter().filter(|p| p.iter().all(|&t| t >= 17)) {
        let tokens: Vec<u32> = prompt.iter().map(|&t| t as u32).collect();
        let text = tokenizer.decode(&tokens).unwrap();
        assert_eq!(tokenizer.encode(&text).unwrap(), tokens, "{text}");
    }
    let (short, long): (Vec<usize>, Vec<usize>) =
        (0..prompts.len()).partition(|&i| prompts[i].len() < 512);
    let mut largest = 0.0f32;
    for batch in [short.clone(), long.clone(), vec![0], vec![2]] {
        let these: Vec<Vec<i32>> = batch.iter().map(|&i| prompts[i].clone()).collect();
        for (i, logits) in batch.iter().zip(loaded.logits(&these)) {
            let v = logits.len() / prompts[*i].len();
            let list = |name: &str| expected.real(&format!("{name}.{i}"));
            let top_ids = expected.whole(&format!("top_ids.{i}"));
            for (p, &at) in expected.whole(&format!("at.{i}")).iter().enumerate() {
                let row = &logits[at as usize * v..][..v];
                let some: Vec<f32> = row.iter().copied().step_by(192).collect();
                let top: Vec<f32> = top_ids[p * 8..][..8]
                    .iter()
                    .map(|&t| row[t as usize])
                    .collect();
                for (what, gap) in [
                    (
                        "every 192nd logit",
                        gap(&some, &list("logits")[p * 256..][..256]),
                    ),
                    ("the largest logits", gap(&top, &list("top")[p * 8..][..8])),
                    (
                        "their sum of exponentials",
                        (logsumexp(row) as f32 - list("logsumexp")[p]).abs(),
                    ),
                ] {
                    assert!(gap < TOLERANCE, "prompt {i} at {at}, {what}: {gap}");
                    largest = largest.max(gap);
                }
            }
        }
    }
    eprintln!("SmolLM2-135M: logits differ by at most {largest:.1e}");
    for batch in [short, long] {
        let these: Vec<Vec<i32>> = batch.iter().map(|&i| prompts[i].clone()).collect();
        for (i, answer) in batch.iter().zip(loaded.answers(&these, &GREEDY)) {
            let got: Vec<i32> = answer.tokens.iter().map(|&t| t as i32).collect();
            assert_eq!(got, expected.whole(&format!("greedy.{i}")), "prompt {i}");
        }
    }
}
