//! `submissions/`: programs of the authors, and the verdicts they must get.

mod expected;

use super::PackageError;
use super::config::{Config, mapping};
use super::files::{Files, join};
use super::programs::Program;
use crate::Solution;
use expected::{Expectation, of_annotation, of_folder};
use serde_json::{Map, Value};

/// The folder.
const FOLDER: &str = "submissions";

/// Right and wrong programs.
#[derive(Debug, Default)]
pub(super) struct Submissions {
    pub(super) right: Vec<Solution>,
    pub(super) wrong: Vec<Solution>,
    pub(super) notes: Vec<String>,
}

impl Submissions {
    pub(super) fn read(files: &mut Files, config: &Config) -> Result<Self, PackageError> {
        let mut submissions = Self::default();
        let file = join(FOLDER, "submissions.yaml");
        let rules = match files.text(&file)? {
            Some(text) => mapping(&file, &text)?,
            None => Map::new(),
        };
        for (class, is_folder) in files.list(FOLDER)? {
            if !is_folder {
                continue;
            }
            for (name, is_folder) in files.list(&join(FOLDER, &class))? {
                submissions.add(files, config, &rules, &class, &name, is_folder)?;
            }
        }
        Ok(submissions)
    }

    fn add(
        &mut self,
        files: &mut Files,
        config: &Config,
        rules: &Map<String, Value>,
        class: &str,
        name: &str,
        is_folder: bool,
    ) -> Result<(), PackageError> {
        let file = join(class, name);
        let mut leave_out = |why: &str| {
            self.notes
                .push(format!("submission {file} is left out: {why}"))
        };
        let program = match Program::read(files, config, &join(FOLDER, &file), is_folder) {
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
            None => Expectation::of_rules(rules, &file)
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
            &mut self.right
        } else {
            &mut self.wrong
        };
        list.push(Solution {
            file,
            language: program.language.clone(),
            class: (!right).then(|| class.to_owned()),
            expected: expected.to_owned(),
            code: source.text.clone(),
        });
        Ok(())
    }
}
