//! The file of results: one JSON line a problem, in the set's order. While problems are being checked, their lines go to
//! a journal beside it, so that a process that is killed loses only what it was at.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rlef_judge::audit::Record;

use crate::output::Draft;

/// Results that are known, and where new ones go.
pub struct Results {
    path: Option<PathBuf>,
    known: HashMap<String, Record>,
}

impl Results {
    /// Reads what is known, from the file and from the journal of a process that was killed.
    ///
    /// # Errors
    /// A file that cannot be written, or is something else.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let mut known = HashMap::new();
        if let Some(path) = path {
            Draft::check(path)?;
            for (file, torn) in [(path.to_owned(), false), (journal(path), true)] {
                for record in read(&file, torn)? {
                    known.insert(record.problem.clone(), record);
                }
            }
        }
        Ok(Self {
            path: path.map(Path::to_owned),
            known,
        })
    }

    /// The result of a problem that is what it was when it was checked, with these settings, and to the end.
    pub fn known(&self, problem: &str, digest: &str, settings: &str) -> Option<Record> {
        let same = |record: &&Record| {
            record.digest == digest && record.settings == settings && !record.is_incomplete()
        };
        self.known.get(problem).filter(same).cloned()
    }

    /// Where results go as they come.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn journal(&self) -> Result<Journal> {
        // Beside a device there is no place for one.
        let Some(path) = self
            .path
            .as_ref()
            .filter(|path| !path.exists() || path.is_file())
        else {
            return Ok(Journal(None));
        };
        let path = journal(path);
        // What a torn line left is ended, so that it spoils no other.
        let open = || {
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            if file.metadata()?.len() > 0 {
                file.write_all(b"\n")?;
            }
            Ok::<File, std::io::Error>(file)
        };
        let file = open().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Journal(Some((file, path))))
    }

    /// Writes the file: the results of this run; those that were known before are kept as well where the run was
    /// stopped, as they may be of problems that it did not come to.
    ///
    /// # Errors
    /// When it cannot be written; the journal is then still there.
    pub fn finish(&mut self, records: &[Record], stopped: bool) -> Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let mut draft = Draft::open(path)?;
        for record in records {
            draft.line(serde_json::to_string(record)?)?;
            self.known.remove(&record.problem);
        }
        if stopped {
            let mut others: Vec<&Record> = self.known.values().collect();
            others.sort_by(|a, b| a.problem.cmp(&b.problem));
            for record in others {
                draft.line(serde_json::to_string(record)?)?;
            }
        }
        draft.finish()?;
        let _ = fs::remove_file(journal(path));
        Ok(())
    }
}

/// Lines are added at once.
pub struct Journal(Option<(File, PathBuf)>);

impl Journal {
    /// Adds a line.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, record: &Record) -> Result<()> {
        let Some((file, path)) = &self.0 else {
            return Ok(());
        };
        let line = serde_json::to_string(record)? + "\n";
        let mut file: &File = file;
        file.write_all(line.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

fn journal(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".journal");
    name.into()
}

/// The records of a file. In a journal a line may be torn.
fn read(path: &Path, torn: bool) -> Result<Vec<Record>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    // A device or a pipe takes results and has none.
    if !file.metadata().is_ok_and(|about| about.is_file()) {
        return Ok(vec![]);
    }
    let mut records = vec![];
    for (at, line) in BufReader::new(file).split(b'\n').enumerate() {
        let line = line.with_context(|| format!("cannot read {}", path.display()))?;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(record) => records.push(record),
            Err(_) if torn => {}
            Err(error) => bail!(
                "{}, line {}: no result of an audit ({error}); remove the file, or give another --out",
                path.display(),
                at + 1
            ),
        }
    }
    Ok(records)
}
