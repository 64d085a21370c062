//! A model folder in Hugging Face layout: `config.json`, `model.safetensors`, `tokenizer.json`,
//! `tokenizer_config.json`.

use std::path::{Path, PathBuf};

use burn::tensor::Device;

use crate::weights::{self, Named};
use crate::{ChatTokenizer, Llama, LlamaConfig, ModelError, tokenizer};

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
            tokenizer::parse(bytes).map_err(|why| ModelError::Tokenizer { path, why })?;
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

/// Writes `files` and the weights into `dir`, which is made if need be. Everything is written under other names first,
/// so that what cannot be written whole leaves a model that is there as it was; then the old weights go before anything
/// takes its name and the new ones come last: a folder without weights is not taken for a model.
///
/// # Errors
/// What cannot be written.
pub fn save(dir: &Path, files: &[(String, Vec<u8>)], tensors: &Named) -> Result<(), ModelError> {
    std::fs::create_dir_all(dir).map_err(|e| ModelError::io(dir, e))?;
    let part = |name: &str| dir.join(format!("{name}.new"));
    let write = || {
        for (name, bytes) in files {
            let path = part(name);
            std::fs::write(&path, bytes).map_err(|e| ModelError::io(&path, e))?;
        }
        weights::write_file(&part(WEIGHTS), tensors)
    };
    write().inspect_err(|_| {
        // On a full disk they would keep the space that the next try needs.
        for name in files.iter().map(|(name, _)| name.as_str()).chain([WEIGHTS]) {
            let _ = std::fs::remove_file(part(name));
        }
    })?;
    let weights = dir.join(WEIGHTS);
    match std::fs::remove_file(&weights) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(ModelError::io(&weights, e));
        }
        _ => {}
    }
    for name in files.iter().map(|(name, _)| name.as_str()).chain([WEIGHTS]) {
        let path = dir.join(name);
        std::fs::rename(part(name), &path).map_err(|e| ModelError::io(&path, e))?;
    }
    Ok(())
}
