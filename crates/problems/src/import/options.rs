//! What an import is told.

use super::{Format, ImportError};
use crate::Checker;

/// Settings of [`import`](super::import).
#[derive(Debug, Clone, PartialEq)]
pub struct ImportOptions {
    /// The format; none: by the source's name and contents.
    pub format: Option<Format>,
    /// Whether a problem that cannot be read is reported and skipped. Otherwise the first one ends the import.
    pub skip_bad: bool,
    /// The split of files whose name does not tell theirs.
    pub split: Option<String>,
    /// CPU seconds a test for problems whose source names no limit; none: what the format's own tools use (CodeContests
    /// and packages 10, LiveCodeBench 6, the others 4).
    pub time_limit_s: Option<f64>,
    /// MiB for problems whose source names no limit. Default 1024, as RLEF has it.
    pub memory_limit_mb: u64,
    /// Used in place of the format's checker for problems that print.
    pub checker: Option<Checker>,
    /// Whether generated tests are added to the private ones instead of being kept apart.
    pub generated_as_private: bool,
    /// Whether functions that should be called with tuples may be called with lists, which is not the same to every
    /// program. Otherwise such problems cannot be read.
    pub tuples_as_lists: bool,
    /// The most that one problem may take once it is unpacked, in bytes; a guard against archives that swell. Default
    /// 256 MiB.
    pub max_problem_bytes: u64,
    /// Tests whose input and output together are larger are left out and noted. Default: none are.
    pub max_test_bytes: Option<u64>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            format: None,
            skip_bad: false,
            split: None,
            time_limit_s: None,
            memory_limit_mb: 1024,
            checker: None,
            generated_as_private: false,
            tuples_as_lists: false,
            max_problem_bytes: 256 << 20,
            max_test_bytes: None,
        }
    }
}

impl ImportOptions {
    pub(super) fn check(&self) -> Result<(), ImportError> {
        let setting = |setting, message: &str| {
            Err(ImportError::Setting {
                setting,
                message: message.to_owned(),
            })
        };
        if self
            .time_limit_s
            .is_some_and(|limit| !(limit.is_finite() && limit > 0.0))
        {
            return setting("time_limit_s", "must be a number of seconds above 0");
        }
        if self.memory_limit_mb == 0 {
            return setting("memory_limit_mb", "must be at least 1");
        }
        if self.max_problem_bytes == 0 {
            return setting("max_problem_bytes", "must be at least 1");
        }
        match self.checker.as_ref().map(Checker::check) {
            Some(Err(error)) => setting("checker", &error.to_string()),
            _ => Ok(()),
        }
    }
}
