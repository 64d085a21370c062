//! A sink that makes a problem set of what is imported.

use super::{Imported, LeftOut, Sink};
use crate::jsonl::Writer;
use crate::{JsonlError, SPLITS};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Writes `train.jsonl`, `valid.jsonl` and `test.jsonl` (those that get problems) into a folder, which
/// [`ProblemSet::open`](crate::ProblemSet::open) reads. Files take their places in [`finish`](Self::finish); until then a
/// set that is there stays as it is.
pub struct SetWriter {
    folder: PathBuf,
    writers: BTreeMap<String, Writer>,
    /// Notes about problems, with their ids, in the order in which they came.
    pub notes: Vec<(String, String)>,
    /// Problems that were left out, in words.
    pub left_out: Vec<String>,
    dropped: usize,
}

/// Notes, and problems left out, that are kept in words; the numbers are in the import's summary.
const MOST_WORDS: usize = 1000;

impl SetWriter {
    /// Makes the folder if it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            writers: BTreeMap::new(),
            notes: Vec::new(),
            left_out: Vec::new(),
            dropped: 0,
        })
    }

    /// Puts the files in their places; their paths.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn finish(self) -> Result<Vec<PathBuf>, JsonlError> {
        let mut paths = Vec::new();
        for (split, writer) in self.writers {
            writer.finish()?;
            paths.push(self.folder.join(format!("{split}.jsonl")));
        }
        Ok(paths)
    }

    /// How many notes and reports were not kept for want of room.
    pub fn words_dropped(&self) -> usize {
        self.dropped
    }
}

impl Sink for SetWriter {
    fn problem(&mut self, imported: Imported) -> io::Result<()> {
        let split = imported.split.as_deref().unwrap_or(SPLITS[0]);
        if !SPLITS.contains(&split) {
            let known = SPLITS.join(", ");
            return Err(io::Error::other(format!(
                "`{split}` is no split; there are {known}"
            )));
        }
        if !self.writers.contains_key(split) {
            let path = self.folder.join(format!("{split}.jsonl"));
            self.writers.insert(
                split.to_owned(),
                Writer::create(&path).map_err(io::Error::other)?,
            );
        }
        if let Some(writer) = self.writers.get_mut(split) {
            writer.write(&imported.problem).map_err(io::Error::other)?;
        }
        for note in imported.notes {
            if self.notes.len() < MOST_WORDS {
                self.notes.push((imported.problem.id.clone(), note));
            } else {
                self.dropped += 1;
            }
        }
        Ok(())
    }

    fn left_out(&mut self, left_out: LeftOut) -> io::Result<()> {
        if self.left_out.len() < MOST_WORDS {
            self.left_out.push(left_out.to_string());
        } else {
            self.dropped += 1;
        }
        Ok(())
    }
}
