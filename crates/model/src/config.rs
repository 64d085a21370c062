//! The shape of a model, as a Hugging Face `config.json` states it.
//!
//! Only the Llama layout is taken here. A key that would change the numbers and is not understood is an error:
//! a wrong number is worse than no number.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::ModelError;

/// `config.json` of a `LlamaForCausalLM`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LlamaConfig {
    /// Class name, must be `LlamaForCausalLM`.
    #[serde(default = "architectures")]
    pub architectures: Vec<String>,
    /// Must be `llama`.
    #[serde(default = "model_type")]
    pub model_type: String,
    /// Entries of the embedding table.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width of the gated feed-forward layer.
    pub intermediate_size: usize,
    /// Number of blocks.
    pub num_hidden_layers: usize,
    /// Query heads.
    pub num_attention_heads: usize,
    /// Key/value heads; query heads share them in equal groups. Absent: as many as query heads.
    #[serde(default)]
    pub num_key_value_heads: Option<usize>,
    /// Width of a head. Absent: `hidden_size / num_attention_heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<usize>,
    /// Longest sequence the model was made for, in tokens.
    #[serde(default = "max_positions")]
    pub max_position_embeddings: usize,
    /// Added to the mean square before the root.
    #[serde(default = "eps")]
    pub rms_norm_eps: f64,
    /// Base of the rotary frequencies.
    #[serde(default = "theta")]
    pub rope_theta: f64,
    /// Rotary scaling; only `llama3` is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rope_scaling: Option<RopeScaling>,
    /// Whether the output layer is the embedding table.
    #[serde(default)]
    pub tie_word_embeddings: bool,
    /// Activation of the gate, must be `silu`.
    #[serde(default = "silu")]
    pub hidden_act: String,
    /// Biases on q, k, v, o: not supported.
    #[serde(default)]
    pub attention_bias: bool,
    /// Biases in the feed-forward layer: not supported.
    #[serde(default)]
    pub mlp_bias: bool,
    /// First token of a text, if the tokeniser has one.
    #[serde(default)]
    pub bos_token_id: Option<u32>,
    /// Token or tokens that end an answer.
    #[serde(default)]
    pub eos_token_id: Option<TokenIds>,
    /// Standard deviation of fresh weights.
    #[serde(default = "init_range")]
    pub initializer_range: f64,
    /// Number format the weights are stored in.
    #[serde(default, alias = "dtype", skip_serializing_if = "Option::is_none")]
    pub torch_dtype: Option<String>,
}

/// One id or a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TokenIds {
    /// One.
    One(u32),
    /// Several.
    Many(Vec<u32>),
}

/// `rope_scaling` of Llama 3.1 and later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RopeScaling {
    /// Must be `llama3`.
    #[serde(alias = "type")]
    pub rope_type: String,
    /// Long wavelengths are stretched by this factor.
    #[serde(default)]
    pub factor: f64,
    /// Wavelengths over `original / low_freq_factor` are stretched fully.
    #[serde(default)]
    pub low_freq_factor: f64,
    /// Wavelengths under `original / high_freq_factor` are left alone.
    #[serde(default)]
    pub high_freq_factor: f64,
    /// Context length before the stretching.
    #[serde(default)]
    pub original_max_position_embeddings: f64,
}

fn architectures() -> Vec<String> {
    vec!["LlamaForCausalLM".into()]
}
fn model_type() -> String {
    "llama".into()
}
fn max_positions() -> usize {
    2048
}
fn eps() -> f64 {
    1e-6
}
fn theta() -> f64 {
    10_000.0
}
fn silu() -> String {
    "silu".into()
}
fn init_range() -> f64 {
    0.02
}

impl LlamaConfig {
    /// Reads `config.json` in `dir` and checks it.
    pub fn load(dir: &Path) -> Result<Self, ModelError> {
        let path = dir.join("config.json");
        let bytes = std::fs::read(&path).map_err(|e| ModelError::io(&path, e))?;
        Self::parse(&bytes, &path)
    }

