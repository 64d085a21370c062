//! Checkpoints of a run, each a folder `step_N` that holds all that the run needs to go on as if it had never stopped.
//!
//! A checkpoint is written to a folder of another name, flushed to the disk, and renamed: a folder that has its name is
//! whole. What it holds is listed with SHA-256 sums in `SHA256SUMS` (as `sha256sum -c` reads them), so that damage that
//! came later is found before it is believed.
//!
//! Not here: when to save, and what a run writes besides (see `rlef train`).

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rlef_model::folder::sha256;

mod state;

pub use state::Load;

/// The value network's weights.
pub const VALUE: &str = "value.safetensors";
/// What the optimiser knows of each weight.
const OPTIMISER: &str = "optimiser.bpk";
/// Counters and the position in the data. Every random draw follows from the run's seed and these.
const STATE: &str = "state.json";
/// The sums of the other files.
const SUMS: &str = "SHA256SUMS";

/// Why a checkpoint could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// It could not be written.
    #[error("cannot write {}: {why}", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What went wrong.
        why: String,
    },
    /// It is not there.
    #[error("there is no checkpoint {}", .path.display())]
    Missing {
        /// The folder.
        path: PathBuf,
    },
    /// It is not what was written.
    #[error("checkpoint {} is damaged: {what}", .path.display())]
    Damaged {
        /// The folder.
        path: PathBuf,
        /// Which file, and how.
        what: String,
    },
    /// It is whole but of something else.
    #[error("checkpoint {} does not fit: {what}", .path.display())]
    Other {
        /// The folder.
        path: PathBuf,
        /// What differs.
        what: String,
    },
}

/// The checkpoints of one run.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    dir: PathBuf,
}

impl Checkpoints {
    /// Those in `dir`, which need not be there yet.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The folder of the checkpoint after iteration `step`.
    pub fn path(&self, step: usize) -> PathBuf {
        self.dir.join(format!("step_{step}"))
    }

    /// The iterations after which there is one, the first one first. None of them has been checked.
    pub fn steps(&self) -> Vec<usize> {
        let names = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut steps: Vec<usize> = names
            .filter_map(|e| e.file_name().to_str()?.strip_prefix("step_")?.parse().ok())
            .collect();
        steps.sort_unstable();
        steps
    }

    /// The last one, among those before iteration `below`, that is as it was written.
    pub fn last_good(&self, below: usize) -> Option<usize> {
        let steps = self.steps().into_iter().rev();
        steps
            .filter(|&s| s < below)
            .find(|&s| self.verify(s).is_ok())
    }

    /// Checks every file against its sum.
    ///
    /// # Errors
    /// There is no such checkpoint, or it is not what was written.
    pub fn verify(&self, step: usize) -> Result<(), CheckpointError> {
        let path = self.path(step);
        if !path.is_dir() {
            return Err(CheckpointError::Missing { path });
        }
        let damaged = |what: String| CheckpointError::Damaged {
            path: path.clone(),
            what,
        };
        let sums = fs::read_to_string(path.join(SUMS))
            .map_err(|e| damaged(format!("cannot read {SUMS}: {e}")))?;
        let mut listed = vec![];
        for line in sums.lines() {
            let Some((sum, name)) = line.split_once("  ") else {
                return Err(damaged(format!("{SUMS} has the line {line:?}")));
            };
            if Path::new(name).components().count() != 1 {
                return Err(damaged(format!("{SUMS} names {name:?}")));
            }
            let found = sha256(&path.join(name))
                .map_err(|e| damaged(format!("cannot read {name}: {e}")))?;
            if found != sum {
                return Err(damaged(format!("{name} has changed since it was written")));
            }
            listed.push(name.to_owned());
        }
        match [STATE, OPTIMISER]
            .iter()
            .find(|n| !listed.iter().any(|l| l == *n))
        {
            Some(name) => Err(damaged(format!("{SUMS} does not name {name}"))),
            None => Ok(()),
        }
    }

    /// Writes one: `fill` puts its files into the folder it is given. One that is there is replaced.
    ///
    /// # Errors
    /// What cannot be written. Nothing is left of it, and the earlier ones are as they were.
    pub fn write<E: From<CheckpointError>>(
        &self,
        step: usize,
        fill: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        let part = self.dir.join(format!(".step_{step}.new"));
        let wrong = |path: &Path, e: io::Error| CheckpointError::Write {
            path: path.to_owned(),
            why: e.to_string(),
        };
        let write = || -> Result<PathBuf, E> {
            self.clear_leftovers();
            fs::create_dir_all(&part).map_err(|e| wrong(&part, e))?;
            fill(&part)?;
            seal(&part).map_err(|e| wrong(&part, e))?;
            let path = self.path(step);
            if path.exists() {
                fs::remove_dir_all(&path).map_err(|e| wrong(&path, e))?;
            }
            fs::rename(&part, &path).map_err(|e| wrong(&path, e))?;
            // The name itself must survive a power failure, too.
            File::open(&self.dir)
                .and_then(|d| d.sync_all())
                .map_err(|e| wrong(&self.dir, e))?;
            Ok(path)
        };
        write().inspect_err(|_| {
            // On a full disk it would keep the space that the next try needs.
            let _ = fs::remove_dir_all(&part);
        })
    }

