//! Which format a file or a folder is in, and which files belong to it.

use super::{ImportError, ImportOptions};
use crate::records;
use std::fmt;
use std::path::{Path, PathBuf};

/// A format that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// One problem a line, as this crate writes it.
    Jsonl,
    /// CodeContests in the columns of `deepmind/code_contests`.
    CodeContests,
    /// A problem package of Kattis or the ICPC, as a folder or a zip archive.
    Package,
    /// A folder with `statement.md`, `public/*.in`, `private/*.in` and their outputs.
    Folder,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Jsonl, Self::CodeContests, Self::Package, Self::Folder];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::CodeContests => "codecontests",
            Self::Package => "package",
            Self::Folder => "folder",
        }
    }

    /// The format of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The names of all formats, for messages.
    pub(super) fn names() -> String {
        Self::ALL
            .map(|format| format!("`{}`", format.name()))
            .join(", ")
    }

    /// Whether ids come from titles, which may repeat.
    pub(super) fn ids_are_made(self) -> bool {
        matches!(self, Self::CodeContests)
    }

    /// Whether one source is one problem, in a folder or an archive.
    fn is_folder(self) -> bool {
        matches!(self, Self::Package | Self::Folder)
    }

    /// By the fields of a record.
    fn of_fields(names: &[String]) -> Option<Self> {
        let has = |wanted: &[&str]| {
            wanted
                .iter()
                .all(|name| names.iter().any(|known| known == name))
        };
        if has(&["description", "public_tests"]) {
            Some(Self::CodeContests)
        } else if has(&["statement", "public_tests"]) {
            Some(Self::Jsonl)
        } else {
            None
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A file or folder that is read as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) format: Format,
    pub(super) split: Option<String>,
    /// 0 where that is not known.
    pub(super) bytes: u64,
}

/// Endings of files with records.
const ENDINGS: [&str; 3] = ["parquet", "jsonl", "json"];

/// What belongs to a source, in the order of names.
pub(super) fn parts(source: &Path, options: &ImportOptions) -> Result<Vec<Part>, ImportError> {
    let about = std::fs::metadata(source)
        .map_err(|error| ImportError::io(source.display().to_string(), error))?;
    if !about.is_dir() {
        return Ok(vec![file_part(source, options)?]);
    }
    if let Some(format) = folder_format(source, options) {
        return Ok(vec![Part {
            path: source.to_owned(),
            format,
            split: None,
            bytes: 0,
        }]);
    }
    let mut all = Vec::new();
    // Files of data sets lie in `data/` of their repository.
    for folder in [source.to_owned(), source.join("data")] {
        for path in children(&folder)? {
            if path.is_dir() {
                if let Some(format) = folder_format(&path, options) {
                    all.push(Part {
                        path,
                        format,
                        split: None,
                        bytes: 0,
                    });
                }
            } else if is_archive(&path)
                || (has_records(&path) && !options.format.is_some_and(Format::is_folder))
            {
                all.push(file_part(&path, options)?);
            }
        }
        if !all.is_empty() {
            return Ok(all);
        }
    }
    Err(ImportError::Unknown {
        file: source.display().to_string(),
        message: "the folder holds neither a problem nor files or folders with problems".to_owned(),
    })
}

/// The entries of a folder; none where there is no such folder.
fn children(folder: &Path) -> Result<Vec<PathBuf>, ImportError> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let fail = |error| ImportError::io(folder.display().to_string(), error);
    let mut paths = Vec::new();
    for entry in folder.read_dir().map_err(fail)? {
        paths.push(entry.map_err(fail)?.path());
    }
    paths.sort();
    Ok(paths)
}

fn extension(path: &Path) -> String {
    path.extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase()
}

fn has_records(path: &Path) -> bool {
    ENDINGS.contains(&extension(path).as_str())
}

fn is_archive(path: &Path) -> bool {
    extension(path) == "zip"
}

/// The format of a folder that is one problem.
fn folder_format(path: &Path, options: &ImportOptions) -> Option<Format> {
    let found = if path.join("problem.yaml").is_file() {
        Format::Package
    } else if path.join("statement.md").is_file() {
        Format::Folder
    } else {
        return None;
    };
    // A format that was asked for keeps other folders out.
    options
        .format
        .is_none_or(|format| format == found)
        .then_some(found)
}

fn file_part(path: &Path, options: &ImportOptions) -> Result<Part, ImportError> {
    let about = std::fs::metadata(path)
        .map_err(|error| ImportError::io(path.display().to_string(), error))?;
    let bytes = if about.is_file() { about.len() } else { 0 };
    let format = match options.format {
        Some(format) => format,
        None if is_archive(path) => Format::Package,
        // A pipe can be read only once, so it cannot be looked into.
        None if !about.is_file() => Format::Jsonl,
        None => {
            let names = records::field_names(path, options.max_problem_bytes)?;
            Format::of_fields(&names).ok_or_else(|| ImportError::Unknown {
                file: path.display().to_string(),
                message: format!(
                    "its fields ({}) are those of no known format",
                    shown(&names)
                ),
            })?
        }
    };
    Ok(Part {
        path: path.to_owned(),
        format,
        split: split_of(path),
        bytes,
    })
}

fn shown(names: &[String]) -> String {
    const MOST: usize = 12;
    let mut shown: Vec<&str> = names.iter().take(MOST).map(String::as_str).collect();
    if names.len() > MOST {
        shown.push("…");
    }
    shown.join(", ")
}

/// The split in a name as in `train-00000-of-00039.parquet`, `valid.jsonl` or `test2.jsonl`.
fn split_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let word: String = name.chars().take_while(char::is_ascii_alphabetic).collect();
    let split = match word.as_str() {
        "train" => "train",
        "valid" | "validation" | "val" | "dev" => "valid",
        "test" => "test",
        _ => return None,
    };
    Some(split.to_owned())
}
