//! How often a model solved each problem, from the dialogs of an evaluation.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;

use super::finding::{Finding, Kind};

/// Settings of what is found about solve rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// A problem that is solved less often teaches too slowly. Default 0.02: of 64 rollouts one.
    pub floor: f64,
    /// Fewer rollouts of a problem than this say nothing. Default 8.
    pub least: u64,
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            floor: 0.02,
            least: 8,
        }
    }
}

/// Why a file of dialogs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// It cannot be read.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A line is no dialog.
    #[error(
        "{file}, line {line}: {message}; dialogs as `rlef eval --dialogs` writes them are expected"
    )]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// There is not one dialog in it.
    #[error("{file} has no dialogs")]
    Empty {
        /// The file.
        file: String,
    },
}

/// Rollouts and how many of them solved the problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Count {
    solved: u64,
    rollouts: u64,
}

/// Solve rates by problem. Rollouts that were lost to a fault are in none.
#[derive(Debug, Clone, Default)]
pub struct SolveRates {
    counts: HashMap<String, Count>,
}

/// What is read of a dialog.
#[derive(Deserialize)]
struct Dialog {
    problem: String,
    #[serde(default)]
    solved: Option<bool>,
    #[serde(default)]
    lost: Option<serde::de::IgnoredAny>,
}

impl SolveRates {
    /// Reads the dialogs of `rlef eval --dialogs FILE`, one a line.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is none.
    pub fn read(path: &Path) -> Result<Self, CalibrationError> {
        let file = path.display().to_string();
        let fail = |source| CalibrationError::Io {
            file: file.clone(),
            source,
        };
        let source = BufReader::new(File::open(path).map_err(fail)?);
        let mut rates = Self::default();
        for (at, line) in source.lines().enumerate() {
            let line = line.map_err(fail)?;
            if line.trim().is_empty() {
                continue;
            }
            let wrong = |message: String| CalibrationError::Line {
                file: file.clone(),
                line: at + 1,
                message,
            };
            let dialog: Dialog =
                serde_json::from_str(&line).map_err(|error| wrong(error.to_string()))?;
            match (dialog.solved, dialog.lost) {
                (Some(solved), None) => rates.add(&dialog.problem, solved),
                (_, Some(_)) => {}
                (None, None) => return Err(wrong("neither `solved` nor `lost`".to_owned())),
            }
        }
        if rates.counts.is_empty() {
            return Err(CalibrationError::Empty { file });
        }
        Ok(rates)
    }

    /// Adds a rollout.
    pub fn add(&mut self, problem: &str, solved: bool) {
        let count = self.counts.entry(problem.to_owned()).or_default();
        count.rollouts += 1;
        count.solved += u64::from(solved);
    }

    /// How many problems it knows.
    pub fn problems(&self) -> usize {
        self.counts.len()
    }

    /// Whether it knows a problem.
    pub fn knows(&self, problem: &str) -> bool {
        self.counts.contains_key(problem)
    }

    /// What the rate of a problem means, if anything.
    pub fn finding(&self, problem: &str, settings: &Calibration) -> Option<Finding> {
        let Count { solved, rollouts } = *self.counts.get(problem)?;
        if rollouts < settings.least {
            return None;
        }
        let rate = solved as f64 / rollouts as f64;
        let what = format!("solved {solved} of {rollouts} times");
        if solved == 0 {
            Some(Finding::new(Kind::NeverSolved, what))
        } else if solved == rollouts {
            Some(Finding::new(Kind::AlwaysSolved, what))
        } else if rate < settings.floor {
            let what = format!("{what}, less than the floor of {}", settings.floor);
            Some(Finding::new(Kind::RarelySolved, what))
        } else {
            None
        }
    }
}
