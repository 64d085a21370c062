//! The numbers that stand for names. A file from the Hub brings its own names, and they are used; the numbers differ from
//! those of the original protocol buffers (`ATCODER` is 5 here and 6 there).

use crate::records::{FieldError, class_names, wrong};
use serde_json::Value;

/// Where problems are from.
pub(crate) const SOURCES: [&str; 7] = [
    "UNKNOWN_SOURCE",
    "CODECHEF",
    "CODEFORCES",
    "HACKEREARTH",
    "CODEJAM",
    "ATCODER",
    "AIZU",
];

/// How hard they are: in words, or by their letter in a contest.
pub(crate) const DIFFICULTIES: [&str; 29] = [
    "UNKNOWN_DIFFICULTY",
    "EASY",
    "MEDIUM",
    "HARD",
    "HARDER",
    "HARDEST",
    "EXTERNAL",
    "A",
    "B",
    "C",
    "D",
    "E",
    "F",
    "G",
    "H",
    "I",
    "J",
    "K",
    "L",
    "M",
    "N",
    "O",
    "P",
    "Q",
    "R",
    "S",
    "T",
    "U",
    "V",
];

/// What solutions are written in; `PYTHON` is Python 2.
pub(crate) const LANGUAGES: [&str; 5] = ["UNKNOWN_LANGUAGE", "PYTHON", "CPP", "PYTHON3", "JAVA"];

/// The names of a file's classes.
pub(crate) struct Classes {
    pub(super) sources: Vec<String>,
    pub(super) difficulties: Vec<String>,
    pub(super) languages: Vec<String>,
}

impl Classes {
    /// As the file says, else as on the Hub.
    pub(crate) fn of(features: Option<&Value>) -> Self {
        let names = |path: &[&str], known: &[&str]| {
            features
                .and_then(|features| class_names(features, path))
                .unwrap_or_else(|| known.iter().map(|&name| name.to_owned()).collect())
        };
        Self {
            sources: names(&["source"], &SOURCES),
            difficulties: names(&["difficulty"], &DIFFICULTIES),
            languages: names(&["solutions", "language"], &LANGUAGES),
        }
    }
}

/// The name of a class that is given as its number, or as its name already.
pub(super) fn name(field: &str, class: &Value, names: &[String]) -> Result<String, FieldError> {
    if let Value::String(name) = class {
        return Ok(name.clone());
    }
    // Whole numbers may come as floating-point ones from columns with missing values.
    let number = class
        .as_i64()
        .or_else(|| {
            class
                .as_f64()
                .filter(|number| number.fract() == 0.0)
                .map(|number| number as i64)
        })
        .ok_or_else(|| wrong(field, "the number of a class", class))?;
    let name = usize::try_from(number).ok().and_then(|at| names.get(at));
    name.cloned().ok_or_else(|| {
        let last = names.len().saturating_sub(1);
        FieldError::new(field, format!("is class {number}; there are 0 to {last}"))
    })
}

/// What this crate calls a language.
pub(super) fn language(class: &str) -> &'static str {
    match class {
        "PYTHON" | "PYTHON2" => "python2",
        "PYTHON3" => "python",
        "CPP" => "cpp",
        "JAVA" => "java",
        _ => "unknown",
    }
}

/// The class of a language; 0 for one that the data set does not know.
pub(crate) fn language_class(language: &str) -> usize {
    let class = match language.to_ascii_lowercase().as_str() {
        "python2" => "PYTHON",
        "python" | "python3" | "py" => "PYTHON3",
        "cpp" | "c++" => "CPP",
        "java" => "JAVA",
        _ => "UNKNOWN_LANGUAGE",
    };
    LANGUAGES
        .iter()
        .position(|&name| name == class)
        .unwrap_or(0)
}

pub(super) fn extension(language: &str) -> &'static str {
    match language {
        "python" | "python2" => "py",
        "cpp" => "cpp",
        "java" => "java",
        _ => "txt",
    }
}
