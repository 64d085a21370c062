//! Problems for other tools: CodeContests Parquet and Harbor task folders. rlef's own format is written by [`crate::jsonl`].

mod codecontests;
mod columns;
mod harbor;
#[cfg(test)]
mod tests;

pub use codecontests::CodeContestsWriter;
pub use harbor::write_harbor_task;

use std::io;

/// Why a problem or a file cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The file cannot be written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The format has no place for what makes this problem what it is.
    #[error("problem `{id}` cannot be written in this format: {why}")]
    Unfit {
        /// The problem.
        id: String,
        /// Why.
        why: String,
    },
}
