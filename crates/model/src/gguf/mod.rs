//! GGUF files, the format of llama.cpp: read, turned into numbers in f32, and into the files of a Hugging Face folder.
//!
//! A file's header is read with as much memory as it has bytes, whatever it says of itself, and every tensor is checked
//! to lie whole in the file before one is read. Not here: writing GGUF, and formats that no model of the supported
//! families is commonly published in.

mod file;
mod model;
mod quant;
mod tokenizer;

pub use file::{Gguf, Info, Value};
pub use model::{Files, read};
pub use quant::Kind;
