//! The problems of a set one after another, for sets that are larger than the memory: of files, no more than one problem
//! is held at a time. The generated and the bundled sets are small and are held whole.

use super::{BASICS, ProblemSet, SPLITS, SetError, files_in};
use crate::{JsonlError, Problem, jsonl};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What a problem of no split is said to be in.
const ALL: &str = "all";

/// Reads what [`ProblemSet::open`] opens, in the same order: `train`, `valid`, `test`. Ends after the first error.
pub struct ProblemStream {
    spec: String,
    parts: std::vec::IntoIter<Part>,
    current: Option<Current>,
    /// The splits of the ids met so far. Ids are known by a digest: a million of them take little memory.
    seen: HashMap<u128, &'static str>,
    any: bool,
    failed: bool,
}

type Current = (
    Option<&'static str>,
    Box<dyn Iterator<Item = Result<Problem, JsonlError>>>,
);

enum Part {
    File(Option<&'static str>, PathBuf),
    Basics,
    Held(Option<&'static str>, Vec<Problem>),
}

impl Part {
    fn split(&self) -> Option<&'static str> {
        match self {
            Self::File(split, _) | Self::Held(split, _) => *split,
            Self::Basics => None,
        }
    }

    fn open(self) -> Result<Current, JsonlError> {
        Ok(match self {
            Self::File(split, path) => (split, Box::new(jsonl::Reader::open(&path)?)),
            Self::Basics => {
                let reader =
                    jsonl::Reader::new("problems/basics/problems.jsonl", BASICS.as_bytes());
                (None, Box::new(reader))
            }
            Self::Held(split, problems) => (split, Box::new(problems.into_iter().map(Ok))),
        })
    }
}

impl ProblemStream {
    /// Opens a set as [`ProblemSet::open`] does, or one split of it; `all`, or none, is every problem.
    ///
    /// # Errors
    /// An unknown set or split. Mistakes in its files come when they are read.
    pub fn open(spec: &str, split: Option<&str>) -> Result<Self, SetError> {
        let mut parts = parts(spec)?;
        if let Some(wanted) = split.filter(|split| *split != ALL) {
            let known: Vec<&str> = parts.iter().filter_map(Part::split).chain([ALL]).collect();
            if !known.contains(&wanted) {
                return Err(SetError::UnknownSplit {
                    set: spec.to_owned(),
                    split: wanted.to_owned(),
                    known: known.join(", "),
                });
            }
            parts.retain(|part| part.split() == Some(wanted));
        }
        Ok(Self {
            spec: spec.to_owned(),
            parts: parts.into_iter(),
            current: None,
            seen: HashMap::new(),
            any: false,
            failed: false,
        })
    }

    fn read(&mut self) -> Result<Option<(Option<&'static str>, Problem)>, SetError> {
        loop {
            if let Some((split, problems)) = &mut self.current
                && let Some(problem) = problems.next()
            {
                let (split, problem) = (*split, problem?);
                self.any = true;
                let second = split.unwrap_or(ALL);
                if let Some(first) = self.seen.insert(digest(&problem.id), second) {
                    return Err(SetError::SharedId {
                        spec: self.spec.clone(),
                        id: problem.id,
                        first: first.to_owned(),
                        second: second.to_owned(),
                    });
                }
                return Ok(Some((split, problem)));
            }
            self.current = match self.parts.next() {
                Some(part) => Some(part.open()?),
                None if self.any => return Ok(None),
                None => {
                    return Err(SetError::NoProblems {
                        spec: self.spec.clone(),
                    });
                }
            };
        }
    }
}

impl Iterator for ProblemStream {
    /// The split, where the set has any, and the problem.
    type Item = Result<(Option<&'static str>, Problem), SetError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let read = self.read();
        self.failed = !matches!(read, Ok(Some(_)));
        read.transpose()
    }
}

fn digest(id: &str) -> u128 {
    let hash = Sha256::digest(id.as_bytes());
    let bytes = hash.iter().take(16);
    bytes.fold(0, |sum, &byte| sum << 8 | u128::from(byte))
}

fn parts(spec: &str) -> Result<Vec<Part>, SetError> {
    if spec == "basics" {
        return Ok(vec![Part::Basics]);
    }
    if spec == "micro" || spec.starts_with("micro:") {
        let set = ProblemSet::open(spec)?;
        return SPLITS
            .into_iter()
            .map(|split| Ok(Part::Held(Some(split), set.split(split)?.to_vec())))
            .collect();
    }
    let path = Path::new(spec);
    if path.is_dir() {
        let files = SPLITS.map(|split| (split, path.join(format!("{split}.jsonl"))));
        let parts: Vec<Part> = files
            .into_iter()
            .filter(|(_, file)| file.is_file())
            .map(|(split, file)| Part::File(Some(split), file))
            .collect();
        if parts.is_empty() {
            return Err(SetError::EmptyFolder {
                folder: path.to_owned(),
                found: files_in(path),
            });
        }
        return Ok(parts);
    }
    let named = path
        .extension()
        .is_some_and(|extension| extension == "jsonl");
    if path.is_file() || named {
        return Ok(vec![Part::File(None, path.to_owned())]);
    }
    Err(SetError::UnknownSet {
        spec: spec.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(spec: &str, split: Option<&str>) -> Vec<String> {
        let stream = ProblemStream::open(spec, split).unwrap();
        stream.map(|problem| problem.unwrap().1.id).collect()
    }

    fn ids_of_set(spec: &str, split: &str) -> Vec<String> {
        let set = ProblemSet::open(spec).unwrap();
        let problems = set.split(split).unwrap();
        problems.iter().map(|problem| problem.id.clone()).collect()
    }

    #[test]
    fn the_same_problems_in_the_same_order_as_the_whole_set() {
        for spec in ["basics", "micro:1"] {
            assert_eq!(ids(spec, None), ids_of_set(spec, "all"), "{spec}");
        }
        assert_eq!(ids("micro", Some("test")), ids_of_set("micro", "test"));
        assert_eq!(ids("basics", Some("all")), ids_of_set("basics", "all"));
    }

    #[test]
    fn what_is_not_there_is_said_at_once() {
        let said = |spec, split| {
            let opened = ProblemStream::open(spec, split).map(|_| ());
            opened.unwrap_err().to_string()
        };
        assert!(said("nosuch", None).contains("no problem set `nosuch`"));
        assert!(said("basics", Some("train")).contains("no split `train`; it has all"));
    }

    #[test]
    fn splits_must_not_share_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        let problems = ProblemSet::open("basics").unwrap();
        let two = problems.split("all").unwrap().iter().take(2);
        jsonl::write_file(&folder.path().join("train.jsonl"), two.clone()).unwrap();
        jsonl::write_file(&folder.path().join("test.jsonl"), two.skip(1)).unwrap();
        let spec = folder.path().to_str().unwrap();
        let mut stream = ProblemStream::open(spec, None).unwrap();
        assert!(stream.next().unwrap().is_ok() && stream.next().unwrap().is_ok());
        let error = stream.next().unwrap().unwrap_err();
        assert!(matches!(error, SetError::SharedId { .. }), "{error}");
        assert!(stream.next().is_none());
    }
}
