//! Sets of problems by name: the micro family, the bundled basics, or files.

mod stream;
#[cfg(test)]
mod tests;

pub use stream::ProblemStream;

use crate::{JsonlError, Problem, jsonl, micro};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The basics are part of the command, so that it needs no files of its own.
const BASICS: &str = include_str!("../../../problems/basics/problems.jsonl");

/// The splits that a set can have; `all` is every problem.
pub const SPLITS: [&str; 3] = ["train", "valid", "test"];

/// What can be opened, for messages.
const SPECS: &str = "`micro`, `micro:SEED`, `basics`, a file NAME.jsonl, or a folder with train.jsonl, valid.jsonl or test.jsonl";

/// Why a set, a split or a problem is not to be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// No set has this name, and no file either.
    #[error("no problem set `{spec}`; there are {SPECS}")]
    UnknownSet {
        /// What was asked for.
        spec: String,
    },
    /// The text after `micro:` is no seed.
    #[error("`{spec}`: the seed must be a whole number from 0 to {}", u64::MAX)]
    Seed {
        /// What was asked for.
        spec: String,
    },
    /// The folder has none of the files.
    #[error("the folder {folder} has no train.jsonl, valid.jsonl or test.jsonl; it has {found}")]
    EmptyFolder {
        /// The folder.
        folder: PathBuf,
        /// The problem files in it, for people.
        found: String,
    },
    /// A file is wrong.
    #[error(transparent)]
    File(#[from] JsonlError),
    /// The family cannot be generated.
    #[error(transparent)]
    Micro(#[from] micro::MicroError),
    /// A set without problems.
    #[error("the problem set `{spec}` has no problems")]
    NoProblems {
        /// What was asked for.
        spec: String,
    },
    /// Two splits have a problem of the same name: what is learnt from would be reported on.
    #[error("`{id}` is in {first} and in {second} of `{spec}`; splits must not share a problem")]
    SharedId {
        /// What was asked for.
        spec: String,
        /// The id.
        id: String,
        /// The split it is in.
        first: String,
        /// The split it is in as well.
        second: String,
    },
    /// The set has no such split.
    #[error("`{set}` has no split `{split}`; it has {known}")]
    UnknownSplit {
        /// The set.
        set: String,
        /// What was asked for.
        split: String,
        /// The splits it has.
        known: String,
    },
    /// The set has no such problem.
    #[error("`{set}` has no problem `{id}`; {hint}")]
    UnknownId {
        /// The set.
        set: String,
        /// What was asked for.
        id: String,
        /// The nearest ids.
        hint: String,
    },
}

/// Problems with unique ids, in splits.
#[derive(Debug, Clone)]
pub struct ProblemSet {
    name: String,
    /// Split after split.
    problems: Vec<Problem>,
    splits: Vec<(String, Range<usize>)>,
    places: HashMap<String, usize>,
}

impl ProblemSet {
    /// Opens `micro` (seed 0), `micro:SEED`, `basics`, a `.jsonl` file, or a folder with `train.jsonl`, `valid.jsonl`
    /// and `test.jsonl` (at least one of them). A file or folder that has the name of a bundled set is opened as
    /// `./micro`.
    ///
    /// # Errors
    /// An unknown name, or the first mistake in the files.
    pub fn open(spec: &str) -> Result<Self, SetError> {
        if spec == "micro" {
            return Self::micro(spec, 0);
        }
        if let Some(seed) = spec.strip_prefix("micro:") {
            let seed = seed.parse().map_err(|_| SetError::Seed {
                spec: spec.to_owned(),
            })?;
            return Self::micro(spec, seed);
        }
        if spec == "basics" {
            return Self::new(
                spec,
                vec![(
                    None,
                    jsonl::read_str("problems/basics/problems.jsonl", BASICS)?,
                )],
            );
        }
        let path = Path::new(spec);
        if path.is_dir() {
            return Self::open_folder(spec, path);
        }
        if path.is_file()
            || path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
        {
            return Self::new(spec, vec![(None, jsonl::read_file(path)?)]);
        }
        Err(SetError::UnknownSet {
            spec: spec.to_owned(),
        })
    }

    fn micro(spec: &str, seed: u64) -> Result<Self, SetError> {
        let micro::MicroSet { train, valid, test } = micro::generate(seed)?;
        Self::with_splits(spec, train, valid, test)
    }

    fn open_folder(spec: &str, folder: &Path) -> Result<Self, SetError> {
        let mut parts = Vec::new();
        for split in SPLITS {
            let file = folder.join(format!("{split}.jsonl"));
            if file.is_file() {
                parts.push((Some(split), jsonl::read_file(&file)?));
            }
        }
        if parts.is_empty() {
            return Err(SetError::EmptyFolder {
                folder: folder.to_owned(),
                found: files_in(folder),
            });
        }
        Self::new(spec, parts)
    }

    /// A set of problems that are already there; `name` is used in messages. Empty splits are left out.
    ///
    /// # Errors
    /// When there are no problems or two have the same id.
    pub fn with_splits(
        name: &str,
        train: Vec<Problem>,
        valid: Vec<Problem>,
        test: Vec<Problem>,
    ) -> Result<Self, SetError> {
        let parts = SPLITS.into_iter().map(Some).zip([train, valid, test]);
        Self::new(
            name,
            parts.filter(|(_, problems)| !problems.is_empty()).collect(),
        )
    }

    /// Parts without a name are in no split but `all`.
    fn new(spec: &str, parts: Vec<(Option<&str>, Vec<Problem>)>) -> Result<Self, SetError> {
        let mut set = Self {
            name: spec.to_owned(),
            problems: Vec::new(),
            splits: Vec::new(),
            places: HashMap::new(),
        };
        for (split, mut problems) in parts {
            let start = set.problems.len();
            for (at, problem) in problems.iter().enumerate() {
                if let Some(first) = set.places.insert(problem.id.clone(), start + at) {
                    return Err(SetError::SharedId {
                        spec: spec.to_owned(),
                        id: problem.id.clone(),
                        first: set.split_of(first).or(split).unwrap_or("all").to_owned(),
                        second: split.unwrap_or("all").to_owned(),
                    });
                }
            }
            set.problems.append(&mut problems);
            if let Some(split) = split {
                set.splits
                    .push((split.to_owned(), start..set.problems.len()));
            }
        }
        if set.problems.is_empty() {
            return Err(SetError::NoProblems {
                spec: spec.to_owned(),
            });
        }
        Ok(set)
    }

    fn split_of(&self, place: usize) -> Option<&str> {
        self.splits
            .iter()
            .find(|(_, range)| range.contains(&place))
            .map(|(name, _)| name.as_str())
    }

    /// What the set was opened as.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names that [`split`](Self::split) knows; `all` is the last.
    pub fn splits(&self) -> impl Iterator<Item = &str> {
        self.splits
            .iter()
            .map(|(name, _)| name.as_str())
            .chain(std::iter::once("all"))
    }

    /// The problems of `train`, `valid`, `test` or `all`.
    ///
    /// # Errors
    /// When the set has no such split.
    pub fn split(&self, name: &str) -> Result<&[Problem], SetError> {
        if name == "all" {
            return Ok(&self.problems);
        }
        let range = self
            .splits
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, range)| range.clone());
        range
            .and_then(|range| self.problems.get(range))
            .ok_or_else(|| SetError::UnknownSplit {
                set: self.name.clone(),
                split: name.to_owned(),
                known: self.splits().collect::<Vec<_>>().join(", "),
            })
    }

    /// The problem of that id.
    ///
    /// # Errors
    /// When there is none; the message names the nearest ids.
    pub fn get(&self, id: &str) -> Result<&Problem, SetError> {
        let problem = self
            .places
            .get(id)
            .and_then(|&place| self.problems.get(place));
        problem.ok_or_else(|| SetError::UnknownId {
            set: self.name.clone(),
            id: id.to_owned(),
            hint: self.hint(id),
        })
    }

    /// The nearest ids, or where nothing is near, the first ones.
    fn hint(&self, id: &str) -> String {
        let mut near: Vec<(f64, &str)> = self
            .problems
            .iter()
            .map(|problem| (strsim::jaro_winkler(id, &problem.id), problem.id.as_str()))
            .filter(|(likeness, _)| *likeness > 0.8)
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        let name = |ids: Vec<&str>| {
            ids.into_iter()
                .map(|id| format!("`{id}`"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        if near.is_empty() {
            let first = name(
                self.problems
                    .iter()
                    .take(3)
                    .map(|problem| problem.id.as_str())
                    .collect(),
            );
            format!("it has {} problems: {first} …", self.problems.len())
        } else {
            format!(
                "nearest: {}",
                name(near.into_iter().take(3).map(|(_, id)| id).collect())
            )
        }
    }
}

/// The problem files of a folder, for a message.
fn files_in(folder: &Path) -> String {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".jsonl"))
        .collect();
    names.sort();
    if names.is_empty() {
        "no other .jsonl file".to_owned()
    } else {
        names.join(", ")
    }
}
