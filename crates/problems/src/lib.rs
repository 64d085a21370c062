//! What a programming problem is, the files it comes in, and how outputs are compared.
mod checker;
mod export;
mod formats;
mod import;
pub mod jsonl;
pub mod micro;
mod problem;
#[cfg(test)]
mod python;
mod records;
mod sets;
mod similar;
mod validate;
mod validator;
mod write;

pub use checker::{CheckerError, Comparison, Difference};
pub use export::{CodeContestsWriter, ExportError, write_harbor_task};
pub use import::{
    BadRow, Dropped, Format, ImportError, ImportOptions, Imported, LeftOut, Place, Progress,
    SetWriter, Sink, Summary, import, why_dropped,
};
pub use jsonl::JsonlError;
pub use problem::{Checker, FORMAT_VERSION, Numbers, Problem, Solution, TestCase, WhiteSpace};
pub use sets::{ProblemSet, ProblemStream, SPLITS, SetError};
pub use similar::{Overlap, Pair, SimilarTexts, Similarity, overlap};
pub use validate::{Invalid, VERDICTS};
pub use validator::{EXIT_ACCEPTED, EXIT_WRONG_ANSWER, SourceFile, Validator};
