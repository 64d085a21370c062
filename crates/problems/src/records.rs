//! Records with named fields from JSON lines, a JSON array or Parquet, one after another. What the fields mean is the
//! business of [`crate::formats`].

mod lines;
mod pages;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use table::class_names;

use crate::import::{BadRow, Found, ImportError, ImportOptions, Rows};
use lines::Lines;
use serde_json::{Map, Value};
use std::path::Path;
use table::Table;

/// A field that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldError {
    pub(crate) field: String,
    pub(crate) message: String,
}

impl FieldError {
    pub(crate) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

/// One record. Fields are taken out, so that large ones are never copied.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Record {
    fields: Map<String, Value>,
}

impl Record {
    pub(crate) fn new(fields: Map<String, Value>) -> Self {
        Self { fields }
    }

    /// The value of a field that may be missing or null.
    pub(crate) fn take(&mut self, field: &str) -> Option<Value> {
        match self.fields.get_mut(field).map(Value::take) {
            None | Some(Value::Null) => None,
            value => value,
        }
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.fields.get(field).is_some_and(|value| !value.is_null())
    }

    /// A text that may be missing.
    pub(crate) fn text(&mut self, field: &str) -> Result<Option<String>, FieldError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(field, "a text", &other)),
        }
    }

    /// A text that must be there.
    pub(crate) fn required(&mut self, field: &str) -> Result<String, FieldError> {
        self.text(field)?
            .ok_or_else(|| FieldError::new(field, "is missing; this format needs it"))
    }

    /// A number that may be missing; texts of numbers are read too.
    pub(crate) fn number(&mut self, field: &str) -> Result<Option<f64>, FieldError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(other) => match other.as_str().and_then(|text| text.trim().parse().ok()) {
                Some(number) => Ok(Some(number)),
                None => Err(wrong(field, "a number", &other)),
            },
        }
    }

    /// A list that may be missing.
    pub(crate) fn list(&mut self, field: &str) -> Result<Vec<Value>, FieldError> {
        match self.take(field) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => Ok(list),
            Some(other) => Err(wrong(field, "a list", &other)),
        }
    }

    /// A text that holds JSON, or the JSON itself; may be missing or empty.
    pub(crate) fn json(&mut self, field: &str) -> Result<Option<Value>, FieldError> {
        match self.take(field) {
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) => serde_json::from_str(&text)
                .map(Some)
                .map_err(|error| FieldError::new(field, format!("is no JSON: {error}"))),
            other => Ok(other),
        }
    }

    /// Puts fields that are not used otherwise aside for people; empty ones are left out.
    pub(crate) fn keep(&mut self, meta: &mut Map<String, Value>, fields: &[&str]) {
        for field in fields {
            match self.take(field) {
                Some(Value::String(text)) if text.is_empty() => {}
                Some(Value::Array(list)) if list.is_empty() => {}
                Some(value) => {
                    meta.insert((*field).to_owned(), value);
                }
                None => {}
            }
        }
    }
}

/// The error for a value of the wrong type.
pub(crate) fn wrong(field: impl Into<String>, wanted: &str, value: &Value) -> FieldError {
    let kind = match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    FieldError::new(field, format!("must be {wanted}, is {kind}"))
}

/// Where records come from.
enum Source {
    Lines(Lines),
    Table(Box<Table>),
}

/// What a converter makes of a record: a problem and notes about it.
pub(crate) type Converted = Result<(crate::Problem, Vec<String>), FieldError>;

/// Makes problems of records.
pub(crate) trait Convert {
    /// `row` counts from 1; `record` is the whole record.
    fn convert(&self, row: u64, record: Record) -> Converted;
}

/// The problems of a file of records.
pub(crate) struct RecordRows<C> {
    source: Source,
    file: String,
    row: u64,
    convert: C,
    ended: bool,
}

impl<C: Convert> RecordRows<C> {
    /// Opens a file; `convert` is made from what the file says of its columns' classes.
    pub(crate) fn open(
        path: &Path,
        options: &ImportOptions,
        convert: impl FnOnce(Option<&Value>) -> C,
    ) -> Result<Self, ImportError> {
        let (source, features) = if is_parquet(path)? {
            let table = Table::open(path, options.max_problem_bytes)?;
            let features = table.features().cloned();
            (Source::Table(Box::new(table)), features)
        } else {
            (
                Source::Lines(Lines::open(path, options.max_problem_bytes)?),
                None,
            )
        };
        Ok(Self {
            source,
            file: path.display().to_string(),
            row: 0,
            convert: convert(features.as_ref()),
            ended: false,
        })
    }
}

impl<C: Convert> Rows for RecordRows<C> {
    fn next(&mut self) -> Option<Result<Found, ImportError>> {
        if self.ended {
            return None;
        }
        let read = match &mut self.source {
            Source::Lines(lines) => lines.next()?,
            Source::Table(table) => table.next()?,
        };
        self.row += 1;
        let (place, record) = match read {
            Ok(read) => read,
            Err(error) => {
                self.ended = !matches!(error, ImportError::Row(_));
                return Some(Err(error));
            }
        };
        let converted = self.convert.convert(self.row, record);
        Some(match converted {
            Ok((problem, notes)) => Ok(Found {
                place,
                problem,
                notes,
            }),
            Err(FieldError { field, message }) => Err(ImportError::Row(BadRow {
                file: self.file.clone(),
                place,
                field,
                message,
            })),
        })
    }

    fn bytes(&self) -> u64 {
        match &self.source {
            Source::Lines(lines) => lines.bytes(),
            Source::Table(_) => 0,
        }
    }

    fn total(&self) -> Option<u64> {
        match &self.source {
            Source::Lines(_) => None,
            Source::Table(table) => Some(table.rows()),
        }
    }
}

/// Whether the file starts as Parquet does.
pub(crate) fn is_parquet(path: &Path) -> Result<bool, ImportError> {
    use std::io::Read as _;
    let fail = |source| ImportError::io(path.display().to_string(), source);
    // A pipe can be read only once, and Parquet cannot be read from one.
    if !std::fs::metadata(path).map_err(fail)?.is_file() {
        return Ok(false);
    }
    let mut start = Vec::new();
    let file = std::fs::File::open(path).map_err(fail)?;
    file.take(4).read_to_end(&mut start).map_err(fail)?;
    Ok(start == b"PAR1")
}

/// The names of the fields of the first record; for telling formats apart.
pub(crate) fn field_names(path: &Path, max_bytes: u64) -> Result<Vec<String>, ImportError> {
    if is_parquet(path)? {
        return Ok(Table::open(path, max_bytes)?.columns());
    }
    lines::field_names(path, max_bytes)
}
