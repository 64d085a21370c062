//! CodeContests: the columns of the data set `deepmind/code_contests` as published on the Hub (Parquet, or JSON with the
//! same fields). The Riegeli files of the original release are not read.
//!
//! Public, private and generated tests stay apart. Outputs are compared as the data set's own tools do it, see
//! [`Checker::code_contests`].

mod classes;
#[cfg(test)]
mod tests;

pub(crate) use classes::{Classes, DIFFICULTIES, LANGUAGES, SOURCES, language_class};

use crate::import::{ImportError, ImportOptions, id_of};
use crate::records::{Convert, Converted, FieldError, Record, RecordRows, wrong};
use crate::{Checker, Problem, Solution, TestCase};
use serde_json::{Map, Value};
use std::path::Path;

/// Wall-clock seconds a test where the data set names no limit (RLEF, appendix A.2).
const TIME_LIMIT_S: f64 = 10.0;

pub(crate) fn rows(
    path: &Path,
    options: &ImportOptions,
) -> Result<RecordRows<CodeContests>, ImportError> {
    let time_limit_s = options.time_limit_s.unwrap_or(TIME_LIMIT_S);
    let memory_limit_mb = options.memory_limit_mb;
    RecordRows::open(path, options, |features| CodeContests {
        classes: Classes::of(features),
        time_limit_s,
        memory_limit_mb,
    })
}

pub(crate) struct CodeContests {
    classes: Classes,
    time_limit_s: f64,
    memory_limit_mb: u64,
}

impl Convert for CodeContests {
    fn convert(&self, _row: u64, mut record: Record) -> Converted {
        let mut notes = Vec::new();
        let mut meta = Map::new();
        let name = record.required("name")?;
        let statement = record.required("description")?;
        for (field, names) in [
            ("source", &self.classes.sources),
            ("difficulty", &self.classes.difficulties),
        ] {
            if let Some(class) = record.take(field) {
                meta.insert(
                    field.to_owned(),
                    classes::name(field, &class, names)?.into(),
                );
            }
        }
        let time_limit_s = match time_limit(&mut record)? {
            Some(limit) => limit,
            None => {
                meta.insert("time_limit_from".to_owned(), "default".into());
                self.time_limit_s
            }
        };
        let memory_limit_mb = match record.number("memory_limit_bytes")? {
            Some(bytes) if bytes > 0.0 => (bytes / f64::from(1 << 20)).ceil() as u64,
            Some(bytes) if bytes < 0.0 => {
                return Err(FieldError::new(
                    "memory_limit_bytes",
                    format!("is {bytes}; must not be negative"),
                ));
            }
            _ => {
                meta.insert("memory_limit_from".to_owned(), "default".into());
                self.memory_limit_mb
            }
        };
        if let Some(file) = record.text("input_file")?.filter(|file| !file.is_empty()) {
            notes.push(format!(
                "the statement may speak of the input file `{file}`; programs read stdin"
            ));
            meta.insert("input_file".to_owned(), file.into());
        }
        if record.take("is_description_translated") == Some(Value::Bool(true)) {
            meta.insert("is_description_translated".to_owned(), true.into());
        }
        record.keep(
            &mut meta,
            &[
                "output_file",
                "cf_contest_id",
                "cf_index",
                "cf_points",
                "cf_rating",
                "cf_tags",
                "untranslated_description",
            ],
        );
        // Zero stands for "not from Codeforces".
        for field in ["cf_contest_id", "cf_points", "cf_rating"] {
            if meta.get(field).and_then(Value::as_f64) == Some(0.0) {
                meta.shift_remove(field);
            }
        }
        Ok((
            Problem {
                id: id_of(&name),
                public_tests: tests(&mut record, "public")?,
                private_tests: tests(&mut record, "private")?,
                generated_tests: tests(&mut record, "generated")?,
                solutions: self.solutions(&mut record, true, &mut notes)?,
                wrong_solutions: self.solutions(&mut record, false, &mut notes)?,
                name,
                statement,
                time_limit_s,
                memory_limit_mb,
                checker: Checker::code_contests(),
                function: None,
                meta,
            },
            notes,
        ))
    }
}

