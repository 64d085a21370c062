//! Which keys of a `config.json` are understood, and what they must be.
//!
//! A key is one of: a field of [`LlamaConfig`](super::LlamaConfig); a matter of other programs ([`ELSEWHERE`]); a switch
//! that must be off because nothing here does what it asks for; or unknown. What is unknown and not switched off is an
//! error.

use serde_json::{Map, Value};

use super::Family;

/// Fields of [`LlamaConfig`](super::LlamaConfig).
const FIELDS: [&str; 19] = [
    "architectures",
    "model_type",
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "max_position_embeddings",
    "rms_norm_eps",
    "rope_theta",
    "rope_scaling",
    "tie_word_embeddings",
    "hidden_act",
    "bos_token_id",
    "eos_token_id",
    "initializer_range",
    "torch_dtype",
];

/// Keys that say how other programs load, label, cache or sample; logits do not depend on them.
const ELSEWHERE: [&str; 49] = [
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_name_or_path",
    "attn_implementation",
    "bad_words_ids",
    "begin_suppress_tokens",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "id2label",
    "is_llama_config",
    "label2id",
    "length_penalty",
    "max_length",
    "max_window_layers",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "pad_token_id",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "use_cache",
];

/// The family that the two keys name.
pub(super) fn family(architectures: &[String], model_type: Option<&str>) -> Result<Family, String> {
    let known = || {
        let names = Family::ALL.map(Family::architecture);
        names.join(", ")
    };
    let unknown = || {
        format!(
            "architecture {architectures:?} (model_type {:?}) is not supported; there are {}",
            model_type.unwrap_or_default(),
            known()
        )
    };
    let found = match model_type {
        Some(name) => Family::ALL.into_iter().find(|f| f.model_type() == name),
        None if architectures.is_empty() => Some(Family::Llama),
        None => Family::ALL
            .into_iter()
            .find(|f| architectures.iter().any(|a| a == f.architecture())),
    }
    .ok_or_else(unknown)?;
    if architectures.is_empty() || architectures.iter().any(|a| a == found.architecture()) {
        Ok(found)
    } else {
        Err(unknown())
    }
}

/// Checks every key and gives the fields of [`LlamaConfig`](super::LlamaConfig).
///
/// # Errors
/// A key that would change the numbers and is not understood.
pub(super) fn understand(file: Value) -> Result<Value, String> {
    let Value::Object(mut map) = file else {
        return Err("is not a JSON object".into());
    };
    let architectures = match map.get("architectures") {
        None | Some(Value::Null) => vec![],
        Some(Value::Array(names)) => names
            .iter()
            .map(|n| n.as_str().unwrap_or_default().to_owned())
            .collect(),
        Some(other) => return Err(format!("architectures is {other}, not a list of names")),
    };
    let family = family(
        &architectures,
        map.get("model_type").and_then(Value::as_str),
    )?;
    map.insert("model_type".into(), family.model_type().into());
    map.insert("architectures".into(), vec![family.architecture()].into());
    newer_names(&mut map)?;
    for key in required(family) {
        if map.get(*key).is_none_or(Value::is_null) {
            return Err(format!(
                "{key} is missing; a {} model must state it",
                family.model_type()
            ));
        }
    }
    let windows = map.get("use_sliding_window") == Some(&Value::Bool(true));
    let mut fields = Map::new();
    for (key, value) in map {
        if FIELDS.contains(&key.as_str()) {
            // Absent and null mean the same.
            if !value.is_null() {
                fields.insert(key, value);
            }
        } else if !ELSEWHERE.contains(&key.as_str()) {
            harmless(&key, &value, family, windows)?;
        }
    }
    Ok(Value::Object(fields))
}

/// Keys whose default in the family's own code is not the one that Llama has.
fn required(family: Family) -> &'static [&'static str] {
    match family {
        Family::Llama => &[],
        Family::Qwen2 => &["num_key_value_heads", "max_position_embeddings"],
        Family::Qwen3 => &["num_key_value_heads", "max_position_embeddings", "head_dim"],
    }
}

