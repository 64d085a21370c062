//! Output validators: programs of a problem that decide whether an output is right. Only what they are; running one
//! (in a sandbox, with the test's input and answer file, the output on its stdin) is the judge's business.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The exit code of a validator that accepts an output (ICPC problem package format).
pub const EXIT_ACCEPTED: i32 = 42;
/// The exit code of a validator that rejects an output. Any other one is a fault of the validator.
pub const EXIT_WRONG_ANSWER: i32 = 43;

/// An output validator with its files. It is called as `PROGRAM input answer feedback-folder FLAGS… < output` and ends
/// with [`EXIT_ACCEPTED`] or [`EXIT_WRONG_ANSWER`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validator {
    /// The language it is written in, named as for solutions; `script` where a `build` or `run` file of its own says how.
    pub language: String,
    /// The file that is run, or compiled together with the other sources in its language; one of `files`.
    pub entry: String,
    /// All of its files; paths are relative to one folder.
    pub files: Vec<SourceFile>,
    /// Arguments on every test that is in no group of `group_flags`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Arguments on the tests of a group, in place of `flags`. The key is the start of their names up to a `/`
    /// (`secret/group1`), or one whole name; the longest that fits counts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub group_flags: BTreeMap<String, Vec<String>>,
}

/// A file of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    /// Its path, relative, with `/` and without `..`.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// What a test has by the innermost group that it is in.
pub(crate) fn of_group<'g, T>(groups: &'g BTreeMap<String, T>, test: &str) -> Option<&'g T> {
    let mut group = test;
    loop {
        match (groups.get(group), group.rsplit_once('/')) {
            (Some(found), _) => return Some(found),
            (None, Some((outer, _))) => group = outer,
            (None, None) => return None,
        }
    }
}

impl Validator {
    /// The arguments for the test of that name.
    pub fn flags_for(&self, test: &str) -> &[String] {
        of_group(&self.group_flags, test).unwrap_or(&self.flags)
    }

    /// What makes it unusable, if anything does: the field and the reason.
    pub(crate) fn wrong(&self) -> Option<(String, String)> {
        for (at, file) in self.files.iter().enumerate() {
            let bad =
                |part: &str| part.is_empty() || part == "." || part == ".." || part.contains('\0');
            if file.path.split('/').any(bad) {
                let what = format!("{:?} is no relative path without `..`", file.path);
                return Some((format!("checker.files[{at}].path"), what));
            }
        }
        if !self.files.iter().any(|file| file.path == self.entry) {
            let what = format!("{:?} is none of its files", self.entry);
            return Some(("checker.entry".to_owned(), what));
        }
        None
    }
}
