//! From a model's name to its weights.

use std::path::Path;

use anyhow::{Result, bail};
use burn::tensor::Device;
use rlef_model::folder::FILES;
use rlef_model::{ModelFolder, weights};

const CONFIG: &[u8] = include_bytes!("../../../configs/tiny/base/config.json");
const TOKENIZER: &[u8] = include_bytes!("../../../configs/tiny/base/tokenizer.json");
const TOKENIZER_CONFIG: &[u8] = include_bytes!("../../../configs/tiny/base/tokenizer_config.json");
const WEIGHTS: &[u8] = include_bytes!("../../../configs/tiny/base/model.safetensors");

/// Opens `tiny` (embedded) or a folder in Hugging Face layout.
pub fn open(name: &str, device: &Device) -> Result<ModelFolder> {
    if name == "tiny" {
        let origin = Path::new("configs/tiny/base");
        let files = [
            ("config.json", CONFIG),
            ("tokenizer.json", TOKENIZER),
            ("tokenizer_config.json", TOKENIZER_CONFIG),
        ]
        .map(|(n, b)| (n.to_owned(), b.to_vec()));
        let named = weights::parse(WEIGHTS, &origin.join("model.safetensors"))?;
        return Ok(ModelFolder::from_parts(
            files.to_vec(),
            named,
            origin,
            device,
        )?);
    }
    let dir = Path::new(name);
    if !dir.is_dir() {
        bail!(
            "model {name:?} is neither `tiny` (the embedded small model) nor a folder; download the model's files \
             (config.json, tokenizer.json, tokenizer_config.json, *.safetensors) and give the folder they are in"
        );
    }
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
    Ok(ModelFolder::load(dir, device)?)
}
