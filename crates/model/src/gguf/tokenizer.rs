//! From a GGUF file's tokeniser to `tokenizer.json` and `tokenizer_config.json`.
//!
//! Byte-level BPE only (`gpt2`), as all models of the supported families have it, with the ways of splitting a text
//! before merging that they use.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::file::Value;

/// Kinds of tokens: of the model's own, and such as are matched in a text before it is split.
const CONTROL: f64 = 3.0;
const USER_DEFINED: f64 = 4.0;
const UNUSED: f64 = 5.0;

/// A text is cut into contractions, words, runs of digits, runs of other characters and white space (Llama 3 and Qwen2
/// differ in how many digits stay together).
fn words(digits: &str) -> String {
    format!(
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{{L}}\\p{{N}}]?\\p{{L}}+|\\p{{N}}{digits}| ?[^\\s\\p{{L}}\\p{{N}}]+[\\r\\n]*\
         |\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
    )
}

fn by_words(digits: &str) -> Json {
    json!({ "type": "Sequence", "pretokenizers": [
        {
            "type": "Split",
            "pattern": { "Regex": words(digits) },
            "behavior": "Isolated",
            "invert": false
        },
        byte_level(false),
    ]})
}

fn byte_level(use_regex: bool) -> Json {
    json!({
        "type": "ByteLevel",
        "add_prefix_space": false,
        "trim_offsets": true,
        "use_regex": use_regex
    })
}

/// Both files.
///
/// # Errors
/// A key that is missing, damaged, or names what is not supported.
pub(super) fn files(metadata: &BTreeMap<String, Value>) -> Result<[Json; 2], String> {
    let get = |key: &str| metadata.get(&format!("tokenizer.ggml.{key}"));
    let text = |key: &str| match get(key) {
        Some(Value::Text(text)) => Ok(text.as_str()),
        Some(other) => Err(format!(
            "metadata tokenizer.ggml.{key} is {other:?}, not a text"
        )),
        None => Err(format!("metadata tokenizer.ggml.{key} is missing")),
    };
    let texts = |key: &str| match get(key) {
        Some(Value::Texts(all)) => Ok(all),
        _ => Err(format!(
            "metadata tokenizer.ggml.{key} is missing or not a list of texts"
        )),
    };
    let model = text("model")?;
    if model != "gpt2" {
        return Err(format!(
            "metadata tokenizer.ggml.model is {model:?}; only byte-level BPE (\"gpt2\") is supported"
        ));
    }
    let (mut normalizer, mut ignore_merges) = (Json::Null, false);
    let pre_tokenizer = match text("pre")? {
        "llama-bpe" | "llama3" | "llama-v3" => {
            ignore_merges = true;
            by_words("{1,3}")
        }
        "qwen2" => {
            normalizer = json!({ "type": "NFC" });
            by_words("")
        }
        "smollm" => json!({ "type": "Sequence", "pretokenizers": [
            { "type": "Digits", "individual_digits": true },
            byte_level(true),
        ]}),
        "gpt-2" => byte_level(true),
        other => {
            return Err(format!(
                "metadata tokenizer.ggml.pre is {other:?}; only llama-bpe, qwen2, smollm and gpt-2 are supported"
            ));
        }
    };
    let tokens = texts("tokens")?;
    let kinds = match get("token_type") {
        Some(Value::Numbers(kinds)) if kinds.len() == tokens.len() => kinds,
        _ => {
            return Err(
                "metadata tokenizer.ggml.token_type is missing or not one number a token".into(),
            );
        }
    };
    let mut vocab = Map::new();
    let mut added = Vec::new();
    for (id, (token, &kind)) in tokens.iter().zip(kinds).enumerate() {
        if kind == UNUSED {
            continue;
        }
        if vocab.insert(token.clone(), id.into()).is_some() {
            return Err(format!(
                "metadata tokenizer.ggml.tokens has {token:?} twice"
            ));
        }
        if kind == CONTROL || kind == USER_DEFINED {
            added.push(json!({
                "id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": kind == CONTROL,
            }));
        }
    }
    let merges = texts("merges")?
        .iter()
        .map(|merge| {
            merge
                .split_once(' ')
                .map(|(a, b)| json!([a, b]))
                .ok_or(format!(
                    "metadata tokenizer.ggml.merges has {merge:?}, which is not a pair"
                ))
        })
        .collect::<Result<Vec<Json>, String>>()?;
    let special = |name: &str| -> Result<Json, String> {
        let key = format!("{name}_token_id");
        match get(&key) {
            None => Ok(Json::Null),
            Some(Value::Int(id)) => usize::try_from(*id)
                .ok()
                .and_then(|id| tokens.get(id))
                .map(|t| json!(t))
                .ok_or(format!(
                    "metadata tokenizer.ggml.{key} is {id}, of {} tokens",
                    tokens.len()
                )),
            Some(other) => Err(format!("metadata tokenizer.ggml.{key} is {other:?}")),
        }
    };
    let bos = special("bos")?;
    let begins = get("add_bos_token") == Some(&Value::Bool(true));
    let post_processor = match bos.as_str() {
        Some(bos) if begins => json!({
            "type": "TemplateProcessing",
            "single": [
                { "SpecialToken": { "id": bos, "type_id": 0 } },
                { "Sequence": { "id": "A", "type_id": 0 } },
            ],
            "pair": [
                { "SpecialToken": { "id": bos, "type_id": 0 } },
                { "Sequence": { "id": "A", "type_id": 0 } },
                { "SpecialToken": { "id": bos, "type_id": 1 } },
                { "Sequence": { "id": "B", "type_id": 1 } },
            ],
            "special_tokens": { bos: { "id": bos, "ids": [vocab.get(bos)], "tokens": [bos] } },
        }),
        _ => Json::Null,
    };
    let tokenizer = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": post_processor,
        "decoder": byte_level(true),
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "ignore_merges": ignore_merges,
            "vocab": vocab,
            "merges": merges,
        },
    });
    let mut config = json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": bos,
        "eos_token": special("eos")?,
        "unk_token": special("unknown")?,
        "pad_token": special("padding")?,
        "clean_up_tokenization_spaces": false,
    });
    match metadata.get("tokenizer.chat_template") {
        Some(Value::Text(template)) => config["chat_template"] = json!(template),
        _ => {
            return Err(
                "metadata tokenizer.chat_template is missing; use the file of an instruct model"
                    .into(),
            );
        }
    }
    Ok([tokenizer, config])
}