    /// Removes what a killed process left half-written.
    pub fn clear_leftovers(&self) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(".step_") && name.ends_with(".new") {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Removes all but the `keep` last ones and that of iteration `best`; `keep` = 0: none.
    ///
    /// # Errors
    /// One that cannot be removed.
    pub fn prune(&self, keep: usize, best: Option<usize>) -> io::Result<()> {
        let steps = self.steps();
        if keep == 0 {
            return Ok(());
        }
        let old = steps.len().saturating_sub(keep);
        for &step in steps.iter().take(old).filter(|&&s| Some(s) != best) {
            fs::remove_dir_all(self.path(step))?;
        }
        Ok(())
    }

    /// Removes one.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, step: usize) -> io::Result<()> {
        fs::remove_dir_all(self.path(step))
    }
}

/// Flushes every file of a folder to the disk and lists their sums.
fn seal(dir: &Path) -> io::Result<()> {
    let mut names: Vec<_> = fs::read_dir(dir)?
        .map(|e| e.map(|e| e.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<_>>()?;
    names.sort();
    let mut sums = String::new();
    for name in names {
        let path = dir.join(&name);
        sums += &format!("{}  {name}\n", sha256(&path)?);
        File::open(&path)?.sync_all()?;
    }
    let mut file = File::create(dir.join(SUMS))?;
    file.write_all(sums.as_bytes())?;
    file.sync_all()?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(all: &Checkpoints, step: usize) -> PathBuf {
        all.write::<CheckpointError>(step, |dir| {
            for name in [STATE, OPTIMISER] {
                fs::write(dir.join(name), format!("{name} {step}")).unwrap();
            }
            Ok(())
        })
        .unwrap()
    }

    #[test]
    fn damage_is_found_and_the_last_good_one_named() {
        let folder = tempfile::tempdir().unwrap();
        let all = Checkpoints::new(folder.path().join("checkpoints"));
        assert_eq!((all.steps(), all.last_good(9)), (vec![], None));
        for step in [2, 10, 4] {
            write(&all, step);
        }
        assert_eq!(
            (all.steps(), all.last_good(usize::MAX)),
            (vec![2, 4, 10], Some(10))
        );
        fs::write(all.path(10).join(OPTIMISER), "something else").unwrap();
        let error = all.verify(10).unwrap_err().to_string();
        assert!(
            error.contains("damaged") && error.contains(OPTIMISER),
            "{error}"
        );
        assert_eq!(all.last_good(usize::MAX), Some(4));
        fs::remove_file(all.path(4).join(STATE)).unwrap();
        assert!(matches!(
            all.verify(4),
            Err(CheckpointError::Damaged { .. })
        ));
        fs::write(all.path(2).join(SUMS), "").unwrap();
        assert_eq!(all.last_good(usize::MAX), None);
        assert!(matches!(
            all.verify(3),
            Err(CheckpointError::Missing { .. })
        ));
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let all = Checkpoints::new(folder.path());
        write(&all, 1);
        let full = |dir: &Path| {
            fs::write(dir.join(STATE), "half").unwrap();
            Err(CheckpointError::Write {
                path: dir.to_owned(),
                why: "no space".into(),
            })
        };
        assert!(all.write(1, full).is_err());
        assert!(all.write(2, full).is_err());
        assert_eq!(all.steps(), [1]);
        all.verify(1).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_last_ones_and_the_best_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let all = Checkpoints::new(folder.path());
        for step in 1..=6 {
            write(&all, step);
            all.prune(2, Some(3.min(step))).unwrap();
        }
        assert_eq!(all.steps(), [3, 5, 6]);
        all.prune(0, None).unwrap();
        assert_eq!(all.steps(), [3, 5, 6]);
        // What a killed process left is no checkpoint.
        fs::create_dir(folder.path().join(".step_7.new")).unwrap();
        assert_eq!(all.steps(), [3, 5, 6]);
        write(&all, 8);
        assert!(!folder.path().join(".step_7.new").exists());
    }
}