/// Brings the names that transformers writes since its version 5 (`rope_parameters`, `dtype`) to the older ones, and
/// checks what the rotary scaling holds.
fn newer_names(map: &mut Map<String, Value>) -> Result<(), String> {
    if let Some(dtype) = map.remove("dtype")
        && !dtype.is_null()
    {
        map.insert("torch_dtype".into(), dtype);
    }
    let rope = match map.remove("rope_parameters") {
        None | Some(Value::Null) => None,
        Some(Value::Object(rope)) => Some(("rope_parameters", rope)),
        Some(other) => return Err(format!("rope_parameters is {other}, not an object")),
    };
    let scaling = match map.remove("rope_scaling") {
        None | Some(Value::Null) => None,
        Some(Value::Object(rope)) => Some(("rope_scaling", rope)),
        Some(other) => return Err(format!("rope_scaling is {other}, not an object")),
    };
    for (name, mut rope) in [rope, scaling].into_iter().flatten() {
        if let Some(kind) = rope.remove("type")
            && *rope.entry("rope_type").or_insert(kind.clone()) != kind
        {
            return Err(format!("{name}: type and rope_type differ"));
        }
        if let Some(theta) = rope.remove("rope_theta") {
            let before = map.entry("rope_theta").or_insert(theta.clone());
            if before.as_f64() != theta.as_f64() {
                return Err(format!(
                    "rope_theta is {before}, but {theta} in {name}; only one can be meant"
                ));
            }
        }
        let kind = rope.get("rope_type").cloned().unwrap_or("default".into());
        let llama3 = match kind.as_str() {
            Some("default") => false,
            Some("llama3") => true,
            _ => {
                return Err(format!(
                    "{name}: rotary positions of type {kind} are not supported, only \"default\" and \"llama3\""
                ));
            }
        };
        for (key, value) in &rope {
            let known = match key.as_str() {
                "rope_type" => true,
                "factor"
                | "low_freq_factor"
                | "high_freq_factor"
                | "original_max_position_embeddings" => llama3,
                "partial_rotary_factor" => value.as_f64() == Some(1.0),
                _ => value.is_null(),
            };
            if !known {
                return Err(format!(
                    "{name}: {key} = {value} is not supported with rotary positions of type {kind}"
                ));
            }
        }
        if llama3 {
            rope.remove("partial_rotary_factor");
            let scaling = Value::Object(rope);
            if let Some(other) = map.insert("rope_scaling".into(), scaling.clone())
                && other != scaling
            {
                return Err("rope_scaling and rope_parameters differ".into());
            }
        }
    }
    Ok(())
}

/// Whether a key that nothing here reads is at the value at which it changes nothing.
fn harmless(key: &str, value: &Value, family: Family, windows: bool) -> Result<(), String> {
    let off = matches!(value, Value::Null | Value::Bool(false));
    let is = |x: f64| value.as_f64() == Some(x);
    let (fine, only) = match key {
        // Qwen's code has its biases whatever this says.
        "attention_bias" if family == Family::Qwen2 => (true, ""),
        // In Qwen's files a number stands here that is used only where the switch below is on.
        "sliding_window" if family != Family::Llama => (off || !windows, "null"),
        "layer_types" => (
            value
                .as_array()
                .is_some_and(|all| all.iter().all(|t| t == "full_attention"))
                || off,
            "\"full_attention\" in every layer",
        ),
        "attention_dropout" | "hidden_dropout" | "resid_pdrop" | "embd_pdrop" => {
            (off || is(0.0), "0")
        }
        "chunk_size_feed_forward" => (off || is(0.0), "0"),
        "partial_rotary_factor" => (off || is(1.0), "1"),
        "pruned_heads" => (
            off || value.as_object().is_some_and(Map::is_empty),
            "no heads",
        ),
        "attention_bias"
        | "mlp_bias"
        | "sliding_window"
        | "use_sliding_window"
        | "rope_interleaved"
        | "quantization_config"
        | "add_cross_attention"
        | "is_decoder"
        | "is_encoder_decoder"
        | "cross_attention_hidden_size"
        | "tie_encoder_decoder"
        | "use_mrope" => (off, "false or null"),
        _ if off => (true, ""),
        _ => {
            return Err(format!(
                "{key} is not a known key, and what it asks for might change the model's numbers; if it does not, \
                 take it out of the file"
            ));
        }
    };
    if fine {
        Ok(())
    } else {
        Err(format!("{key} = {value} is not supported, only {only}"))
    }
}
