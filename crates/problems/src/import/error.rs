//! What can go wrong with an import.

use super::{Format, Summary};
use crate::JsonlError;
use std::fmt;
use std::io;

/// Where in a file a problem is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A line, from 1.
    Line(usize),
    /// A row of a table, from 1.
    Row(u64),
    /// The file, or the folder, is one problem.
    Whole,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, ", line {line}"),
            Self::Row(row) => write!(f, ", row {row}"),
            Self::Whole => Ok(()),
        }
    }
}

/// A problem that cannot be read, among others that perhaps can.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}{place}, field `{field}`: {message}")]
pub struct BadRow {
    /// The file; in a package, the one that is wrong.
    pub file: String,
    /// Where in it.
    pub place: Place,
    /// The field or column, as in `public_tests[0].output`; `.` for the problem as a whole.
    pub field: String,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Why an import ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A problem cannot be read.
    #[error("{0}; correct it, or leave such problems out with --skip-bad")]
    Row(BadRow),
    /// A file of problems in rlef's own format cannot be read.
    #[error(transparent)]
    Jsonl(#[from] JsonlError),
    /// A file or folder cannot be read.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file as a whole is not what it should be; none of its problems can be read any more.
    #[error("{file}: {message}")]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// The format is not known.
    #[error(
        "{file}: {message}; known formats: {}; name one with --format",
        Format::names()
    )]
    Unknown {
        /// The file or folder.
        file: String,
        /// What was found instead.
        message: String,
    },
    /// A setting is out of its range.
    #[error("the setting `{setting}` {message}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// What it must be.
        message: String,
    },
    /// Not one problem came out.
    #[error("{from} gave no problem: {} skipped as unreadable, {} dropped for want of tests", summary.skipped, summary.dropped.values().sum::<u64>())]
    Nothing {
        /// What was read.
        from: String,
        /// What became of its problems.
        summary: Box<Summary>,
    },
    /// What was read cannot be kept.
    #[error("the problems cannot be written: {0}")]
    Sink(#[source] io::Error),
}

impl ImportError {
    pub(crate) fn io(file: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            file: file.into(),
            source,
        }
    }

    pub(crate) fn damaged(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Damaged {
            file: file.into(),
            message: message.into(),
        }
    }
}
