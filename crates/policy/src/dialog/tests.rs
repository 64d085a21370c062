//! A model with random weights is enough: what matters is that the record alone decides.

use std::path::Path;
use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData};
use rlef_env::{Message, Role};
use rlef_model::{Frame, Llama, LlamaConfig, ModelFolder, Sampling, bpe, device, weights};
use rlef_problems::{Problem, ProblemSet};

use super::*;

const SAMPLING: Sampling = Sampling {
    temperature: 1.0,
    top_p: 1.0,
    top_k: 0,
    max_new_tokens: 12,
};

fn folder() -> ModelFolder {
    let config = serde_json::json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 280, "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 512, "tie_word_embeddings": true, "eos_token_id": 3, "initializer_range": 0.3,
    });
    let bytes = serde_json::to_vec(&config).unwrap();
    let parsed = LlamaConfig::parse(&bytes, Path::new("config.json")).unwrap();
    let mut files = vec![("config.json".to_owned(), bytes)];
    let texts = ["print the sum".to_owned(), "print the list".to_owned()];
    files.extend(bpe::train(&texts, 280).unwrap());
    let device = device::open("cpu").unwrap();
    let named = Llama::random(&parsed, 5, &device).to_named().unwrap();
    ModelFolder::from_parts(files, named, Path::new("test"), &device).unwrap()
}

fn policy(folder: &ModelFolder) -> LocalPolicy {
    let frame = Frame::new(&folder.config, &device::open("cpu").unwrap());
    LocalPolicy::new(
        folder.model.clone(),
        Arc::new(frame),
        Arc::new(folder.tokenizer.clone()),
        SAMPLING,
        0,
    )
}

fn problem() -> Problem {
    let set = ProblemSet::open("basics").unwrap();
    set.get("double-it").unwrap().clone()
}

fn add(messages: &mut Vec<Message>, answer: &str, feedback: &str) {
    messages.push(Message::new(Role::Assistant, answer));
    messages.push(Message::new(Role::User, feedback));
}

/// Log-probability of each token after the first, in one pass over all of them.
fn one_pass(folder: &ModelFolder, tokens: &[u32]) -> Vec<f32> {
    let device = device::open("cpu").unwrap();
    let frame = Frame::new(&folder.config, &device);
    let ids: Vec<i32> = tokens.iter().map(|&t| t as i32).collect();
    let t = ids.len();
    let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [1, t]), &device);
    let hidden = folder.model.hidden(ids, &frame);
    let d = folder.config.hidden_size;
    let logits = weights::values(folder.model.logits(hidden.reshape([t, d]))).unwrap();
    let rows = logits.chunks(logits.len() / t);
    let next = tokens.iter().skip(1);
    rows.zip(next)
        .map(|(row, &token)| {
            let total: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
            row[token as usize] - total.ln() as f32
        })
        .collect()
}

/// Every recorded log-probability is that of one pass over the record.
fn assert_record(folder: &ModelFolder, dialog: &Dialog) {
    let tokens = dialog.tokens();
    let logprobs = one_pass(folder, &tokens);
    let mut at = 0;
    for turn in dialog.turns() {
        at += turn.prompt.len();
        for (i, got) in turn.logprobs.iter().flatten().enumerate() {
            let want = logprobs[at + i - 1];
            assert!((got - want).abs() < 1e-4, "token {}: {got} {want}", at + i);
        }
        at += turn.answer.len();
    }
    assert_eq!(at, tokens.len());
}

#[test]
fn without_undo_it_is_an_ordinary_session() {
    let folder = folder();
    let policy = policy(&folder);
    let problem = problem();
    let mut dialog = Dialog::new(&policy);
    let mut session = policy.open();
    let mut messages = vec![Message::new(Role::User, "print the sum")];
    for turn in 0..3 {
        let seed = [turn as u8; 32];
        let a = dialog.answer(&problem, &messages, seed).unwrap();
        let ask = Ask {
            dialog: 7,
            problem: &problem,
            messages: &messages,
            turn,
            seed,
        };
        let reply = session.answer(&[ask]).unwrap().pop();
        assert_eq!(reply, Some(Reply::Answer(a.clone())));
        add(&mut messages, &a.text, "print the list");
    }
    assert_record(&folder, &dialog);
}

#[test]
fn a_turn_taken_back_and_answered_again_is_the_same() {
    let folder = folder();
    let policy = policy(&folder);
    let problem = problem();
    let mut dialog = Dialog::new(&policy);
    let mut messages = vec![Message::new(Role::User, "print the sum")];
    let first = dialog.answer(&problem, &messages, [1; 32]).unwrap();
    add(&mut messages, &first.text, "not so");
    let second = dialog.answer(&problem, &messages, [2; 32]).unwrap();
    let record = dialog.tokens();

    assert_eq!(dialog.undo().unwrap().answer.len(), second.tokens.len());
    let other = dialog.answer(&problem, &messages, [9; 32]).unwrap();
    assert_ne!(other.tokens, second.tokens);
    assert_record(&folder, &dialog);

    dialog.undo();
    let again = dialog.answer(&problem, &messages, [2; 32]).unwrap();
    assert_eq!((again.text, again.prompt), (second.text, second.prompt));
    assert_eq!(dialog.tokens(), record);
    assert_record(&folder, &dialog);

    dialog.undo();
    dialog.undo();
    assert!(dialog.undo().is_none() && dialog.tokens().is_empty());
    let anew = dialog.answer(&problem, &messages[..1], [1; 32]).unwrap();
    assert_eq!(anew, first);
}

