//! Chat templates as Hugging Face transformers renders them, and dialogs that only grow.

mod common;

use common::reference;
use rlef_model::{ChatMessage, ChatTokenizer};
use serde_json::Value;

const TEMPLATES: [&str; 3] = ["llama3.1", "smollm2", "qwen3"];

fn tokenizer(template: &str) -> ChatTokenizer {
    let dir = reference().join("templates");
    let text = std::fs::read_to_string(dir.join(format!("{template}.jinja"))).unwrap();
    let end = if template == "llama3.1" {
        "<|eot_id|>"
    } else {
        "<|im_end|>"
    };
    let config = serde_json::json!({
        "chat_template": text, "bos_token": "<|begin_of_text|>", "eos_token": end,
    });
    let file = tokenizers::Tokenizer::from_file(dir.join("tokenizer.json")).unwrap();
    ChatTokenizer::new(file, &config, &[]).unwrap()
}

/// The dialogs of a template: name, messages, and what transformers makes of them.
fn dialogs(template: &str) -> Vec<(String, Vec<ChatMessage>, Value)> {
    let text = std::fs::read(reference().join("templates/expected.json")).unwrap();
    let all: Value = serde_json::from_slice(&text).unwrap();
    let of = all[template].as_object().unwrap();
    of.iter()
        .map(|(name, dialog)| {
            let messages = serde_json::from_value(dialog["messages"].clone()).unwrap();
            (name.clone(), messages, dialog.clone())
        })
        .collect()
}

#[test]
fn templates_are_rendered_as_transformers_renders_them() {
    for template in TEMPLATES {
        let tokenizer = tokenizer(template);
        let dialogs = dialogs(template);
        assert_eq!(dialogs.len(), 5);
        for (name, messages, want) in dialogs {
            let text = tokenizer.render(&messages, true).unwrap();
            assert_eq!(text, want["text"], "{template}, {name}");
            let tokens = serde_json::json!(tokenizer.encode(&text).unwrap());
            assert_eq!(tokens, want["tokens"], "{template}, {name}");
            if messages.len() > 2 {
                let ended = tokenizer
                    .render(&messages[..messages.len() - 1], false)
                    .unwrap();
                assert_eq!(ended, want["ended"], "{template}, {name}");
            }
        }
    }
}

/// Plays a dialog turn by turn as if its answers had been sampled: what each turn appends, and all of it.
fn record(tokenizer: &ChatTokenizer, messages: &[ChatMessage]) -> Vec<u32> {
    let mut record: Vec<u32> = vec![];
    let mut before: Vec<String> = vec![];
    let end = tokenizer.eos_ids()[0];
    for (i, message) in messages.iter().enumerate() {
        match message.role.as_str() {
            "assistant" => {
                record.extend(tokenizer.encode(&message.content).unwrap());
                record.push(end);
            }
            "user" => {
                let pieces = tokenizer.segments(&messages[..=i]).unwrap();
                assert_eq!(pieces[..before.len()], before, "earlier turns are changed");
                let new = pieces.last().unwrap();
                // The answer's end is in the record already.
                let new = match before.is_empty() {
                    true => new,
                    false => new.strip_prefix(&tokenizer.piece(end)).unwrap(),
                };
                record.extend(tokenizer.encode(new).unwrap());
                before = pieces;
            }
            _ => {}
        }
    }
    record
}

/// Where a template leaves earlier answers as they are, the record is what transformers makes of the whole dialog.
#[test]
fn three_turns_appended_are_the_tokens_of_the_whole() {
    for template in TEMPLATES {
        let tokenizer = tokenizer(template);
        for (name, messages, want) in dialogs(template) {
            if template == "qwen3" && name == "thoughts" {
                continue;
            }
            let record = record(&tokenizer, &messages);
            assert_eq!(
                serde_json::json!(record),
                want["tokens"],
                "{template}, {name}"
            );
        }
    }
}

/// Qwen3's template drops the thoughts of earlier turns. The record keeps them: they were sampled, and it only grows.
#[test]
fn thoughts_that_a_template_would_drop_stay_in_the_record() {
    let tokenizer = tokenizer("qwen3");
    let (_, messages, want) = dialogs("qwen3")
        .into_iter()
        .find(|(name, ..)| name == "thoughts")
        .unwrap();
    assert!(!want["text"].as_str().unwrap().contains("<think>"));
    let record = record(&tokenizer, &messages);
    let thought = tokenizer.encode("<think>").unwrap();
    assert_eq!(thought.len(), 1);
    assert_eq!(record.iter().filter(|&&t| t == thought[0]).count(), 2);
    // All of it, with nothing else changed.
    let text: String = record.iter().map(|&t| tokenizer.piece(t)).collect();
    let whole = want["text"].as_str().unwrap();
    let without: String = text
        .split("<think>\nTwo numbers, one line.\n</think>\n\n")
        .collect();
    // Pieces of a letter of several bytes are no text by themselves.
    let letters = |text: &str| -> String { text.chars().filter(char::is_ascii).collect() };
    assert_eq!(letters(&without), letters(whole));
}

#[test]
fn a_template_that_rewrites_says_so() {
    let said = |template| tokenizer(template).rewrites().unwrap();
    assert_eq!(said("llama3.1"), None);
    assert_eq!(said("smollm2"), None);
    assert_eq!(said("qwen3").as_deref(), Some("rlef-probe-answer"));
}
