//! Problem files: JSON, one problem a line. Reading streams, checks every problem (see [`Problem::validate`]) and says
//! where a mistake is. It knows one file at a time; sets with splits are made of files in [`crate::ProblemSet`].

#[cfg(test)]
mod tests;

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
            lines_of_ids: HashMap::new(),
            failed: false,
        }
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

/// Writes a file of problems, replacing one that is there.
///
/// # Errors
/// When the file cannot be written.
pub fn write_file<'a>(
    path: &Path,
    problems: impl IntoIterator<Item = &'a Problem>,
) -> Result<(), JsonlError> {
    let save = || {
        let mut target = BufWriter::new(File::create(path)?);
        write(&mut target, problems)?;
        target.flush()
    };
    save().map_err(|source| JsonlError::Io {
        file: path.display().to_string(),
        source,
    })
}
