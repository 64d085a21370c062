//! `submissions/`: programs of the authors, and the verdicts they must get.

mod expected;

use super::PackageError;
use super::config::{Config, mapping};
use super::files::{Files, join};
use super::programs::Program;
use crate::Solution;
use expected::{Expectation, of_annotation, of_folder};
use serde_json::{Map, Value};

/// The folder in a package, and that of plain problems.
const FOLDER: &str = "submissions";
const PLAIN: &str = "solutions";

/// Right and wrong programs.
#[derive(Debug, Default)]
pub(super) struct Submissions {
    pub(super) right: Vec<Solution>,
    pub(super) wrong: Vec<Solution>,
    pub(super) notes: Vec<String>,
}

impl Submissions {
    pub(super) fn read(files: &mut Files, config: &Config) -> Result<Self, PackageError> {
        let file = join(FOLDER, "submissions.yaml");
        let rules = match files.text(&file)? {
            Some(text) => mapping(&file, &text)?,
            None => Map::new(),
        };
        let mut walk = Walk {
            files,
            config: Some(config),
            folder: FOLDER,
            rules,
            found: Self::default(),
        };
        walk.classes()?;
        Ok(walk.found)
    }

    /// Those of a plain folder: files at its top must be accepted.
    pub(super) fn read_plain(files: &mut Files) -> Result<Self, PackageError> {
        let mut walk = Walk {
            files,
            config: None,
            folder: PLAIN,
            rules: Map::new(),
            found: Self::default(),
        };
        for (name, is_folder) in walk.files.list(PLAIN)? {
            if !is_folder {
                walk.add("accepted", &name, false)?;
            }
        }
        walk.classes()?;
        Ok(walk.found)
    }
}

struct Walk<'w> {
    files: &'w mut Files,
    /// None for plain folders, which have no constants.
    config: Option<&'w Config>,
    folder: &'static str,
    rules: Map<String, Value>,
    found: Submissions,
}

impl Walk<'_> {
    fn classes(&mut self) -> Result<(), PackageError> {
        for (class, is_folder) in self.files.list(self.folder)? {
            if !is_folder {
                continue;
            }
            for (name, is_folder) in self.files.list(&join(self.folder, &class))? {
                self.add(&class, &join(&class, &name), is_folder)?;
            }
        }
        Ok(())
    }

    /// `class` is the folder whose programs it is among, `file` its path in the folder of all.
    fn add(&mut self, class: &str, file: &str, is_folder: bool) -> Result<(), PackageError> {
        let notes = &mut self.found.notes;
        let mut leave_out = |why: &str| notes.push(format!("submission {file} is left out: {why}"));
        let path = join(self.folder, file);
        let program = match Program::read(self.files, self.config, &path, is_folder) {
            Ok(program) => program,
            // Notes beside programs, and programs in languages of which nothing is known, do no harm.
            Err(error) if !error.severe => {
                leave_out(&error.message);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let [source] = program.files.as_slice() else {
            leave_out("it has several files, and a solution is one");
            return Ok(());
        };
        if program.language == "script" {
            leave_out("it brings a script that builds or runs it");
            return Ok(());
        }
        let expectation = match of_annotation(&source.text) {
            Some(expectation) => expectation,
            None => Expectation::of_rules(&self.rules, file)
                .map_err(|(field, what)| {
                    PackageError::new(join(FOLDER, "submissions.yaml"), field, what)
                })?
                .and(of_folder(class)),
        };
        let Some(expected) = expectation.verdict() else {
            leave_out("it may be accepted or fail, or nothing says what it must do");
            return Ok(());
        };
        if source.text.trim().is_empty() {
            leave_out("it is empty");
            return Ok(());
        }
        let right = expected == "AC";
        let list = if right {
            &mut self.found.right
        } else {
            &mut self.found.wrong
        };
        list.push(Solution {
            file: file.to_owned(),
            language: program.language.clone(),
            class: (!right).then(|| class.to_owned()),
            expected: expected.to_owned(),
            code: source.text.clone(),
        });
        Ok(())
    }
}
