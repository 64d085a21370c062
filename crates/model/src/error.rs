//! What can go wrong with a model, said so that a person knows what to do.

use std::path::{Path, PathBuf};

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// `config.json` is missing something or asks for something unsupported.
    #[error("{path}: {why}")]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A weight file does not fit the configuration.
    #[error("{path}: tensor {tensor}: {why}")]
    Weights {
        /// The file or folder.
        path: PathBuf,
        /// Name of the tensor (Hugging Face name).
        tensor: String,
        /// What is wrong.
        why: String,
    },
    /// A GGUF file cannot be understood.
    #[error("{path}: {why}")]
    Gguf {
        /// The file.
        path: PathBuf,
        /// What is wrong, and with which key of its metadata.
        why: String,
    },
    /// The tokeniser file is unusable.
    #[error("{path}: tokeniser: {why}")]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The chat template cannot be rendered.
    #[error("chat template: {0}")]
    Template(String),
    /// The dialog cannot be extended without rewriting tokens that are already there.
    #[error(
        "the chat template {why} of turn {turn}; tokens that were recorded are never rewritten"
    )]
    Rewritten {
        /// The turn, from 0.
        turn: usize,
        /// What the template does.
        why: &'static str,
    },
    /// A device that is not there.
    #[error("device {device}: {why}")]
    Device {
        /// What was asked for.
        device: String,
        /// What is wrong and what to do.
        why: String,
    },
    /// The backend failed (out of memory, lost device, numbers that are not finite …).
    #[error("computation failed: {0}")]
    Compute(String),
}

impl ModelError {
    /// An [`ModelError::Io`] about `path`.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}
