//! Models that have a name here: where they come from and what shape they have (configs/models).

use anyhow::{Context, Result, bail};
use rlef_model::LlamaConfig;
use serde::Deserialize;

const FILES: [(&str, &str); 4] = [
    (
        "smollm2.toml",
        include_str!("../../../../configs/models/smollm2.toml"),
    ),
    (
        "llama.toml",
        include_str!("../../../../configs/models/llama.toml"),
    ),
    (
        "qwen2.5.toml",
        include_str!("../../../../configs/models/qwen2.5.toml"),
    ),
    (
        "qwen3.toml",
        include_str!("../../../../configs/models/qwen3.toml"),
    ),
];

/// A model with a name.
#[derive(Debug, Clone)]
pub struct Named {
    /// The name.
    pub name: String,
    /// Where it comes from.
    pub entry: Entry,
    /// Its shape.
    pub config: LlamaConfig,
}

/// What a file of configs/models says of a model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The repository at the Hugging Face hub.
    pub repo: String,
    /// The branch, tag or commit there.
    #[serde(default = "main")]
    pub revision: String,
    /// The licence, for people.
    pub licence: String,
    /// Whether the hub gives it only to those who accepted the licence.
    #[serde(default)]
    pub gated: bool,
    /// Numbers in it.
    pub parameters: u64,
    /// A Python package that has it too.
    #[serde(default)]
    pub package: Option<Package>,
    /// The keys of its `config.json` that give its shape.
    config: toml::Table,
}

/// A Python package that has a model's GGUF file in it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// The package.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The file in the wheel.
    pub file: String,
    /// The file's length.
    pub bytes: u64,
    /// The file's SHA-256, in hexadecimal.
    pub sha256: String,
}

fn main() -> String {
    "main".into()
}

/// Names a further file of this kind, for models of one's own.
const MORE: &str = "RLEF_MODELS";

/// All models, in the order of the files.
///
/// # Errors
/// A file that cannot be read or understood.
pub fn all() -> Result<Vec<Named>> {
    let mut all: Vec<Named> = Vec::new();
    let mut files: Vec<(String, String)> = FILES
        .map(|(file, text)| (format!("configs/models/{file}"), text.to_owned()))
        .into();
    if let Some(path) = std::env::var_os(MORE).filter(|p| !p.is_empty()) {
        let path = std::path::PathBuf::from(path);
        let text = crate::parts::text(&path).context(MORE)?;
        files.push((path.display().to_string(), text));
    }
    for (file, text) in files {
        let table: toml::Table = toml::from_str(&text).with_context(|| file.clone())?;
        for (name, value) in table {
            let of = || format!("{file}: {name}");
            // It becomes the name of a folder.
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            if name.starts_with('.') || !name.chars().all(plain) || name == "tiny" {
                bail!("{}: names are of letters, digits, `-`, `_` and `.`", of());
            }
            if all.iter().any(|m| m.name == name) {
                bail!("{}: there is a model of that name already", of());
            }
            let entry: Entry = value.try_into().with_context(of)?;
            let config = serde_json::to_vec(&entry.config).with_context(of)?;
            let config = LlamaConfig::parse(&config, file.as_ref()).with_context(of)?;
            all.push(Named {
                name,
                entry,
                config,
            });
        }
    }
    Ok(all)
}

/// The model of that name.
///
/// # Errors
/// As [`all`].
pub fn find(name: &str) -> Result<Option<Named>> {
    Ok(all()?.into_iter().find(|m| m.name == name))
}

impl Named {
    /// Checks that what was fetched has the shape that this name stands for.
    ///
    /// # Errors
    /// The key of `config.json` that differs.
    pub fn agrees(&self, found: &LlamaConfig) -> Result<()> {
        let want = &self.config;
        let shape = |c: &LlamaConfig| {
            [
                ("model_type", c.model_type.clone()),
                ("vocab_size", c.vocab_size.to_string()),
                ("hidden_size", c.hidden_size.to_string()),
                ("intermediate_size", c.intermediate_size.to_string()),
                ("num_hidden_layers", c.num_hidden_layers.to_string()),
                ("num_attention_heads", c.num_attention_heads.to_string()),
                ("num_key_value_heads", c.kv_heads().to_string()),
                ("head_dim", c.head_size().to_string()),
                ("rms_norm_eps", c.rms_norm_eps.to_string()),
                ("rope_theta", c.rope_theta.to_string()),
                ("rope_scaling", format!("{:?}", c.rope_scaling)),
                ("tie_word_embeddings", c.tie_word_embeddings.to_string()),
            ]
        };
        for ((key, want), (_, found)) in shape(want).into_iter().zip(shape(found)) {
            if want != found {
                bail!(
                    "{} is another model than {}: {key} is {found}, not {want}",
                    self.entry.repo,
                    self.name
                );
            }
        }
        Ok(())
    }
}

/// The nearest name, for those who mistyped one.
pub fn nearest(name: &str) -> Option<String> {
    let near = |known: &String| strsim::damerau_levenshtein(name, known);
    let names = all().ok()?.into_iter().map(|m| m.name);
    let best = names.min_by_key(near)?;
    (near(&best) <= 3).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that the makers publish, against those that the shapes give.
    #[test]
    fn every_shape_has_the_published_number_of_parameters() {
        let all = all().unwrap();
        assert!(all.len() >= 20);
        for model in &all {
            assert_eq!(
                model.config.num_params() as u64,
                model.entry.parameters,
                "{}",
                model.name
            );
            assert!(model.agrees(&model.config).is_ok());
        }
        let named = |name: &str| all.iter().find(|m| m.name == name).unwrap();
        assert!(
            named("llama3-8b")
                .agrees(&named("llama3.1-8b").config)
                .unwrap_err()
                .to_string()
                .contains("rope_scaling")
        );
        let package = named("smollm2-135m").entry.package.as_ref().unwrap();
        assert_eq!(package.sha256.len(), 64);
    }

    #[test]
    fn a_slip_is_named() {
        assert_eq!(nearest("smolm2-135m").as_deref(), Some("smollm2-135m"));
        assert_eq!(nearest("something else"), None);
    }
}