impl CodeContests {
    fn solutions(
        &self,
        record: &mut Record,
        right: bool,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Solution>, FieldError> {
        let field = if right {
            "solutions"
        } else {
            "incorrect_solutions"
        };
        let (languages, codes) = pair(record, field, ["language", "solution"])?;
        let mut solutions = Vec::with_capacity(codes.len());
        let mut empty = 0;
        for (at, (language, code)) in languages.into_iter().zip(codes).enumerate() {
            let Value::String(code) = code else {
                return Err(wrong(format!("{field}.solution[{at}]"), "a text", &code));
            };
            let class = classes::name(
                &format!("{field}.language[{at}]"),
                &language,
                &self.classes.languages,
            )?;
            if code.trim().is_empty() {
                empty += 1;
                continue;
            }
            let language = classes::language(&class);
            solutions.push(Solution {
                file: format!(
                    "{}-{}.{}",
                    if right { "solution" } else { "wrong" },
                    at + 1,
                    classes::extension(language)
                ),
                language: language.to_owned(),
                class: None,
                expected: if right { "AC" } else { "NOT_AC" }.to_owned(),
                code,
            });
        }
        if empty > 0 {
            notes.push(format!("{empty} of its `{field}` are empty and left out"));
        }
        Ok(solutions)
    }
}

/// In seconds; `None` where the data set has none (null or zero).
fn time_limit(record: &mut Record) -> Result<Option<f64>, FieldError> {
    let Some(value) = record.take("time_limit") else {
        return Ok(None);
    };
    let part = |value: Option<&Value>, name: &str| match value {
        None | Some(Value::Null) => Ok(0.0),
        Some(value) => value
            .as_f64()
            .ok_or_else(|| wrong(format!("time_limit{name}"), "a number", value)),
    };
    let seconds = match &value {
        Value::Object(parts) => {
            part(parts.get("seconds"), ".seconds")? + part(parts.get("nanos"), ".nanos")? / 1e9
        }
        other => part(Some(other), "")?,
    };
    if seconds < 0.0 {
        return Err(FieldError::new(
            "time_limit",
            format!("is {seconds} s; must not be negative"),
        ));
    }
    Ok((seconds > 0.0).then_some(seconds))
}

fn tests(record: &mut Record, kind: &str) -> Result<Vec<TestCase>, FieldError> {
    let field = format!("{kind}_tests");
    let (inputs, outputs) = pair(record, &field, ["input", "output"])?;
    let text = |value: Value, part: &str, at: usize| match value {
        Value::String(text) => Ok(text),
        other => Err(wrong(format!("{field}.{part}[{at}]"), "a text", &other)),
    };
    inputs
        .into_iter()
        .zip(outputs)
        .enumerate()
        .map(|(at, (input, output))| {
            Ok(TestCase {
                name: format!("{kind}/{}", at + 1),
                input: text(input, "input", at)?,
                output: text(output, "output", at)?,
            })
        })
        .collect()
}

/// Two lists of the same length; a list of pairs is read as well. Missing ones are empty.
fn pair(
    record: &mut Record,
    field: &str,
    parts: [&str; 2],
) -> Result<(Vec<Value>, Vec<Value>), FieldError> {
    let mut whole = match record.take(field) {
        None => return Ok(Default::default()),
        Some(Value::Object(whole)) => whole,
        Some(Value::Array(pairs)) => {
            let mut lists = (Vec::new(), Vec::new());
            for mut pair in pairs {
                let mut take = |part| pair.get_mut(part).map(Value::take).unwrap_or_default();
                lists.0.push(take(parts[0]));
                lists.1.push(take(parts[1]));
            }
            return Ok(lists);
        }
        Some(other) => return Err(wrong(field, "an object of two lists", &other)),
    };
    let mut list = |part: &str| match whole.get_mut(part).map(Value::take) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => Ok(list),
        Some(other) => Err(wrong(format!("{field}.{part}"), "a list", &other)),
    };
    let (first, second) = (list(parts[0])?, list(parts[1])?);
    if first.len() != second.len() {
        let message = format!(
            "has {} of `{}` but {} of `{}`",
            first.len(),
            parts[0],
            second.len(),
            parts[1]
        );
        return Err(FieldError::new(field, message));
    }
    Ok((first, second))
}
