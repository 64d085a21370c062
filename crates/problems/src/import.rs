//! Problems of other formats, one after another: what is read, what is left out and why, and how far it got.
//!
//! [`import`] recognises the format (or is told), reads problem by problem, never more than one of them in memory, and
//! hands each to a [`Sink`]. It judges nothing: whether tests and solutions agree is for an audit to find out.

mod detect;
mod error;
mod keep;
mod options;
#[cfg(test)]
mod tests;

pub use detect::Format;
pub use error::{BadRow, ImportError, Place};
pub use keep::SetWriter;
pub use options::ImportOptions;

use crate::formats::{codecontests, package};
use crate::{Problem, jsonl};
use detect::Part;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io;
use std::path::Path;

/// Why a problem that is well formed cannot be trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Dropped {
    /// No public test: nothing to give feedback on.
    NoPublicTests,
    /// No private test: nothing hidden to reward by.
    NoPrivateTests,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPublicTests => "no public tests",
            Self::NoPrivateTests => "no private tests",
        })
    }
}

/// Why RLEF leaves a problem out, if it does: it "is missing public or private tests" (arXiv 2410.02089, section 3.1;
/// in CodeContests that leaves out 669 of 13,328 training problems). Generated tests do not stand in for private ones.
pub fn why_dropped(problem: &Problem) -> Option<Dropped> {
    if problem.public_tests.is_empty() {
        Some(Dropped::NoPublicTests)
    } else if problem.private_tests.is_empty() {
        Some(Dropped::NoPrivateTests)
    } else {
        None
    }
}

/// A problem that came out of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The problem; it is valid (see [`Problem::validate`]).
    pub problem: Problem,
    /// The split that its file belongs to, as far as the file's name or the options tell.
    pub split: Option<String>,
    /// What was decided or lost on the way, for people: a time limit that the source does not name, a solution in an
    /// unknown language …
    pub notes: Vec<String>,
}

/// A problem that was left out.
#[derive(Debug)]
pub enum LeftOut {
    /// It cannot be read; met only with [`ImportOptions::skip_bad`].
    Bad(BadRow),
    /// It reads well, but see [`why_dropped`].
    Dropped {
        /// The file.
        file: String,
        /// Where in it.
        place: Place,
        /// Its id.
        id: String,
        /// Why.
        why: Dropped,
    },
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bad(row) => row.fmt(f),
            Self::Dropped {
                file,
                place,
                id,
                why,
            } => write!(f, "{file}{place}: `{id}` has {why}"),
        }
    }
}

/// Takes what is imported.
pub trait Sink {
    /// The next problem.
    ///
    /// # Errors
    /// When it cannot be kept; the import ends with it.
    fn problem(&mut self, imported: Imported) -> io::Result<()>;

    /// A problem that was left out.
    ///
    /// # Errors
    /// When the import should end here.
    fn left_out(&mut self, _left_out: LeftOut) -> io::Result<()> {
        Ok(())
    }
}

impl<F: FnMut(Imported) -> io::Result<()>> Sink for F {
    fn problem(&mut self, imported: Imported) -> io::Result<()> {
        self(imported)
    }
}

/// How far an import got.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The file that is being read.
    pub file: String,
    /// Problems read, those left out included.
    pub rows: u64,
    /// Of how many, where that is known beforehand.
    pub total_rows: Option<u64>,
    /// Bytes of the files read so far; for archives and Parquet, whole files only.
    pub bytes: u64,
    /// Bytes of all files; 0 where that is not known (pipes).
    pub total_bytes: u64,
}

/// What an import came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The formats met.
    pub formats: Vec<Format>,
    /// Problems handed on.
    pub problems: u64,
    /// Problems that could not be read and were skipped.
    pub skipped: u64,
    /// Problems that were dropped, by reason.
    pub dropped: BTreeMap<Dropped, u64>,
}

/// A problem as a reader finds it, before it is checked.
pub(crate) struct Found {
    pub(crate) place: Place,
    pub(crate) problem: Problem,
    pub(crate) notes: Vec<String>,
}

/// A reader of one file, package or folder.
pub(crate) trait Rows {
    /// The next problem. After [`ImportError::Row`] the one after it can still be read.
    fn next(&mut self) -> Option<Result<Found, ImportError>>;

    /// Bytes read so far, where that is known.
    fn bytes(&self) -> u64 {
        0
    }

    /// How many problems there are, where that is known.
    fn total(&self) -> Option<u64> {
        None
    }
}

