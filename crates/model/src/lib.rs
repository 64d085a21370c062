//! The Llama family on burn: configuration, weights, tokeniser, sampling, value head.
#![recursion_limit = "256"]

pub mod bpe;
mod cache;
mod config;
pub mod device;
mod error;
pub mod folder;
mod generate;
pub mod gguf;
mod llama;
pub mod ops;
mod sample;
mod tokenizer;
mod value;
pub mod weights;

pub use cache::Cache;
pub use config::{Family, LlamaConfig, RopeScaling, TokenIds};
pub use error::ModelError;
pub use folder::ModelFolder;
pub use generate::{Ask, Generator, Sampled};
pub use llama::{Block, Frame, Llama};
pub use sample::{Sampling, sample};
pub use tokenizer::{ChatMessage, ChatTokenizer};
pub use value::{ValueHead, ValueModel};
