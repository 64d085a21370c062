//! A model that is written here: the same bytes again, and the same model to Hugging Face transformers.

mod common;

use std::path::Path;
use std::process::Command;

use common::{Loaded, TINY, reference};
use rlef_model::{folder, weights};

/// The files of a tiny model beside its weights; `config.json` names the format that its weights had.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    vec![(
        "config.json".to_owned(),
        std::fs::read(dir.join("config.json")).unwrap(),
    )]
}

#[test]
fn what_is_saved_is_read_again_bit_by_bit() {
    for name in TINY {
        let dir = reference().join(name);
        let named = weights::read_dir(&dir).unwrap();
        let loaded = Loaded::open(&dir);
        assert!(loaded.model.to_named().unwrap() == named, "{name}");
        let saved = tempfile::tempdir().unwrap();
        let (first, second) = (saved.path().join("first"), saved.path().join("second"));
        folder::save(&first, &files(&dir), &named).unwrap();
        let again = Loaded::open(&first);
        assert_eq!(again.config.torch_dtype.as_deref(), Some("float32"));
        assert!(weights::read_dir(&first).unwrap() == named, "{name}");
        folder::save(&second, &files(&first), &again.model.to_named().unwrap()).unwrap();
        for file in ["config.json", folder::WEIGHTS] {
            let bytes = |dir: &Path| std::fs::read(dir.join(file)).unwrap();
            assert!(bytes(&first) == bytes(&second), "{name}/{file}");
        }
    }
}

/// Prints the largest difference between the logits of the model in argument 1 and those in file 2.
const COMPARE: &str = r#"
import sys, torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained(sys.argv[1]).eval()
assert model.dtype == torch.float32, model.dtype
want = load_file(sys.argv[2])
with torch.no_grad():
    gaps = [float((model(want[f"tokens.{i}"].long()[None]).logits[0] - want[f"logits.{i}"]).abs().max()) for i in range(4)]
print(max(gaps))
"#;

/// Runs where a Python with transformers is: `RLEF_PYTHON`, or `python3`.
#[test]
fn what_is_saved_loads_in_transformers() {
    let python = std::env::var("RLEF_PYTHON").unwrap_or("python3".into());
    let has = Command::new(&python)
        .args(["-c", "import torch, transformers"])
        .output();
    if !has.is_ok_and(|o| o.status.success()) {
        eprintln!(
            "SKIPPED: {python} has no torch and transformers; set RLEF_PYTHON to one that has"
        );
        return;
    }
    for name in TINY {
        let dir = reference().join(name);
        let saved = tempfile::tempdir().unwrap();
        let named = Loaded::open(&dir).model.to_named().unwrap();
        folder::save(saved.path(), &files(&dir), &named).unwrap();
        let output = Command::new(&python)
            .args(["-c", COMPARE])
            .arg(saved.path())
            .arg(dir.join("expected.safetensors"))
            .output()
            .unwrap();
        let (said, error) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{name}: {error}");
        let gap: f32 = said.trim().parse().unwrap();
        assert!(gap < 1e-5, "{name}: {gap}");
    }
}