/// Reads a file, a package or a folder of them, and hands every problem to `sink`; `progress` is told after each.
///
/// # Errors
/// The first problem that cannot be read, unless [`ImportOptions::skip_bad`]; what the sink says; and where no problem
/// is left in the end, [`ImportError::Nothing`].
pub fn import(
    source: &Path,
    options: &ImportOptions,
    sink: &mut dyn Sink,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Summary, ImportError> {
    options.check()?;
    let parts = detect::parts(source, options)?;
    let mut summary = Summary {
        formats: Vec::new(),
        problems: 0,
        skipped: 0,
        dropped: BTreeMap::new(),
    };
    let mut now = Progress {
        total_bytes: parts.iter().map(|part| part.bytes).sum(),
        ..Progress::default()
    };
    let mut seen = HashSet::new();
    let mut before = 0;
    for part in &parts {
        if !summary.formats.contains(&part.format) {
            summary.formats.push(part.format);
        }
        now.file = part.path.display().to_string();
        let mut rows = open(part, options)?;
        let known_rows = now.rows;
        while let Some(row) = rows.next() {
            now.rows += 1;
            now.bytes = before + rows.bytes().min(part.bytes);
            now.total_rows = rows
                .total()
                .filter(|_| parts.len() == 1)
                .map(|total| known_rows + total);
            match row.and_then(|found| finish(found, part, options, &mut seen)) {
                Ok(Ok(imported)) => {
                    summary.problems += 1;
                    sink.problem(imported).map_err(ImportError::Sink)?;
                }
                Ok(Err(left_out)) => {
                    if let LeftOut::Dropped { why, .. } = &left_out {
                        *summary.dropped.entry(*why).or_default() += 1;
                    }
                    sink.left_out(left_out).map_err(ImportError::Sink)?;
                }
                Err(ImportError::Row(bad)) if options.skip_bad => {
                    summary.skipped += 1;
                    sink.left_out(LeftOut::Bad(bad))
                        .map_err(ImportError::Sink)?;
                }
                Err(error) => return Err(error),
            }
            progress(&now);
        }
        before += part.bytes;
        now.bytes = before;
    }
    if summary.problems == 0 {
        return Err(ImportError::Nothing {
            from: source.display().to_string(),
            summary: Box::new(summary),
        });
    }
    Ok(summary)
}

fn open(part: &Part, options: &ImportOptions) -> Result<Box<dyn Rows>, ImportError> {
    Ok(match part.format {
        Format::Jsonl => Box::new(jsonl::rows(&part.path)?),
        Format::CodeContests => Box::new(codecontests::rows(&part.path, options)?),
        Format::Package => Box::new(package::rows(&part.path, options)),
        Format::Folder => Box::new(package::plain_rows(&part.path, options)),
    })
}

/// Checks a problem that was found and completes it by what the options say.
fn finish(
    found: Found,
    part: &Part,
    options: &ImportOptions,
    seen: &mut HashSet<u128>,
) -> Result<Result<Imported, LeftOut>, ImportError> {
    let Found {
        place,
        mut problem,
        notes,
    } = found;
    let file = part.path.display().to_string();
    if let Some(checker) = &options.checker
        && problem.function.is_none()
    {
        problem.checker = checker.clone();
    }
    if let Some(why) = why_dropped(&problem) {
        return Ok(Err(LeftOut::Dropped {
            file,
            place,
            id: problem.id,
            why,
        }));
    }
    if options.generated_as_private {
        problem.private_tests.append(&mut problem.generated_tests);
    }
    let bad = |field: String, message: String| {
        ImportError::Row(BadRow {
            file: file.clone(),
            place: place.clone(),
            field,
            message,
        })
    };
    problem
        .validate()
        .map_err(|invalid| bad(invalid.field, invalid.problem))?;
    if part.format.ids_are_made() {
        // Titles repeat; what is made of them must not.
        let first = problem.id.clone();
        let mut number = 2;
        while !seen.insert(digest(&problem.id)) {
            problem.id = format!("{first}~{number}");
            number += 1;
        }
    } else if !seen.insert(digest(&problem.id)) {
        let message = format!(
            "`{}` is the id of an earlier problem; ids are unique in a set",
            problem.id
        );
        return Err(bad("id".to_owned(), message));
    }
    let split = part.split.clone().or_else(|| options.split.clone());
    Ok(Ok(Imported {
        problem,
        split,
        notes,
    }))
}

/// Stands for an id: a million of them take little memory.
fn digest(id: &str) -> u128 {
    use sha2::{Digest as _, Sha256};
    let hash = Sha256::digest(id.as_bytes());
    hash.iter()
        .take(16)
        .fold(0, |sum, &byte| sum << 8 | u128::from(byte))
}

/// A name without white space and control characters, to be used as an id.
pub(crate) fn id_of(name: &str) -> String {
    let parts: Vec<String> = name
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect();
    parts.join("-")
}
