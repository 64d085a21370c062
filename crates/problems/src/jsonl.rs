//! Problem files: JSON, one problem a line (FORMAT.md in this crate describes it). Reading streams, checks every problem
//! (see [`Problem::validate`]) and says where a mistake is. It knows one file at a time; sets with splits are made of
//! files in [`crate::ProblemSet`].

#[cfg(test)]
mod tests;

use crate::import::{BadRow, Found, ImportError, Place, Rows};
use crate::write::Replacement;
use crate::{Invalid, Problem};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Longest line that is read, in bytes. Tests of hundreds of megabytes belong elsewhere, and a file without line breaks
/// must not fill the memory.
const LONGEST_LINE: u64 = 1 << 28;

/// What went wrong with a problem file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonlError {
    /// The file cannot be opened, read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A line is no problem in JSON.
    #[error("{file}, line {line}, field `{field}`: {message}")]
    Parse {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The field, as in `public_tests[0].output`; `.` for the line as a whole.
        field: String,
        /// What is wrong.
        message: String,
    },
    /// A problem reads well but makes no sense.
    #[error("{file}, line {line}: {source}")]
    Invalid {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The field and what is wrong with it.
        source: Invalid,
    },
    /// An id is used twice.
    #[error(
        "{file}, line {line}, field `id`: `{id}` is already the problem of line {first}; ids are unique in a file"
    )]
    Duplicate {
        /// The file.
        file: String,
        /// The second line with this id, from 1.
        line: usize,
        /// The first.
        first: usize,
        /// The id.
        id: String,
    },
    /// A line is longer than any sensible problem.
    #[error("{file}, line {line}: longer than {} MiB; is this a file with one problem a line?", LONGEST_LINE >> 20)]
    TooLong {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
    },
}

/// Reads problems one after another; empty lines are skipped. Ends after the first error.
pub struct Reader<R> {
    source: R,
    file: String,
    line: usize,
    bytes: u64,
    lines_of_ids: HashMap<String, usize>,
    failed: bool,
}

impl Reader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, JsonlError> {
        let file = path.display().to_string();
        // A pipe is fine (it may come from another command), a device that never ends is not.
        let opened = match std::fs::metadata(path) {
            Ok(about) if about.is_file() || about.file_type().is_fifo() => File::open(path),
            Ok(_) => Err(std::io::Error::other("not a file")),
            Err(error) => Err(error),
        };
        match opened {
            Ok(source) => Ok(Self::new(file, BufReader::with_capacity(1 << 16, source))),
            Err(source) => Err(JsonlError::Io { file, source }),
        }
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads from `source`; `file` names it in errors.
    pub fn new(file: impl Into<String>, source: R) -> Self {
        Self {
            source,
            file: file.into(),
            line: 0,
            bytes: 0,
            lines_of_ids: HashMap::new(),
            failed: false,
        }
    }

    /// As [`next`](Iterator::next), but goes on after a line that is no problem: what it returns next is the line after.
    /// Only when the source cannot be read is nothing left.
    pub fn next_line(&mut self) -> Option<Result<Problem, JsonlError>> {
        if self.failed {
            return None;
        }
        let problem = self.read();
        self.failed = matches!(
            problem,
            Err(JsonlError::Io { .. } | JsonlError::TooLong { .. })
        );
        problem.transpose()
    }

    /// The number of the line that was read last, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    fn read(&mut self) -> Result<Option<Problem>, JsonlError> {
        let mut text = Vec::new();
        loop {
            text.clear();
            let read = (&mut self.source)
                .take(LONGEST_LINE + 1)
                .read_until(b'\n', &mut text);
            let read = read.map_err(|source| JsonlError::Io {
                file: self.file.clone(),
                source,
            })?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            self.bytes += read as u64;
            if read as u64 > LONGEST_LINE {
                return Err(JsonlError::TooLong {
                    file: self.file.clone(),
                    line: self.line,
                });
            }
            if !text.trim_ascii().is_empty() {
                return self.parse(text.trim_ascii()).map(Some);
            }
        }
    }

    fn parse(&mut self, text: &[u8]) -> Result<Problem, JsonlError> {
        let mut json = serde_json::Deserializer::from_slice(text);
        let parsed: Result<Problem, _> = serde_path_to_error::deserialize(&mut json);
        let (file, line) = (self.file.clone(), self.line);
        let problem = match parsed {
            Ok(problem) => problem,
            Err(error) => {
                let field = error.path().to_string();
                let message = message_of(error.inner());
                return Err(JsonlError::Parse {
                    file,
                    line,
                    field,
                    message,
                });
            }
        };
        if let Err(error) = json.end() {
            return Err(JsonlError::Parse {
                file,
                line,
                field: ".".to_owned(),
                message: message_of(&error),
            });
        }
        problem.validate().map_err(|source| JsonlError::Invalid {
            file: file.clone(),
            line,
            source,
        })?;
        match self.lines_of_ids.insert(problem.id.clone(), line) {
            Some(first) => Err(JsonlError::Duplicate {
                file,
                line,
                first,
                id: problem.id,
            }),
            None => Ok(problem),
        }
    }
}

