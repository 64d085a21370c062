//! From what a GGUF file says to the files and tensors of a Hugging Face folder.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use super::file::{Gguf, Value};
use super::tokenizer;
use crate::ModelError;
use crate::config::{Family, LlamaConfig, RopeScaling};
use crate::weights::{self, Named};

/// Tensors outside of the blocks: name in the file, name at Hugging Face.
const OUTSIDE: [(&str, &str); 3] = [
    ("token_embd.weight", "model.embed_tokens.weight"),
    ("output_norm.weight", "model.norm.weight"),
    ("output.weight", "lm_head.weight"),
];

/// Tensors of a block: name in the file, name at Hugging Face.
const BLOCK: [(&str, &str); 11] = [
    ("attn_norm", "input_layernorm"),
    ("ffn_norm", "post_attention_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("attn_q_norm", "self_attn.q_norm"),
    ("attn_k_norm", "self_attn.k_norm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

/// Divisors of the rotary frequencies, in files of Llama 3.1 and later.
const ROPE_FACTORS: &str = "rope_freqs.weight";

/// Contents of the files of a folder other than its weights, by name.
pub type Files = Vec<(String, Vec<u8>)>;

/// Reads a file: the contents of `config.json`, `tokenizer.json` and `tokenizer_config.json`, and the tensors in f32 by
/// their Hugging Face names.
///
/// # Errors
/// What is not understood or missing, by the name of the tensor or of the key in the metadata.
pub fn read(path: &Path) -> Result<(Files, Named), ModelError> {
    let file = Gguf::open(path)?;
    let files = file.files()?;
    let (_, config) = config(&file)?;
    // Before anything large is read.
    weights::fits(file.shapes()?, &config, path).map_err(|error| match error {
        ModelError::Weights { path, tensor, why } => ModelError::Weights {
            path,
            tensor: original(&tensor).unwrap_or(tensor),
            why,
        },
        other => other,
    })?;
    Ok((files, tensors(&file, &config)?))
}

impl Gguf {
    /// The contents of the files of a Hugging Face folder other than the weights.
    ///
    /// # Errors
    /// As [`read`].
    pub fn files(&self) -> Result<Files, ModelError> {
        let path = self.path();
        let (config, _) = config(self)?;
        let fail = |why: String| ModelError::Gguf {
            path: path.to_owned(),
            why,
        };
        let [tokenizer, tokenizer_config] = tokenizer::files(&self.metadata).map_err(fail)?;
        [
            ("config.json", config),
            ("tokenizer.json", tokenizer),
            ("tokenizer_config.json", tokenizer_config),
        ]
        .into_iter()
        .map(|(name, value)| Ok((name.to_owned(), pretty(&value, path)?)))
        .collect()
    }

    /// The shapes of the tensors under their Hugging Face names.
    ///
    /// # Errors
    /// A tensor that no supported model has.
    pub fn shapes(&self) -> Result<BTreeMap<String, Vec<usize>>, ModelError> {
        let known = self
            .tensors
            .iter()
            .filter(|(name, _)| *name != ROPE_FACTORS);
        known
            .map(|(name, info)| Ok((hugging_face_name(name, self)?, info.shape.clone())))
            .collect()
    }
}

fn hugging_face_name(name: &str, file: &Gguf) -> Result<String, ModelError> {
    renamed(name).ok_or_else(|| ModelError::Weights {
        path: file.path().to_owned(),
        tensor: name.to_owned(),
        why: "is not part of this architecture; the file is of another kind of model".into(),
    })
}

fn pretty(value: &serde_json::Value, path: &Path) -> Result<Vec<u8>, ModelError> {
    serde_json::to_vec_pretty(value).map_err(|e| ModelError::Gguf {
        path: path.to_owned(),
        why: e.to_string(),
    })
}

/// Takes values out of the metadata of one architecture.
struct Keys<'a> {
    file: &'a Gguf,
    prefix: &'static str,
    taken: Vec<String>,
}

impl Keys<'_> {
    fn fail(&self, key: &str, why: impl std::fmt::Display) -> ModelError {
        ModelError::Gguf {
            path: self.file.path().to_owned(),
            why: format!("metadata {}.{key} {why}", self.prefix),
        }
    }

    fn get(&mut self, key: &str) -> Option<&Value> {
        let name = format!("{}.{key}", self.prefix);
        self.taken.push(name.clone());
        self.file.metadata.get(&name)
    }

    /// A count, if it is there.
    fn count(&mut self, key: &str) -> Result<Option<usize>, ModelError> {
        let value = self.get(key).cloned();
        match value {
            None => Ok(None),
            Some(Value::Int(n)) => usize::try_from(n)
                .map(Some)
                .map_err(|_| self.fail(key, format!("is {n}"))),
            Some(other) => Err(self.fail(key, format!("is {other:?}, not one whole number"))),
        }
    }

    fn needed(&mut self, key: &str) -> Result<usize, ModelError> {
        self.count(key)?.ok_or_else(|| self.fail(key, "is missing"))
    }

    /// A number, if it is there.
    fn number(&mut self, key: &str) -> Result<Option<f64>, ModelError> {
        let value = self.get(key).cloned();
        match value {
            None => Ok(None),
            // Stored in f32: the shortest decimal number that means it is what the model was made with.
            Some(Value::Float(x)) => Ok(format!("{}", x as f32).parse().ok()),
            Some(Value::Int(n)) => Ok(Some(n as f64)),
            Some(other) => Err(self.fail(key, format!("is {other:?}, not a number"))),
        }
    }
}

/// `config.json`, as written and as read back.
fn config(file: &Gguf) -> Result<(serde_json::Value, LlamaConfig), ModelError> {
    let fail = |why: String| ModelError::Gguf {
        path: file.path().to_owned(),
        why,
    };
    let family = match file.metadata.get("general.architecture") {
        Some(Value::Text(name)) => Family::ALL
            .into_iter()
            .find(|f| f.model_type() == name)
            .ok_or_else(|| {
                let known = Family::ALL.map(Family::model_type).join(", ");
                fail(format!(
                    "architecture {name:?} is not supported; there are {known}"
                ))
            })?,
        _ => return Err(fail("metadata general.architecture is missing".into())),
    };
    let mut keys = Keys {
        file,
        prefix: family.model_type(),
        taken: vec![],
    };
    let width = keys.needed("embedding_length")?;
    let heads = keys.needed("attention.head_count")?;
    let head_size = match keys.count("attention.key_length")? {
        Some(n) => n,
        None => width / heads.max(1),
    };
    for key in ["attention.value_length", "rope.dimension_count"] {
        if let Some(n) = keys.count(key)?
            && n != head_size
        {
            return Err(keys.fail(key, format!("is {n}, but heads are {head_size} wide")));
        }
    }
    if let Some(scaling) = keys.get("rope.scaling.type").cloned()
        && scaling != Value::Text("none".into())
    {
        return Err(keys.fail(
            "rope.scaling.type",
            format!("is {scaling:?}: not supported"),
        ));
    }
    let stated_vocab = keys.count("vocab_size")?;
    let table = "token_embd.weight";
    let vocab = match file.tensors.get(table).map(|t| t.shape.as_slice()) {
        Some(&[rows, _]) if stated_vocab.is_none_or(|n| n == rows) => rows,
        shape => {
            return Err(ModelError::Weights {
                path: file.path().to_owned(),
                tensor: table.into(),
                why: format!("has shape {shape:?}, the metadata says {stated_vocab:?} tokens"),
            });
        }
    };
    let theta = keys.number("rope.freq_base")?.unwrap_or(10_000.0);
    let token = |name: &str| match file
        .metadata
        .get(&format!("tokenizer.ggml.{name}_token_id"))
    {
        Some(Value::Int(id)) => json!(*id as i64),
        _ => json!(null),
    };
    let mut config = json!({
        "architectures": [family.architecture()],
        "model_type": family.model_type(),
        "vocab_size": vocab,
        "hidden_size": width,
        "intermediate_size": keys.needed("feed_forward_length")?,
        "num_hidden_layers": keys.needed("block_count")?,
        "num_attention_heads": heads,
        "num_key_value_heads": keys.count("attention.head_count_kv")?.unwrap_or(heads),
        "head_dim": head_size,
        "max_position_embeddings": keys.needed("context_length")?,
        "rms_norm_eps": keys
            .number("attention.layer_norm_rms_epsilon")?
            .ok_or_else(|| keys.fail("attention.layer_norm_rms_epsilon", "is missing"))?,
        "rope_theta": theta,
        "tie_word_embeddings": !file.tensors.contains_key("output.weight"),
        "hidden_act": "silu",
        "bos_token_id": token("bos"),
        "eos_token_id": match (token("eos"), token("eot")) {
            (eos, eot) if eot.is_null() || eos == eot => eos,
            (eos, eot) => json!([eos, eot]),
        },
        "torch_dtype": "float32",
    });
    if file.tensors.contains_key(ROPE_FACTORS) {
        config["rope_scaling"] = scaling(file, head_size, theta)?;
    }
    let own = format!("{}.", family.model_type());
    for (key, value) in &file.metadata {
        let off = match value {
            Value::Int(0) | Value::Bool(false) => true,
            Value::Float(x) => *x == 0.0,
            Value::Text(text) => text.is_empty() || text == "none",
            _ => false,
        };
        if key.starts_with(&own) && !keys.taken.contains(key) && !off {
            return Err(fail(format!(
                "metadata {key} is not known, and what it asks for might change the model's numbers"
            )));
        }
    }
    let bytes = serde_json::to_vec(&config).map_err(|e| fail(e.to_string()))?;
    let parsed = LlamaConfig::parse(&bytes, file.path())?;
    Ok((config, parsed))
}

/// The scaling of type `llama3` whose divisors the file holds.
///
/// Only the divisors are stored, not what they were computed from. The published models share all numbers but the
/// factor, which is the largest divisor; whether they explain the others is checked.
fn scaling(file: &Gguf, head_size: usize, theta: f64) -> Result<serde_json::Value, ModelError> {
    let divisors = file.values(ROPE_FACTORS)?;
    let factor = divisors.iter().copied().fold(1.0, f32::max);
    let scaling = RopeScaling {
        rope_type: "llama3".into(),
        factor: factor.into(),
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_max_position_embeddings: 8192.0,
    };
    let explained = divisors.len() == head_size / 2
        && divisors.iter().enumerate().all(|(i, &divisor)| {
            let f = theta.powf(-2.0 * i as f64 / head_size as f64);
            let expected = f / scaling.stretch(f);
            (f64::from(divisor) / expected - 1.0).abs() < 1e-4
        });
    if explained {
        Ok(json!({
            "rope_type": scaling.rope_type,
            "factor": scaling.factor,
            "low_freq_factor": scaling.low_freq_factor,
            "high_freq_factor": scaling.high_freq_factor,
            "original_max_position_embeddings": scaling.original_max_position_embeddings as u64,
        }))
    } else {
        Err(ModelError::Weights {
            path: file.path().to_owned(),
            tensor: ROPE_FACTORS.into(),
            why: "holds other divisors than Llama 3.1's rotary scaling has; only that is supported"
                .into(),
        })
    }
}

/// All tensors under their Hugging Face names.
fn tensors(file: &Gguf, config: &LlamaConfig) -> Result<Named, ModelError> {
    let mut named = Named::new();
    for (name, info) in &file.tensors {
        if name == ROPE_FACTORS {
            continue;
        }
        let fail = |why: String| ModelError::Weights {
            path: file.path().to_owned(),
            tensor: name.clone(),
            why,
        };
        let to = hugging_face_name(name, file)?;
        let heads = match name.rsplit('.').nth(1) {
            Some("attn_q") => Some(config.num_attention_heads),
            Some("attn_k") => Some(config.kv_heads()),
            _ => None,
        };
        let mut values = file.values(name)?;
        if let Some(heads) = heads.filter(|_| config.family() == Family::Llama) {
            let e = config.head_size();
            if info.shape[0] != heads * e {
                return Err(fail(format!(
                    "has shape {:?}, the metadata asks for {heads} heads of {e} rows",
                    info.shape
                )));
            }
            values = unpermute(&values, e, values.len() / info.shape[0]);
        }
        named.insert(to, (info.shape.clone(), values));
    }
    Ok(named)
}

/// The Hugging Face name of a tensor in a file.
fn renamed(name: &str) -> Option<String> {
    if let Some((_, to)) = OUTSIDE.iter().find(|(from, _)| *from == name) {
        return Some((*to).into());
    }
    let mut parts = name.split('.');
    let (block, number, part, kind) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let layer: usize = number.parse().ok()?;
    let known = block == "blk"
        && parts.next().is_none()
        && number == layer.to_string()
        && matches!(kind, "weight" | "bias");
    let (_, to) = BLOCK.iter().find(|(from, _)| known && *from == part)?;
    Some(format!("model.layers.{layer}.{to}.{kind}"))
}

/// The name in a file of a tensor with that Hugging Face name.
fn original(name: &str) -> Option<String> {
    if let Some((from, _)) = OUTSIDE.iter().find(|(_, to)| *to == name) {
        return Some((*from).into());
    }
    let (stem, kind) = name.strip_prefix("model.layers.")?.rsplit_once('.')?;
    let (layer, part) = stem.split_once('.')?;
    let (from, _) = BLOCK.iter().find(|(_, to)| *to == part)?;
    Some(format!("blk.{layer}.{from}.{kind}"))
}

/// Rows of q or k in Hugging Face's order. Llama's files have the two components that are rotated together side by
/// side; Hugging Face has all first ones of a head before all second ones.
fn unpermute(values: &[f32], head_size: usize, width: usize) -> Vec<f32> {
    let mut out = Vec::with_capacity(values.len());
    for head in values.chunks_exact(head_size * width) {
        for component in 0..2 {
            for i in 0..head_size / 2 {
                out.extend_from_slice(&head[(2 * i + component) * width..][..width]);
            }
        }
    }
    out
}
