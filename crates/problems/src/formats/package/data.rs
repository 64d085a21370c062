//! Test data: samples and secret tests in nested groups, and the flags that groups hand down to their tests.

use super::PackageError;
use super::config::{Config, flags, mapping};
use super::files::{DEEPEST, Files, join};
use crate::TestCase;
use std::collections::BTreeMap;

/// The tests of a package.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) samples: Vec<TestCase>,
    pub(super) secret: Vec<TestCase>,
    /// The flags of all tests that are in no group of `groups`.
    pub(super) flags: Vec<String>,
    /// Those of groups and tests that have others than what they are in; keys as in names of tests.
    pub(super) groups: BTreeMap<String, Vec<String>>,
    pub(super) notes: Vec<String>,
}

/// Files with the settings of a group, of either version.
const SETTINGS: [&str; 2] = ["testdata.yaml", "test_group.yaml"];
/// Names of the setting that is used.
const FLAGS: [&str; 2] = ["output_validator_flags", "output_validator_args"];

impl Data {
    pub(super) fn read(
        files: &mut Files,
        config: &Config,
        max_test_bytes: Option<u64>,
    ) -> Result<Self, PackageError> {
        let mut data = Self::default();
        let mut walk = Walk {
            files,
            config,
            max_test_bytes,
            too_large: 0,
            data: &mut data,
        };
        let flags = walk.group_flags("data")?.unwrap_or_default();
        walk.data.flags = walk.whole(&flags);
        walk.group("sample", true, &flags, 0)?;
        walk.group("secret", false, &flags, 0)?;
        let too_large = walk.too_large;
        if too_large > 0 {
            data.notes.push(format!(
                "{too_large} tests are larger than the limit for one and left out"
            ));
        }
        Ok(data)
    }
}

struct Walk<'w> {
    files: &'w mut Files,
    config: &'w Config,
    max_test_bytes: Option<u64>,
    too_large: usize,
    data: &'w mut Data,
}

impl Walk<'_> {
    /// The flags that a folder's settings name, if they do.
    fn group_flags(&mut self, folder: &str) -> Result<Option<Vec<String>>, PackageError> {
        for name in SETTINGS {
            if let Some(flags) = self.settings(&join(folder, name))? {
                return Ok(Some(flags));
            }
        }
        Ok(None)
    }

    fn settings(&mut self, file: &str) -> Result<Option<Vec<String>>, PackageError> {
        let Some(text) = self.files.text(file)? else {
            return Ok(None);
        };
        let fields = mapping(file, &self.config.substitute(text))?;
        // A validator with a name of its own among several is of no format that is read here.
        let named = FLAGS.into_iter().find_map(|name| fields.get(name));
        Ok(named.map(|value| flags(Some(value))))
    }

    /// The package's own flags come first.
    fn whole(&self, flags: &[String]) -> Vec<String> {
        self.config
            .validator_flags
            .iter()
            .chain(flags)
            .cloned()
            .collect()
    }

    /// `group` is the folder's path in `data`, and the start of its tests' names.
    fn group(
        &mut self,
        group: &str,
        sample: bool,
        above: &[String],
        depth: usize,
    ) -> Result<(), PackageError> {
        let folder = join("data", group);
        if depth > DEEPEST {
            return Err(PackageError::new(
                folder,
                ".",
                "is nested too deep; does a link lead back into it?",
            ));
        }
        let flags = match self.group_flags(&folder)? {
            Some(flags) => {
                if flags != above {
                    self.data
                        .groups
                        .insert(group.to_owned(), self.whole(&flags));
                }
                flags
            }
            None => above.to_vec(),
        };
        let names = self.files.list(&folder)?;
        let has = |name: &str| names.iter().any(|(known, _)| known == name);
        for (name, is_folder) in &names {
            if *is_folder {
                // Files that a test brings along.
                if !name.ends_with(".files") {
                    self.group(&join(group, name), sample, &flags, depth + 1)?;
                }
                continue;
            }
            let Some(stem) = name.strip_suffix(".in") else {
                continue;
            };
            if let Some(extra) = [".args", ".files"]
                .iter()
                .map(|end| format!("{stem}{end}"))
                .find(|name| has(name))
            {
                let what =
                    "programs would have to be given arguments or files, which cannot be done here";
                return Err(PackageError::new(join(&folder, &extra), ".", what));
            }
            let answer = [".ans", ".out"]
                .iter()
                .map(|end| format!("{stem}{end}"))
                .find(|name| has(name));
            let Some(answer) = answer else {
                let what = format!("has no answer; `{stem}.ans` is missing");
                return Err(PackageError::new(join(&folder, name), ".", what));
            };
            let test = join(group, stem);
            if self.test(&folder, name, &answer, &test, sample)? {
                let own = join(&folder, &format!("{stem}.yaml"));
                if let Some(own) = self.settings(&own)?.filter(|own| *own != flags) {
                    let own = self.whole(&own);
                    self.data.groups.insert(test, own);
                }
            }
        }
        Ok(())
    }

    /// Whether the test is kept.
    fn test(
        &mut self,
        folder: &str,
        input: &str,
        answer: &str,
        name: &str,
        sample: bool,
    ) -> Result<bool, PackageError> {
        let (input, answer) = (join(folder, input), join(folder, answer));
        if let Some(most) = self.max_test_bytes {
            let size = |path: &str| Ok::<_, PackageError>(self.files.size(path)?.unwrap_or(0));
            if size(&input)?.saturating_add(size(&answer)?) > most {
                self.too_large += 1;
                return Ok(false);
            }
        }
        let missing =
            |path: &str| PackageError::new(path, ".", "cannot be read; does a link lead nowhere?");
        let test = TestCase {
            name: name.to_owned(),
            input: self.files.text(&input)?.ok_or_else(|| missing(&input))?,
            output: self.files.text(&answer)?.ok_or_else(|| missing(&answer))?,
        };
        if sample {
            &mut self.data.samples
        } else {
            &mut self.data.secret
        }
        .push(test);
        Ok(true)
    }
}