/// The error without its line, which is always 1: each line of the file is a text of its own to the JSON reader.
fn message_of(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rsplit_once(" at line 1 column ") {
        Some((what, column)) => format!("{what} (column {column})"),
        None => message,
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Problem, JsonlError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let problem = self.read();
        self.failed = problem.is_err();
        problem.transpose()
    }
}

/// All problems of a file.
///
/// # Errors
/// The first mistake in it.
pub fn read_file(path: &Path) -> Result<Vec<Problem>, JsonlError> {
    Reader::open(path)?.collect()
}

/// All problems of a text; `file` names it in errors.
///
/// # Errors
/// The first mistake in it.
pub fn read_str(file: &str, text: &str) -> Result<Vec<Problem>, JsonlError> {
    Reader::new(file, text.as_bytes()).collect()
}

/// Writes problems one a line.
///
/// # Errors
/// When writing fails.
pub fn write<'a>(
    target: &mut impl Write,
    problems: impl IntoIterator<Item = &'a Problem>,
) -> io::Result<()> {
    for problem in problems {
        serde_json::to_writer(&mut *target, problem)?;
        target.write_all(b"\n")?;
    }
    Ok(())
}

/// Writes a file of problems, replacing one that is there once the new one is whole: whoever reads it, at any time, even
/// after a crash, meets the old file or the new one.
///
/// # Errors
/// When the file cannot be written.
pub fn write_file<'a>(
    path: &Path,
    problems: impl IntoIterator<Item = &'a Problem>,
) -> Result<(), JsonlError> {
    let mut writer = Writer::create(path)?;
    for problem in problems {
        writer.write(problem)?;
    }
    writer.finish()
}

/// Writes a file problem by problem. It takes its place only in [`finish`](Self::finish), replacing one that is there;
/// without that, nothing is left behind.
pub struct Writer {
    target: BufWriter<Replacement>,
    file: String,
}

impl Writer {
    /// Starts a file.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(path: &Path) -> Result<Self, JsonlError> {
        let file = path.display().to_string();
        match Replacement::create(path) {
            Ok(target) => Ok(Self {
                target: BufWriter::with_capacity(1 << 16, target),
                file,
            }),
            Err(source) => Err(JsonlError::Io { file, source }),
        }
    }

    /// Adds a problem.
    ///
    /// # Errors
    /// When it cannot be written, or would be too long for a reader.
    pub fn write(&mut self, problem: &Problem) -> Result<(), JsonlError> {
        let fail = |source| JsonlError::Io {
            file: self.file.clone(),
            source,
        };
        let line = serde_json::to_vec(problem).map_err(|error| fail(error.into()))?;
        if line.len() as u64 >= LONGEST_LINE {
            let most = LONGEST_LINE >> 20;
            let what = format!(
                "problem `{}` takes more than {most} MiB as a line; leave its largest tests out",
                problem.id
            );
            return Err(fail(io::Error::other(what)));
        }
        self.target
            .write_all(&line)
            .and_then(|()| self.target.write_all(b"\n"))
            .map_err(fail)
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// When what is left cannot be written.
    pub fn finish(self) -> Result<(), JsonlError> {
        let file = self.file;
        let done = self
            .target
            .into_inner()
            .map_err(io::IntoInnerError::into_error);
        done.and_then(Replacement::finish)
            .map_err(|source| JsonlError::Io { file, source })
    }
}

/// The problems of a file, for an import.
pub(crate) fn rows(path: &Path) -> Result<FileRows, ImportError> {
    Ok(FileRows(Reader::open(path)?))
}

pub(crate) struct FileRows(Reader<BufReader<File>>);

impl Rows for FileRows {
    fn next(&mut self) -> Option<Result<Found, ImportError>> {
        let read = self.0.next_line()?;
        let place = Place::Line(self.0.line);
        Some(match read {
            Ok(problem) => Ok(Found {
                place,
                problem,
                notes: Vec::new(),
            }),
            Err(JsonlError::Parse {
                file,
                field,
                message,
                ..
            }) => Err(ImportError::Row(BadRow {
                file,
                place,
                field,
                message,
            })),
            Err(JsonlError::Invalid { file, source, .. }) => Err(ImportError::Row(BadRow {
                file,
                place,
                field: source.field,
                message: source.problem,
            })),
            Err(JsonlError::Duplicate {
                file, first, id, ..
            }) => {
                let message = format!(
                    "`{id}` is already the problem of line {first}; ids are unique in a file"
                );
                Err(ImportError::Row(BadRow {
                    file,
                    place,
                    field: "id".to_owned(),
                    message,
                }))
            }
            Err(error) => Err(error.into()),
        })
    }

    fn bytes(&self) -> u64 {
        self.0.bytes
    }
}
