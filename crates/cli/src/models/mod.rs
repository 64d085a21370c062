//! From a model's name to its weights.

pub mod catalogue;
pub mod fetch;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use burn::tensor::Device;
use rlef_model::folder::{self, FILES};
use rlef_model::{LlamaConfig, ModelFolder, gguf, weights};

use crate::output::memory;

const CONFIG: &[u8] = include_bytes!("../../../../configs/tiny/base/config.json");
const TOKENIZER: &[u8] = include_bytes!("../../../../configs/tiny/base/tokenizer.json");
const TOKENIZER_CONFIG: &[u8] =
    include_bytes!("../../../../configs/tiny/base/tokenizer_config.json");
const WEIGHTS: &[u8] = include_bytes!("../../../../configs/tiny/base/model.safetensors");

/// Where a model is.
#[derive(Debug, Clone)]
pub enum Place {
    /// In this program.
    Embedded,
    /// In a folder in Hugging Face layout.
    Folder(PathBuf),
    /// In a GGUF file.
    Gguf(PathBuf),
    /// Nowhere yet: it has a name, and can be fetched.
    Elsewhere(Box<catalogue::Named>),
}

/// Finds out what `name` means: `tiny`, a folder, a GGUF file, or a name of the catalogue.
///
/// # Errors
/// A name that means nothing.
pub fn find(name: &str) -> Result<Place> {
    if name == "tiny" {
        return Ok(Place::Embedded);
    }
    let path = Path::new(name);
    if path.is_dir() {
        whole(name, path)?;
        return Ok(Place::Folder(path.to_owned()));
    }
    if path.is_file() {
        return Ok(Place::Gguf(path.to_owned()));
    }
    if let Some(model) = catalogue::find(name)? {
        return Ok(match fetch::present(&model) {
            Some(dir) => Place::Folder(dir),
            None => Place::Elsewhere(Box::new(model)),
        });
    }
    let meant = match catalogue::nearest(name) {
        Some(near) => format!("; did you mean {near}?"),
        None => String::new(),
    };
    bail!(
        "model {name:?} is neither `tiny` (the embedded small model), nor a folder, nor a GGUF file, nor a name that \
         `rlef model list` has{meant}"
    )
}

/// Checks that a folder has the files that a model needs beside its weights.
fn whole(name: &str, dir: &Path) -> Result<()> {
    for file in FILES {
        if !dir.join(file).exists() {
            if dir.join("checkpoint").join(file).exists() {
                bail!(
                    "{name:?} is a run; its model is in {:?}",
                    dir.join("checkpoint")
                );
            }
            bail!(
                "model folder {name:?} has no {file}; it needs config.json, tokenizer.json, tokenizer_config.json \
                 and model.safetensors (or shards with their index)"
            );
        }
    }
    Ok(())
}

/// Opens a model; one of the catalogue that is not on this machine is fetched first.
pub fn open(name: &str, device: &Device) -> Result<ModelFolder> {
    match find(name)? {
        Place::Embedded => {
            let origin = Path::new("configs/tiny/base");
            let named = weights::parse(WEIGHTS, &origin.join("model.safetensors"))?;
            Ok(ModelFolder::from_parts(embedded(), named, origin, device)?)
        }
        Place::Folder(dir) => load(&dir, device),
        Place::Gguf(file) => {
            let numbers = gguf::Gguf::open(&file)?.numbers();
            memory(8 * numbers, &format!("model {name}"))?;
            let (files, named) = gguf::read(&file)?;
            Ok(ModelFolder::from_parts(files, named, &file, device)?)
        }
        Place::Elsewhere(model) => load(&fetch::get(&model)?, device),
    }
}

/// The shape of a model; nothing large is read, and nothing is fetched.
pub fn shape(name: &str) -> Result<LlamaConfig> {
    Ok(match find(name)? {
        Place::Embedded => LlamaConfig::parse(CONFIG, Path::new("configs/tiny/base/config.json"))?,
        Place::Folder(dir) => LlamaConfig::load(&dir)?,
        Place::Gguf(file) => folder::understand(&gguf::Gguf::open(&file)?.files()?, &file)?.0,
        Place::Elsewhere(model) => model.config,
    })
}

/// The files of the embedded model.
pub fn embedded() -> Vec<(String, Vec<u8>)> {
    [
        ("config.json", CONFIG),
        ("tokenizer.json", TOKENIZER),
        ("tokenizer_config.json", TOKENIZER_CONFIG),
    ]
    .map(|(n, b)| (n.to_owned(), b.to_vec()))
    .to_vec()
}

fn load(dir: &Path, device: &Device) -> Result<ModelFolder> {
    let numbers = LlamaConfig::load(dir)?.num_params() as u64;
    // A file's bytes, and its numbers in f32.
    memory(6 * numbers, &format!("model {}", dir.display()))?;
    Ok(ModelFolder::load(dir, device)?)
}
