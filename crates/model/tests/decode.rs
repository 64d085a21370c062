//! Decoding with the cache against one pass over the whole sequence.

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rlef_model::{Ask, Frame, Generator, Llama, LlamaConfig, Sampled, Sampling, ops, weights};

fn config(extra: &str) -> LlamaConfig {
    let text = format!(
        r#"{{"vocab_size": 40, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
            "initializer_range": 0.3 {extra}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

const SAMPLING: Sampling = Sampling {
    temperature: 1.0,
    top_p: 1.0,
    top_k: 0,
    max_new_tokens: 9,
};

fn rng(dialog: u64, turn: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(dialog * 100 + turn)
}

fn prompt(dialog: u64, turn: u64) -> Vec<u32> {
    let length = 1 + (dialog * 5 + turn * 3) % 11;
    (0..length)
        .map(|i| ((dialog + 1) * 13 + turn * 7 + i * 3) as u32 % 40)
        .collect()
}

/// A dialog's tokens, and its answers with where they begin.
type Played = (Vec<u32>, Vec<(usize, Sampled)>);

/// Two turns of the given dialogs side by side.
fn play(model: &Llama, frame: &Frame, dialogs: &[u64]) -> Vec<Played> {
    let mut generator = Generator::new(model, frame, dialogs.len());
    let mut all: Vec<Played> = vec![(vec![], vec![]); dialogs.len()];
    for turn in 0..2 {
        let prompts: Vec<Vec<u32>> = dialogs.iter().map(|&d| prompt(d, turn)).collect();
        let asks = prompts
            .iter()
            .zip(dialogs)
            .map(|(p, &d)| Ask {
                append: p,
                rng: rng(d, turn),
            })
            .collect();
        let answers = generator.turn(asks, &SAMPLING, &[5, 6, 7]).unwrap();
        for ((tokens, answered), (p, a)) in all.iter_mut().zip(prompts.iter().zip(answers)) {
            tokens.extend(p);
            answered.push((tokens.len(), a.clone()));
            tokens.extend(a.tokens);
        }
    }
    all
}

/// Log-probability of every token after the first under one pass.
fn whole(model: &Llama, frame: &Frame, tokens: &[u32]) -> Vec<f32> {
    let device = Device::flex();
    let n = tokens.len();
    let ids: Vec<i32> = tokens.iter().map(|&t| t as i32).collect();
    let input = Tensor::<2, Int>::from_data(TensorData::new(ids.clone(), [1, n]), &device);
    let hidden = model
        .hidden(input, frame)
        .reshape([n, 32])
        .slice([0..n - 1, 0..32]);
    let targets = Tensor::<1, Int>::from_data(&ids[1..], &device);
    let (logprobs, _) = ops::pick_logprobs(model.logits(hidden), targets);
    weights::values(logprobs).unwrap()
}

#[test]
fn what_is_recorded_while_sampling_is_what_one_pass_computes() {
    for extra in [
        "",
        r#", "tie_word_embeddings": true"#,
        r#", "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 64}"#,
    ] {
        let config = config(extra);
        config.check().unwrap();
        let device = Device::flex();
        let model = Llama::random(&config, 11, &device);
        let frame = Frame::new(&config, &device);
        for (tokens, answers) in play(&model, &frame, &[0, 1, 2, 3, 4]) {
            let want = whole(&model, &frame, &tokens);
            for (from, answer) in answers {
                assert!(!answer.tokens.is_empty());
                for (i, lp) in answer.logprobs.iter().enumerate() {
                    let w = want[from + i - 1];
                    assert!((lp - w).abs() < 2e-4, "token {i}: {lp} is not {w}");
                }
                let ended = answer.tokens.last().is_some_and(|t| [5, 6, 7].contains(t));
                assert_eq!(ended, answer.finished);
                assert!(answer.finished || answer.tokens.len() == SAMPLING.max_new_tokens);
            }
        }
    }
}

#[test]
fn a_dialog_is_the_same_in_any_company() {
    let config = config("");
    let device = Device::flex();
    let model = Llama::random(&config, 12, &device);
    let frame = Frame::new(&config, &device);
    let together = play(&model, &frame, &[0, 1, 2, 3, 4, 5, 6]);
    let backwards = play(&model, &frame, &[6, 5, 4, 3, 2, 1, 0]);
    for (d, (tokens, _)) in together.iter().enumerate() {
        assert_eq!(tokens, &backwards[6 - d].0, "dialog {d} in another order");
        assert_eq!(
            tokens,
            &play(&model, &frame, &[d as u64])[0].0,
            "dialog {d} alone"
        );
    }
}

#[test]
fn rows_can_leave() {
    let config = config("");
    let device = Device::flex();
    let model = Llama::random(&config, 13, &device);
    let frame = Frame::new(&config, &device);
    let mut generator = Generator::new(&model, &frame, 4);
    let turn = |generator: &mut Generator, dialogs: &[u64], turn: u64| {
        let prompts: Vec<Vec<u32>> = dialogs.iter().map(|&d| prompt(d, turn)).collect();
        let asks = prompts
            .iter()
            .zip(dialogs)
            .map(|(p, &d)| Ask {
                append: p,
                rng: rng(d, turn),
            })
            .collect();
        generator.turn(asks, &SAMPLING, &[5]).unwrap()
    };
    turn(&mut generator, &[0, 1, 2, 3], 0);
    generator.keep(&[3, 1]);
    let kept = turn(&mut generator, &[3, 1], 1);
    let mut alone = Generator::new(&model, &frame, 1);
    turn(&mut alone, &[3], 0);
    assert_eq!(kept[0].tokens, turn(&mut alone, &[3], 1)[0].tokens);
}

#[test]
fn too_long_a_dialog_is_an_error() {
    let config = config("");
    let device = Device::flex();
    let model = Llama::random(&config, 14, &device);
    let frame = Frame::new(&config, &device);
    let mut generator = Generator::new(&model, &frame, 1);
    let ask = Ask {
        append: &[1; 125],
        rng: rng(0, 0),
    };
    let error = generator
        .turn(vec![ask], &SAMPLING, &[5])
        .unwrap_err()
        .to_string();
    assert!(error.contains("128 positions"), "{error}");
    let ask = Ask {
        append: &[],
        rng: rng(0, 0),
    };
    assert!(generator.turn(vec![ask], &SAMPLING, &[5]).is_err());
}

#[test]
fn weights_survive_a_round_trip_and_misfits_are_named() {
    let config = config("");
    let device = Device::flex();
    let model = Llama::random(&config, 15, &device);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    let named = model.to_named().unwrap();
    weights::write_file(&path, &named).unwrap();
    let read = weights::read_dir(dir.path()).unwrap();
    assert!(read == named);
    let again = Llama::from_named(read, &config, &path, &device).unwrap();
    assert!(again.to_named().unwrap() == named);

    let error = |change: &dyn Fn(&mut weights::Named)| {
        let mut named = named.clone();
        change(&mut named);
        Llama::from_named(named, &config, &path, &device)
            .unwrap_err()
            .to_string()
    };
    assert!(error(&|n| drop(n.remove("model.norm.weight"))).contains("model.norm.weight: missing"));
    assert!(
        error(&|n| n.get_mut("model.norm.weight").unwrap().0 = vec![31]).contains("has shape [31]")
    );
    let extra = error(&|n| {
        drop(n.insert(
            "model.layers.0.self_attn.q_proj.bias".into(),
            (vec![1], vec![0.0]),
        ))
    });
    assert!(
        extra.contains("q_proj.bias") && extra.contains("not part"),
        "{extra}"
    );

    let bytes = std::fs::read(&path).unwrap();
    for cut in [0, 7, 20, bytes.len() / 2, bytes.len() - 1] {
        assert!(
            weights::parse(&bytes[..cut], &path).is_err(),
            "cut at {cut}"
        );
    }
}
