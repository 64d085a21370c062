//! A model folder in Hugging Face layout: `config.json`, `model.safetensors`, `tokenizer.json`,
//! `tokenizer_config.json`.

use std::path::{Path, PathBuf};

use burn::tensor::Device;

use crate::weights::{self, Named};
use crate::{ChatTokenizer, Llama, LlamaConfig, ModelError};

/// Files that a folder needs beside its weights.
pub const FILES: [&str; 3] = ["config.json", "tokenizer.json", "tokenizer_config.json"];

/// Its weights in one file, or …
pub const WEIGHTS: &str = "model.safetensors";

/// … the list of the files that they are in.
pub const INDEX: &str = "model.safetensors.index.json";

/// A model with what is needed to talk to it.
#[derive(Debug, Clone)]
pub struct ModelFolder {
    /// The shape.
    pub config: LlamaConfig,
    /// The weights.
    pub model: Llama,
    /// Tokeniser and chat template.
    pub tokenizer: ChatTokenizer,
    /// The files other than the weights, kept so that a copy can be written.
    pub files: Vec<(String, Vec<u8>)>,
}

impl ModelFolder {
    /// Reads a folder.
    pub fn load(dir: &Path, device: &Device) -> Result<Self, ModelError> {
        let mut files = Vec::new();
        for name in FILES {
            let path = dir.join(name);
            files.push((
                name.to_owned(),
                weights::read(&path).map_err(|e| ModelError::io(&path, e))?,
            ));
        }
        Self::from_parts(files, weights::read_dir(dir)?, dir, device)
    }

    /// From the contents of the files; `origin` is only for messages.
    pub fn from_parts(
        files: Vec<(String, Vec<u8>)>,
        named: Named,
        origin: &Path,
        device: &Device,
    ) -> Result<Self, ModelError> {
        let get = |name: &str| -> Result<(PathBuf, &[u8]), ModelError> {
            let path = origin.join(name);
            match files.iter().find(|(n, _)| n == name) {
                Some((_, bytes)) => Ok((path, bytes)),
                None => Err(ModelError::io(&path, std::io::ErrorKind::NotFound.into())),
            }
        };
        let (path, bytes) = get("config.json")?;
        let config = LlamaConfig::parse(bytes, &path)?;
        let (path, bytes) = get("tokenizer.json")?;
        let tokenizer =
            tokenizers::Tokenizer::from_bytes(bytes).map_err(|e| ModelError::Tokenizer {
                path,
                why: e.to_string(),
            })?;
        let (path, bytes) = get("tokenizer_config.json")?;
        let tokenizer = serde_json::from_slice(bytes)
            .map_err(|e| e.to_string())
            .and_then(|c| ChatTokenizer::new(tokenizer, &c, &config.eos_ids()))
            .map_err(|why| ModelError::Config { path, why })?;
        let largest = tokenizer
            .largest_id()
            .max(config.eos_ids().into_iter().max().unwrap_or(0));
        if largest as usize >= config.vocab_size {
            return Err(ModelError::Config {
                path: origin.join("config.json"),
                why: format!(
                    "vocab_size is {} but there is a token number {largest}; the files are of different models",
                    config.vocab_size
                ),
            });
        }
        let model = Llama::from_named(named, &config, origin, device)?;
        Ok(Self {
            config,
            model,
            tokenizer,
            files,
        })
    }

    /// Writes a folder with these files and other weights. The weights come last: a folder without them is not
    /// taken for a model.
    pub fn save(&self, dir: &Path, tensors: &Named) -> Result<(), ModelError> {
        save(dir, &self.files, tensors)
    }
}

/// Writes `files` and then the weights into `dir`, which is made if need be.
pub fn save(dir: &Path, files: &[(String, Vec<u8>)], tensors: &Named) -> Result<(), ModelError> {
    std::fs::create_dir_all(dir).map_err(|e| ModelError::io(dir, e))?;
    for (name, bytes) in files {
        let path = dir.join(name);
        std::fs::write(&path, bytes).map_err(|e| ModelError::io(&path, e))?;
    }
    weights::write_file(&dir.join(WEIGHTS), tensors)
}
