//! The shape of a model, as a Hugging Face `config.json` states it.
//!
//! Three families share one network and differ in settings ([`Family`]). Which keys are understood is in `keys.rs`: a
//! key that would change the numbers and is not understood is an error, since a wrong number is worse than none.

mod keys;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::ModelError;

/// What sets the families apart that share this network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Llama 3, SmolLM2 and others of the kind.
    Llama,
    /// Qwen2 and Qwen2.5: biases on q, k and v.
    Qwen2,
    /// Qwen3: norms on each head of q and k.
    Qwen3,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 3] = [Self::Llama, Self::Qwen2, Self::Qwen3];

    /// `model_type` in `config.json`.
    pub fn model_type(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
        }
    }

    /// The entry of `architectures` in `config.json`.
    pub fn architecture(self) -> &'static str {
        match self {
            Self::Llama => "LlamaForCausalLM",
            Self::Qwen2 => "Qwen2ForCausalLM",
            Self::Qwen3 => "Qwen3ForCausalLM",
        }
    }

    /// Whether q, k and v have biases.
    pub fn qkv_bias(self) -> bool {
        self == Self::Qwen2
    }

    /// Whether each head of q and k is normalised before it is rotated.
    pub fn qk_norm(self) -> bool {
        self == Self::Qwen3
    }
}

/// `config.json` of a model of one of the families.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LlamaConfig {
    /// Class name, that of a [`Family`].
    #[serde(default = "architectures")]
    pub architectures: Vec<String>,
    /// That of the same [`Family`].
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
        let file = serde_json::from_slice(bytes).map_err(|e| fail(e.to_string()))?;
        let understood = keys::understand(file).map_err(&fail)?;
        let config: Self = serde_json::from_value(understood).map_err(|e| fail(e.to_string()))?;
        config.check().map_err(fail)?;
        Ok(config)
    }

    /// The family.
    pub fn family(&self) -> Family {
        let of = |f: &Family| f.model_type() == self.model_type;
        Family::ALL.into_iter().find(of).unwrap_or(Family::Llama)
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
        let (heads, kv_heads) = (self.num_attention_heads, self.kv_heads());
        let mut attention = d * hd * (2 * heads + 2 * kv_heads);
        if self.family().qkv_bias() {
            attention += hd * (heads + 2 * kv_heads);
        }
        if self.family().qk_norm() {
            attention += 2 * hd;
        }
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
        keys::family(&self.architectures, Some(&self.model_type))?;
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
    /// The frequency that takes the place of `f`.
    pub(crate) fn stretch(&self, f: f64) -> f64 {
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
        assert_eq!(with("some_extra", false.into()).unwrap().head_size(), 8);
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
            (
                "rope_scaling",
                serde_json::json!({ "type": "linear", "factor": 2.0 }),
            ),
            (
                "rope_parameters",
                serde_json::json!({ "rope_type": "default", "partial_rotary_factor": 0.5 }),
            ),
            ("sliding_window", 4096.into()),
            ("use_sliding_window", true.into()),
            ("layer_types", vec!["sliding_attention"].into()),
            ("rope_interleaved", true.into()),
            ("attention_dropout", 0.1.into()),
            ("quantization_config", serde_json::json!({ "bits": 4 })),
            ("logits_scaling", 8.into()),
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

    /// The keys as the families' own files have them.
    #[test]
    fn what_a_family_says_of_itself_is_understood() {
        let parse = |v: serde_json::Value| {
            LlamaConfig::parse(v.to_string().as_bytes(), Path::new("config.json"))
        };
        let qwen = serde_json::json!({
            "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 40, "hidden_size": 32,
            "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "max_position_embeddings": 128, "sliding_window": 131072, "max_window_layers": 28,
            "use_sliding_window": false, "rope_theta": 1e6, "tie_word_embeddings": true,
        });
        let read = parse(qwen.clone()).unwrap();
        assert_eq!(read.family(), Family::Qwen2);
        assert_eq!(read.rope_theta, 1e6);
        // What these families take for granted differs from Llama's, so it must be said.
        for (model_type, architecture, key) in [
            ("qwen2", "Qwen2ForCausalLM", "num_key_value_heads"),
            ("qwen2", "Qwen2ForCausalLM", "max_position_embeddings"),
            ("qwen3", "Qwen3ForCausalLM", "head_dim"),
            ("llama", "Qwen2ForCausalLM", "architectures"),
        ] {
            let mut without = qwen.clone();
            without["model_type"] = model_type.into();
            without["architectures"] = vec![architecture].into();
            without["head_dim"] = 8.into();
            without["sliding_window"] = serde_json::Value::Null;
            without.as_object_mut().unwrap().remove(key);
            if key == "architectures" {
                without["architectures"] = vec![architecture].into();
            }
            let error = parse(without).unwrap_err().to_string();
            assert!(error.contains(key.trim_end_matches('s')), "{key}: {error}");
        }
        let both = |theta: f64| {
            let mut config = qwen.clone();
            config["rope_parameters"] =
                serde_json::json!({ "rope_type": "default", "rope_theta": theta });
            parse(config)
        };
        assert_eq!(both(1e6).unwrap().rope_theta, 1e6);
        assert!(both(1e4).unwrap_err().to_string().contains("rope_theta"));
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
