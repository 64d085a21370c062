//! The knobs of the family, and what is wrong with some of their settings.

use super::TaskName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The knobs of the family. What belongs to a single task (its phrases, its variants) is in that task's table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MicroConfig {
    /// The tasks to make problems of.
    pub tasks: Vec<TaskName>,
    /// Hidden choice: what stands between two items.
    pub separators: Vec<String>,
    /// Hidden choice: an opening and a closing character, or nothing.
    pub brackets: Vec<String>,
    /// First sentences; `{noun}` stands for what the task reads.
    pub openings: Vec<String>,
    /// First words of the second sentence.
    pub verbs: Vec<String>,
    /// Statements a task, shared out evenly among its variants (at least three each).
    pub wordings_per_task: usize,
    /// Part of each variant's wordings that goes to valid, in percent (at least one wording).
    pub valid_percent: usize,
    /// Part of each variant's wordings that goes to test, in percent (at least one wording).
    pub test_percent: usize,
    /// Private tests a problem.
    pub private_tests: usize,
    /// Least and greatest number of items in a public input.
    pub public_items: (u32, u32),
    /// Least and greatest number of items in a private input.
    pub private_items: (u32, u32),
}

impl Default for MicroConfig {
    fn default() -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Self {
            tasks: TaskName::ALL.to_vec(),
            separators: owned(&[",", "-"]),
            brackets: owned(&["", "[]"]),
            openings: owned(&[
                "Read {noun}.",
                "You get {noun}.",
                "The input has {noun}.",
                "Given are {noun}.",
                "Take {noun}.",
            ]),
            verbs: owned(&["Print", "Show", "Write", "Output", "List"]),
            wordings_per_task: 60,
            valid_percent: 10,
            test_percent: 20,
            private_tests: 4,
            public_items: (3, 4),
            private_items: (4, 7),
        }
    }
}

/// Why a family cannot be generated from a configuration. The default configuration has been generated from many seeds.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MicroError {
    /// A setting has a value that no family can be made of.
    #[error("micro family: `{setting}` {problem}")]
    Setting {
        /// The field of [`MicroConfig`].
        setting: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The table of a task gives fewer wordings than asked for.
    #[error(
        "micro family: {wanted} wordings wanted for `{task}` ({variant}), at least 3 and at most {possible} are \
         possible; change `wordings_per_task`, `openings` or `verbs`"
    )]
    Wordings {
        /// The task.
        task: &'static str,
        /// Its variant.
        variant: &'static str,
        /// Wordings asked for.
        wanted: usize,
        /// Wordings that openings, verbs and phrases give.
        possible: usize,
    },
    /// No split was found in which train has all the words of valid and test.
    #[error(
        "micro family: in {tries} shuffles, valid or test always had a word that train lacks; raise `wordings_per_task`"
    )]
    RareWords {
        /// Shuffles tried.
        tries: u32,
    },
    /// No tests were found that tell the combinations of a problem apart.
    #[error(
        "micro family: no tests found that tell the hidden choices of `{id}` apart; widen `public_items` or \
         `private_items`, or make the hidden choices differ"
    )]
    Tests {
        /// The problem.
        id: String,
    },
}

impl MicroConfig {
    /// Refuses settings that no family can be made of.
    pub(super) fn check(&self) -> Result<(), MicroError> {
        let fail = |setting, problem: &str| {
            Err(MicroError::Setting {
                setting,
                problem: problem.to_owned(),
            })
        };
        let texts: [(&'static str, &[String]); 4] = [
            ("separators", &self.separators),
            ("brackets", &self.brackets),
            ("openings", &self.openings),
            ("verbs", &self.verbs),
        ];
        for (setting, values) in texts {
            if values.is_empty() {
                return fail(setting, "is empty");
            }
            if values.iter().collect::<BTreeSet<_>>().len() < values.len() {
                return fail(setting, "names a value twice");
            }
        }
        // These are written into Python strings and must survive a checker that looks at tokens.
        let plain = |text: &str| {
            text.chars()
                .all(|c| c.is_ascii_graphic() && c != '\'' && c != '\\')
        };
        if !self.separators.iter().all(|text| {
            plain(text)
                && !text.is_empty()
                && text
                    .chars()
                    .all(|c| c.is_ascii_punctuation() && !"[](){}".contains(c))
        }) {
            return fail(
                "separators",
                "needs punctuation other than brackets, quotes and backslashes",
            );
        }
        if !self
            .brackets
            .iter()
            .all(|text| text.is_empty() || (plain(text) && text.len() == 2))
        {
            return fail(
                "brackets",
                "needs two visible characters, or none, for each value",
            );
        }
        if !self.openings.iter().all(|text| text.contains("{noun}")) {
            return fail("openings", "needs `{noun}` in each value");
        }
        if self.tasks.is_empty() {
            return fail("tasks", "is empty");
        }
        if self.tasks.iter().collect::<BTreeSet<_>>().len() < self.tasks.len() {
            return fail("tasks", "names a task twice");
        }
        if self.valid_percent + self.test_percent > 60 {
            return fail(
                "valid_percent",
                "and `test_percent` together leave less than 40 % to train",
            );
        }
        if self.private_tests < 2 {
            return fail("private_tests", "must be at least 2");
        }
        for (setting, (least, most), highest) in [
            ("public_items", self.public_items, 9),
            ("private_items", self.private_items, 26),
        ] {
            if least < 3 || most < least || most > highest {
                return Err(MicroError::Setting {
                    setting,
                    problem: format!("is {least} to {most}; needs a range within 3 to {highest}"),
                });
            }
        }
        Ok(())
    }
}