#[test]
fn an_answer_of_somebody_else_is_read_as_if_the_model_had_given_it() {
    let folder = folder();
    let policy = policy(&folder);
    let problem = problem();
    let mut messages = vec![Message::new(Role::User, "print the sum")];
    let mut dialog = Dialog::new(&policy);
    dialog.take(&messages, "the sum is 3").unwrap();
    assert_eq!(dialog.turns()[0].logprobs, None);
    add(&mut messages, "the sum is 3", "print the list");
    let answer = dialog.answer(&problem, &messages, [3; 32]).unwrap();
    let whole = "<|user|>print the sum<|end|><|assistant|>the sum is 3<|end|>\
                 <|user|>print the list<|end|><|assistant|>";
    let mut record = policy.tokenizer().encode(whole).unwrap();
    record.extend(answer.tokens.iter().map(|(id, _)| id));
    assert_eq!(dialog.tokens(), record);
    assert_record(&folder, &dialog);
}

#[test]
fn a_dialog_without_room_ends_and_the_others_go_on() {
    let folder = folder();
    let policy = policy(&folder);
    let problem = problem();
    let seed = |dialog: usize, turn: usize| [(3 * dialog + turn) as u8; 32];
    let (long, short) = ("print the sum ".repeat(600), "print the list");
    let mut dialogs: Vec<_> = (0..3)
        .map(|_| vec![Message::new(Role::User, short)])
        .collect();
    let mut session = policy.open();
    let mut alone = Dialog::new(&policy);
    for turn in 0..3 {
        // The dialog in the middle gets a message in turn 1 that does not fit.
        let going: &[usize] = if turn < 2 { &[0, 1, 2] } else { &[0, 2] };
        let asks: Vec<Ask> = going
            .iter()
            .map(|&dialog| Ask {
                dialog,
                problem: &problem,
                messages: &dialogs[dialog],
                turn,
                seed: seed(dialog, turn),
            })
            .collect();
        let replies = session.answer(&asks).unwrap();
        let want = alone.answer(&problem, &dialogs[2], seed(2, turn)).unwrap();
        for (&dialog, reply) in going.iter().zip(replies) {
            let answer = match reply {
                Reply::Answer(answer) => answer,
                Reply::Full(full) => {
                    assert_eq!((dialog, turn, full.positions), (1, 1, 512));
                    assert!(full.needed > 512);
                    continue;
                }
            };
            assert!((dialog, turn) != (1, 1));
            if dialog == 2 {
                // What a row samples does not depend on the rows beside it; its numbers do in their last bits.
                let ids = |a: &Answer| a.tokens.iter().map(|t| t.0).collect::<Vec<_>>();
                assert_eq!(ids(&answer), ids(&want));
            }
            let feedback = if (dialog, turn) == (1, 0) {
                &long
            } else {
                short
            };
            add(&mut dialogs[dialog], &answer.text, feedback);
        }
    }
    // A person is told why, and can take the turn back.
    let mut messages = vec![Message::new(Role::User, short)];
    let mut dialog = Dialog::new(&policy);
    let first = dialog.answer(&problem, &messages, [1; 32]).unwrap();
    add(&mut messages, &first.text, &long);
    let error = dialog.answer(&problem, &messages, [2; 32]).unwrap_err();
    assert!(matches!(error, PolicyError::Full { .. }), "{error}");
    assert_eq!(dialog.turns().len(), 1);
    messages.truncate(1);
    add(&mut messages, &first.text, short);
    dialog.answer(&problem, &messages, [2; 32]).unwrap();
    assert_record(&folder, &dialog);
}

#[test]
fn a_changed_past_is_an_error_and_changes_nothing() {
    let folder = folder();
    let policy = policy(&folder);
    let problem = problem();
    let mut messages = vec![Message::new(Role::User, "print the sum")];
    let mut dialog = Dialog::new(&policy);
    let first = dialog.answer(&problem, &messages, [1; 32]).unwrap();
    add(&mut messages, &first.text, "not so");
    let record = dialog.tokens();
    let mut changed = messages.clone();
    changed[0].content = "print the list".into();
    assert!(dialog.answer(&problem, &changed, [2; 32]).is_err());
    assert!(dialog.take(&changed, "x").is_err());
    assert_eq!(dialog.tokens(), record);
    dialog.answer(&problem, &messages, [2; 32]).unwrap();
    assert_record(&folder, &dialog);
}
