//! A model folder in Hugging Face layout: `config.json`, `model.safetensors`, `tokenizer.json`,
//! `tokenizer_config.json`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use sha2::{Digest, Sha256};

use crate::weights::{self, Named};
use crate::{ChatTokenizer, Llama, LlamaConfig, ModelError, TokenIds, tokenizer};

/// Files that a folder needs beside its weights.
pub const FILES: [&str; 3] = ["config.json", "tokenizer.json", "tokenizer_config.json"];

/// Files that a folder may have besides; they go along when it is copied.
pub const MORE_FILES: [&str; 4] = [
    CHAT_TEMPLATE,
    GENERATION,
    "special_tokens_map.json",
    "LICENSE",
];

/// The chat template, where it is not in `tokenizer_config.json`.
const CHAT_TEMPLATE: &str = "chat_template.jinja";

/// How the model's makers would sample from it; the tokens that end an answer are taken from it.
const GENERATION: &str = "generation_config.json";

/// Its weights in one file, or …
pub const WEIGHTS: &str = "model.safetensors";

/// … the list of the files that they are in.
pub const INDEX: &str = "model.safetensors.index.json";

/// The SHA-256 sum of a file, in hexadecimal.
///
/// # Errors
/// A file that cannot be read.
pub fn sha256(path: &Path) -> io::Result<String> {
    let mut sum = Sha256::new();
    io::copy(&mut File::open(path)?, &mut sum)?;
    Ok(format!("{:x}", sum.finalize()))
}

/// Where models that were fetched are kept, a folder each: `models` in `RLEF_CACHE`, or in `rlef` in the user's cache.
pub fn cache() -> Option<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let own = set("RLEF_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|dir| dir.join("rlef")))
        .or_else(|| set("HOME").map(|dir| dir.join(".cache/rlef")))?;
    Some(own.join("models"))
}

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
        for name in MORE_FILES {
            let path = dir.join(name);
            if path.is_file() {
                let bytes = weights::read(&path).map_err(|e| ModelError::io(&path, e))?;
                files.push((name.to_owned(), bytes));
            }
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
        let (config, tokenizer) = understand(&files, origin)?;
        let model = Llama::from_named(named, &config, origin, device)?;
        Ok(Self {
            config,
            model,
            tokenizer,
            files,
        })
    }

    /// Writes a folder with these files and other weights, in f32. The weights come last: a folder without them is not
    /// taken for a model.
    pub fn save(&self, dir: &Path, tensors: &Named) -> Result<(), ModelError> {
        save(dir, &self.files, tensors)
    }
}

/// The shape of a model, its tokeniser and chat template, from the contents of its files without the weights; `origin`
/// is only for messages.
///
/// # Errors
/// A file that is missing or not understood, and files that do not belong together.
pub fn understand(
    files: &[(String, Vec<u8>)],
    origin: &Path,
) -> Result<(LlamaConfig, ChatTokenizer), ModelError> {
    let find = |name: &str| files.iter().find(|(n, _)| n == name).map(|(_, b)| b);
    let get = |name: &str| -> Result<(PathBuf, &Vec<u8>), ModelError> {
        let path = origin.join(name);
        match find(name) {
            Some(bytes) => Ok((path, bytes)),
            None => Err(ModelError::io(&path, std::io::ErrorKind::NotFound.into())),
        }
    };
    let (path, bytes) = get("config.json")?;
    let config = LlamaConfig::parse(bytes, &path)?;
    let (path, bytes) = get("tokenizer.json")?;
    let tokenizer = tokenizer::parse(bytes).map_err(|why| ModelError::Tokenizer { path, why })?;
    let mut ends = config.eos_ids();
    if let Ok((path, bytes)) = get(GENERATION) {
        let more = generation_ends(bytes).map_err(|why| ModelError::Config { path, why })?;
        ends.extend(more);
    }
    let (path, bytes) = get("tokenizer_config.json")?;
    let fail = |why: String| ModelError::Config {
        path: path.clone(),
        why,
    };
    let mut settings: serde_json::Value =
        serde_json::from_slice(bytes).map_err(|e| fail(e.to_string()))?;
    if let (Some(template), Some(settings)) = (find(CHAT_TEMPLATE), settings.as_object_mut()) {
        let template = String::from_utf8_lossy(template);
        settings.insert("chat_template".into(), template.into());
    }
    let tokenizer = ChatTokenizer::new(tokenizer, &settings, &ends).map_err(fail)?;
    let largest = tokenizer
        .largest_id()
        .max(ends.iter().copied().max().unwrap_or(0));
    if largest as usize >= config.vocab_size {
        return Err(ModelError::Config {
            path: origin.join("config.json"),
            why: format!(
                "vocab_size is {} but there is a token number {largest}; the files are of different models",
                config.vocab_size
            ),
        });
    }
    Ok((config, tokenizer))
}

/// The tokens that end an answer by a `generation_config.json`.
fn generation_ends(bytes: &[u8]) -> Result<Vec<u32>, String> {
    #[derive(serde::Deserialize)]
    struct Generation {
        eos_token_id: Option<TokenIds>,
    }
    let file: Generation = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    Ok(match file.eos_token_id {
        None => vec![],
        Some(TokenIds::One(id)) => vec![id],
        Some(TokenIds::Many(ids)) => ids,
    })
}

/// `config.json` for weights in f32: readers take the number format that it names, and would round.
fn in_f32(bytes: &[u8]) -> Vec<u8> {
    let Ok(mut config) = serde_json::from_slice::<serde_json::Value>(bytes) else {
        return bytes.to_vec();
    };
    let mut rounds = false;
    for key in ["torch_dtype", "dtype"] {
        if let Some(dtype) = config.get_mut(key)
            && dtype != "float32"
        {
            *dtype = "float32".into();
            rounds = true;
        }
    }
    match serde_json::to_vec_pretty(&config) {
        Ok(changed) if rounds => changed,
        _ => bytes.to_vec(),
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
            let bytes = match name.as_str() {
                "config.json" => &in_f32(bytes),
                _ => bytes,
            };
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