    /// Reads the bytes of a `config.json` and checks it; `path` is only for messages.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, ModelError> {
        let fail = |why: String| ModelError::Config {
            path: path.to_owned(),
            why,
        };
        let config: Self = serde_json::from_slice(bytes).map_err(|e| fail(e.to_string()))?;
        config.check().map_err(fail)?;
        Ok(config)
    }

    /// Key/value heads.
    pub fn kv_heads(&self) -> usize {
        self.num_key_value_heads.unwrap_or(self.num_attention_heads)
    }

    /// Width of a head.
    pub fn head_size(&self) -> usize {
        self.head_dim
            .unwrap_or(self.hidden_size / self.num_attention_heads.max(1))
    }

    /// The tokens that end an answer.
    pub fn eos_ids(&self) -> Vec<u32> {
        match &self.eos_token_id {
            None => vec![],
            Some(TokenIds::One(id)) => vec![*id],
            Some(TokenIds::Many(ids)) => ids.clone(),
        }
    }

    /// Number of trainable numbers.
    pub fn num_params(&self) -> usize {
        let (d, f, hd) = (self.hidden_size, self.intermediate_size, self.head_size());
        let attention = d * hd * (2 * self.num_attention_heads + 2 * self.kv_heads());
        let block = attention + 3 * d * f + 2 * d;
        let head = if self.tie_word_embeddings {
            0
        } else {
            self.vocab_size * d
        };
        self.vocab_size * d + self.num_hidden_layers * block + d + head
    }

    /// Says what is wrong with the configuration, if anything.
    pub fn check(&self) -> Result<(), String> {
        if !self.architectures.iter().any(|a| a == "LlamaForCausalLM") || self.model_type != "llama"
        {
            return Err(format!(
                "architecture {:?} (model_type {:?}) is not supported; use a LlamaForCausalLM model",
                self.architectures, self.model_type
            ));
        }
        for (name, n) in [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("num_key_value_heads", self.kv_heads()),
            ("head_dim", self.head_size()),
        ] {
            if n == 0 {
                return Err(format!("{name} must be at least 1"));
            }
        }
        // A table of this length is kept in memory; the longest models have some millions.
        if !(2..=1 << 24).contains(&self.max_position_embeddings) {
            return Err(format!(
                "max_position_embeddings is {}, which is out of range (2 to 16777216)",
                self.max_position_embeddings
            ));
        }
        for (name, x) in [
            ("rope_theta", self.rope_theta),
            ("rms_norm_eps", self.rms_norm_eps),
        ] {
            if !(x > 0.0 && x.is_finite()) {
                return Err(format!("{name} is {x}; it must be over 0"));
            }
        }
        if let Some(s) = &self.rope_scaling
            && s.rope_type == "llama3"
            && !(s.factor > 0.0
                && s.low_freq_factor > 0.0
                && s.high_freq_factor > s.low_freq_factor
                && s.original_max_position_embeddings > 0.0)
        {
            return Err(
                "rope_scaling: factor, low_freq_factor, high_freq_factor (the larger) and \
                 original_max_position_embeddings must be over 0"
                    .into(),
            );
        }
        if !self.num_attention_heads.is_multiple_of(self.kv_heads()) {
            return Err(format!(
                "num_attention_heads ({}) must be a multiple of num_key_value_heads ({})",
                self.num_attention_heads,
                self.kv_heads()
            ));
        }
        if !self.head_size().is_multiple_of(2) {
            return Err(format!(
                "head_dim ({}) must be even for rotary positions",
                self.head_size()
            ));
        }
        if self.hidden_act != "silu" {
            return Err(format!(
                "hidden_act {:?} is not supported, only \"silu\"",
                self.hidden_act
            ));
        }
        if self.attention_bias || self.mlp_bias {
            return Err("attention_bias and mlp_bias are not supported".into());
        }
        if let Some(s) = &self.rope_scaling
            && s.rope_type != "llama3"
            && s.rope_type != "default"
        {
            return Err(format!(
                "rope_scaling type {:?} is not supported, only \"llama3\"",
                s.rope_type
            ));
        }
        Ok(())
    }

    /// The rotary frequencies, `head_size / 2` of them, in radians a position.
    ///
    /// `theta^(-2i/d)`, and for Llama 3.1 the piecewise stretching of long wavelengths.
    pub fn rope_frequencies(&self) -> Vec<f64> {
        let d = self.head_size();
        (0..d / 2)
            .map(|i| {
                let f = self.rope_theta.powf(-2.0 * i as f64 / d as f64);
                match &self.rope_scaling {
                    Some(s) if s.rope_type == "llama3" => s.stretch(f),
                    _ => f,
                }
            })
            .collect()
    }
}

impl RopeScaling {
    fn stretch(&self, f: f64) -> f64 {
        let wavelength = 2.0 * std::f64::consts::PI / f;
        let original = self.original_max_position_embeddings;
        if wavelength < original / self.high_freq_factor {
            f
        } else if wavelength > original / self.low_freq_factor {
            f / self.factor
        } else {
            let smooth = (original / wavelength - self.low_freq_factor)
                / (self.high_freq_factor - self.low_freq_factor);
            (1.0 - smooth) * f / self.factor + smooth * f
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(key: &str, value: serde_json::Value) -> Result<LlamaConfig, ModelError> {
        let mut config = serde_json::json!({
            "vocab_size": 40, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2,
        });
        config[key] = value;
        LlamaConfig::parse(config.to_string().as_bytes(), Path::new("config.json"))
    }

    #[test]
    fn what_would_give_wrong_numbers_is_an_error_that_names_it() {
        assert_eq!(with("rope_theta", 5e5.into()).unwrap().head_size(), 8);
        for (key, value) in [
            ("model_type", "mistral".into()),
            ("architectures", vec!["OtherForCausalLM"].into()),
            ("hidden_act", "gelu".into()),
            ("attention_bias", true.into()),
            ("mlp_bias", true.into()),
            ("num_key_value_heads", 3.into()),
            ("num_hidden_layers", 0.into()),
            ("head_dim", 7.into()),
            ("rope_theta", 0.into()),
            ("rms_norm_eps", (-1).into()),
            ("max_position_embeddings", 1_000_000_000_000_000u64.into()),
            ("rope_scaling", serde_json::json!({ "rope_type": "yarn" })),
            ("rope_scaling", serde_json::json!({ "rope_type": "llama3" })),
        ] {
            let error = with(key, value).unwrap_err().to_string();
            let named = if key == "model_type" {
                "architecture"
            } else {
                key
            };
            assert!(
                error.contains(named.trim_end_matches('s')),
                "{key}: {error}"
            );
        }
    }

    /// Llama 3.1 8B has 8,030,261,248 parameters.
    #[test]
    fn parameters_are_counted() {
        let config: LlamaConfig = serde_json::from_value(serde_json::json!({
            "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 8,
        }))
        .unwrap();
        assert_eq!(config.num_params(), 8_030_261_248);
    }
}
