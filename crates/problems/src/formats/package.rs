//! Problem packages of Kattis and the ICPC, in the legacy format and in 2023-07, as folders or zip archives: one package
//! is one problem.
//!
//! Samples become public tests, secret data private ones. Interactive, multi-pass and submit-answer problems cannot be
//! judged here and are refused; scoring problems are judged by whether all tests pass.

mod config;
mod data;
mod files;
mod plain;
mod programs;
mod statement;
mod submissions;
#[cfg(test)]
mod tests;
mod validation;

use crate::Problem;
use crate::import::{BadRow, Found, ImportError, ImportOptions, Place, Rows, id_of};
use config::{Config, Version};
use data::Data;
use files::Files;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use submissions::Submissions;

/// CPU seconds a test where the package names no limit (judges then measure it by the accepted submissions).
const TIME_LIMIT_S: f64 = 10.0;
/// The formats' own default, in MiB.
const MEMORY_LIMIT_MB: u64 = 2048;

/// What is wrong with a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackageError {
    /// The file in the package; empty for the package as a whole.
    pub(crate) file: String,
    pub(crate) field: String,
    pub(crate) message: String,
    /// It is about limits or links, which not even a part that can be left out may overstep.
    severe: bool,
}

impl PackageError {
    pub(crate) fn new(
        file: impl Into<String>,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            file: file.into(),
            field: field.into(),
            message: message.into(),
            severe: false,
        }
    }

    fn severe(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severe: true,
            ..Self::new(file, ".", message)
        }
    }
}

/// Reads the one problem of a package or a folder.
type Read = fn(&Path, &ImportOptions) -> Result<Found, PackageError>;

/// The one problem of a package or a folder.
pub(crate) struct PackageRows {
    path: PathBuf,
    options: ImportOptions,
    read: Read,
    done: bool,
}

pub(crate) fn rows(path: &Path, options: &ImportOptions) -> PackageRows {
    PackageRows {
        path: path.to_owned(),
        options: options.clone(),
        read,
        done: false,
    }
}

pub(crate) fn plain_rows(path: &Path, options: &ImportOptions) -> PackageRows {
    PackageRows {
        read: plain::read,
        ..rows(path, options)
    }
}

impl Rows for PackageRows {
    fn next(&mut self) -> Option<Result<Found, ImportError>> {
        if std::mem::replace(&mut self.done, true) {
            return None;
        }
        Some((self.read)(&self.path, &self.options).map_err(
            |PackageError {
                 file,
                 field,
                 message,
                 ..
             }| {
                let file = if file.is_empty() {
                    self.path.clone()
                } else {
                    self.path.join(file)
                };
                ImportError::Row(BadRow {
                    file: file.display().to_string(),
                    place: Place::Whole,
                    field,
                    message,
                })
            },
        ))
    }

    fn total(&self) -> Option<u64> {
        Some(1)
    }
}

fn read(path: &Path, options: &ImportOptions) -> Result<Found, PackageError> {
    let mut files = Files::open(path, options.max_problem_bytes)?;
    let config = Config::read(&mut files)?;
    let mut data = Data::read(&mut files, &config, options.max_test_bytes)?;
    let statement = statement::read(&mut files, &config, &data.samples)?;
    let checker = validation::checker(&mut files, &config, &mut data)?;
    let submissions = Submissions::read(&mut files, &config)?;
    let mut notes = std::mem::take(&mut data.notes);
    notes.extend(submissions.notes);
    let (time_limit_s, time_limit_from) = match time_limit(&mut files, &config)? {
        Some(limit) => (limit, "package"),
        None => {
            let limit = options.time_limit_s.unwrap_or(TIME_LIMIT_S);
            notes.push(format!("the package names no time limit; {limit} s taken"));
            (limit, "default")
        }
    };
    let id = id_of(
        &path
            .canonicalize()
            .ok()
            .as_deref()
            .and_then(folder_name)
            .unwrap_or_else(|| "problem".to_owned()),
    );
    let mut meta = config.meta.clone();
    let version = match config.version {
        Version::Legacy => "legacy",
        Version::V2023 => "2023-07",
    };
    let mut set = |name: &str, value: Value| {
        meta.insert(name.to_owned(), value);
    };
    set("package_format", json!(version));
    set(
        "scoring_type",
        json!(if config.scoring {
            "scoring"
        } else {
            "pass-fail"
        }),
    );
    set("statement_format", json!(statement.format));
    set("statement_language", json!(statement.language));
    set("has_figure", json!(statement.has_figure));
    set("time_limit_from", json!(time_limit_from));
    Ok(Found {
        place: Place::Whole,
        problem: Problem {
            name: config
                .name
                .clone()
                .or(statement.title)
                .unwrap_or_else(|| id.clone()),
            id,
            statement: statement.text,
            time_limit_s,
            memory_limit_mb: config.memory_mb.unwrap_or(MEMORY_LIMIT_MB),
            checker,
            function: None,
            public_tests: data.samples,
            private_tests: data.secret,
            generated_tests: Vec::new(),
            solutions: submissions.right,
            wrong_solutions: submissions.wrong,
            meta,
        },
        notes,
    })
}

fn folder_name(path: &Path) -> Option<String> {
    let name = if path.is_dir() {
        path.file_name()
    } else {
        path.file_stem()
    };
    Some(name?.to_string_lossy().into_owned())
}

/// In seconds: from `problem.yaml`, or from the files that judges add to legacy packages.
fn time_limit(files: &mut Files, config: &Config) -> Result<Option<f64>, PackageError> {
    if config.time_limit_s.is_some() {
        return Ok(config.time_limit_s);
    }
    let wrong =
        |file: &str| PackageError::new(file, "timelimit", "must be a number of seconds above 0");
    let seconds =
        |file: &str, text: &str| match text.trim().trim_matches(['"', '\'']).parse::<f64>() {
            Ok(limit) if limit.is_finite() && limit > 0.0 => Ok(Some(limit)),
            _ => Err(wrong(file)),
        };
    if let Some(text) = files.text(".timelimit")? {
        return seconds(".timelimit", &text);
    }
    let Some(text) = files.lossy_text("domjudge-problem.ini")? else {
        return Ok(None);
    };
    let limit = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "timelimit").then_some(value)
    });
    match limit {
        Some(limit) => seconds("domjudge-problem.ini", limit),
        None => Ok(None),
    }
}
