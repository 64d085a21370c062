//! CodeContests Parquet, with the columns, the order and the class names of `deepmind/code_contests`.

use super::ExportError;
use super::columns::{Cell, Column};
use crate::formats::codecontests::{DIFFICULTIES, LANGUAGES, SOURCES, language_class};
use crate::import::id_of;
use crate::write::Replacement;
use crate::{Checker, Problem, Solution, TestCase};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A group is written when its texts take as much, in bytes; that is what the writer holds in memory.
const GROUP_BYTES: usize = 32 << 20;
/// The most rows of a group.
const GROUP_ROWS: usize = 1000;

const SCHEMA: &str = "message schema {
  optional binary name (STRING);
  optional binary description (STRING);
  TESTS public_tests
  TESTS private_tests
  TESTS generated_tests
  optional int64 source;
  optional int64 difficulty;
  PROGRAMS solutions
  PROGRAMS incorrect_solutions
  optional int64 cf_contest_id;
  optional binary cf_index (STRING);
  optional float cf_points;
  optional int64 cf_rating;
  optional group cf_tags (LIST) { repeated group list { optional binary element (STRING); } }
  optional boolean is_description_translated;
  optional binary untranslated_description (STRING);
  optional group time_limit { optional int64 seconds; optional int64 nanos; }
  optional int64 memory_limit_bytes;
  optional binary input_file (STRING);
  optional binary output_file (STRING);
}";

const TEXTS: &str = "(LIST) { repeated group list { optional binary element (STRING); } }";
const INTS: &str = "(LIST) { repeated group list { optional int64 element; } }";

/// Writes a file problem by problem; it takes its place only in [`finish`](Self::finish).
pub struct CodeContestsWriter {
    writer: SerializedFileWriter<Replacement>,
    file: String,
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
}

impl CodeContestsWriter {
    /// Starts a file.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(path: &Path) -> Result<Self, ExportError> {
        let file = path.display().to_string();
        let start = || {
            let target = Replacement::create(path)?;
            let schema = parse_message_type(&schema()).map_err(io::Error::other)?;
            let properties = WriterProperties::builder()
                .set_compression(Compression::SNAPPY)
                .set_key_value_metadata(Some(vec![KeyValue::new(
                    "huggingface".to_owned(),
                    Some(features().to_string()),
                )]))
                .build();
            SerializedFileWriter::new(target, Arc::new(schema), Arc::new(properties))
                .map_err(io::Error::other)
        };
        match start() {
            Ok(writer) => Ok(Self {
                writer,
                file,
                columns: columns(),
                rows: 0,
                bytes: 0,
            }),
            Err(source) => Err(ExportError::Io { file, source }),
        }
    }

    /// Adds a problem. What the format cannot hold of it is returned in words.
    ///
    /// # Errors
    /// When the format does not fit the problem at all, or the file cannot be written.
    pub fn write(&mut self, problem: &Problem) -> Result<Vec<String>, ExportError> {
        let unfit = |why: &str| {
            Err(ExportError::Unfit {
                id: problem.id.clone(),
                why: why.to_owned(),
            })
        };
        if problem.function.is_some() {
            return unfit(
                "its tests call a function, and CodeContests knows only programs that print",
            );
        }
        if matches!(problem.checker, Checker::Validator(_) | Checker::Custom(_)) {
            return unfit(
                "a program of its own checks its outputs, and CodeContests knows one rule for all",
            );
        }
        self.bytes += self.put(problem);
        self.rows += 1;
        if self.rows == GROUP_ROWS || self.bytes >= GROUP_BYTES {
            self.flush()?;
        }
        Ok(lost(problem))
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// When what is left cannot be written.
    pub fn finish(mut self) -> Result<(), ExportError> {
        if self.rows > 0 {
            self.flush()?;
        }
        let file = self.file;
        let done = self
            .writer
            .into_inner()
            .map_err(io_error)
            .and_then(Replacement::finish);
        done.map_err(|source| ExportError::Io { file, source })
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        (self.rows, self.bytes) = (0, 0);
        let columns = &mut self.columns;
        let mut save = || {
            let mut group = self.writer.next_row_group()?;
            for column in columns.iter_mut() {
                let mut writer = group
                    .next_column()?
                    .ok_or_else(|| ParquetError::General("the schema lacks a column".to_owned()))?;
                column.write(writer.untyped())?;
                writer.close()?;
            }
            group.close().map(drop)
        };
        save().map_err(|error| ExportError::Io {
            file: self.file.clone(),
            source: io_error(error),
        })
    }

    /// Adds the problem to the columns, in the order of the schema; the size of its texts.
    fn put(&mut self, problem: &Problem) -> usize {
        let mut columns = self.columns.iter_mut();
        let mut bytes = 0;
        let mut scalar = |cell: Option<Cell<'_>>| {
            if let Some(Cell::Text(text)) = &cell {
                bytes += text.len();
            }
            if let Some(column) = columns.next() {
                column.put(cell);
            }
        };
        let meta = |name: &str| problem.meta.get(name);
        let text = |name: &str| {
            Some(Cell::Text(
                meta(name).and_then(Value::as_str).unwrap_or_default(),
            ))
        };
        let int = |name: &str| {
            Some(Cell::Int(
                meta(name).and_then(Value::as_i64).unwrap_or_default(),
            ))
        };
        // A name that would give another id when it is read is not used.
        let name = if id_of(&problem.name) == problem.id {
            &problem.name
        } else {
            &problem.id
        };
        scalar(Some(Cell::Text(name)));
        scalar(Some(Cell::Text(&problem.statement)));
        for tests in [
            &problem.public_tests,
            &problem.private_tests,
            &problem.generated_tests,
        ] {
            let list =
                |part: fn(&TestCase) -> &str| tests.iter().map(move |test| Cell::Text(part(test)));
            for part in [(|test| &test.input) as fn(&TestCase) -> &str, |test| {
                &test.output
            }] {
                if let Some(column) = columns.next() {
                    column.put_list(list(part));
                }
            }
            bytes += tests
                .iter()
                .map(|test| test.input.len() + test.output.len())
                .sum::<usize>();
        }
        let mut scalar = |cell: Option<Cell<'_>>| {
            if let Some(column) = columns.next() {
                column.put(cell);
            }
        };
        scalar(Some(Cell::Int(class(meta("source"), &SOURCES))));
        scalar(Some(Cell::Int(class(meta("difficulty"), &DIFFICULTIES))));
        for solutions in [&problem.solutions, &problem.wrong_solutions] {
            let languages = solutions
                .iter()
                .map(|solution| Cell::Int(language_class(&solution.language) as i64));
            if let Some(column) = columns.next() {
                column.put_list(languages);
            }
            if let Some(column) = columns.next() {
                column.put_list(solutions.iter().map(|solution| Cell::Text(&solution.code)));
            }
            bytes += solutions
                .iter()
                .map(|solution| solution.code.len())
                .sum::<usize>();
        }
        let mut scalar = |cell: Option<Cell<'_>>| {
            if let Some(column) = columns.next() {
                column.put(cell);
            }
        };
        scalar(int("cf_contest_id"));
        scalar(text("cf_index"));
        scalar(Some(Cell::Float(
            meta("cf_points")
                .and_then(Value::as_f64)
                .unwrap_or_default() as f32,
        )));
        scalar(int("cf_rating"));
        if let Some(column) = columns.next() {
            let tags = meta("cf_tags")
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default();
            column.put_list(tags.iter().filter_map(Value::as_str).map(Cell::Text));
        }
        let mut scalar = |cell: Option<Cell<'_>>| {
            if let Some(column) = columns.next() {
                column.put(cell);
            }
        };
        scalar(Some(Cell::Bool(
            meta("is_description_translated") == Some(&Value::Bool(true)),
        )));
        scalar(text("untranslated_description"));
        let named = |field: &str| meta(field).and_then(Value::as_str) != Some("default");
        let nanos = (problem.time_limit_s * 1e9).round() as i64;
        let limit = named("time_limit_from");
        scalar(limit.then_some(Cell::Int(nanos / 1_000_000_000)));
        scalar(limit.then_some(Cell::Int(nanos % 1_000_000_000)));
        let memory =
            i64::try_from(problem.memory_limit_mb.saturating_mul(1 << 20)).unwrap_or(i64::MAX);
        scalar(Some(Cell::Int(if named("memory_limit_from") {
            memory
        } else {
            0
        })));
        scalar(text("input_file"));
        scalar(text("output_file"));
        bytes
    }
}

/// What a reader of the file will not find again.
fn lost(problem: &Problem) -> Vec<String> {
    let mut notes = Vec::new();
    if problem.checker != Checker::code_contests() {
        notes.push("its checker; CodeContests compares all outputs by one rule".to_owned());
    }
    let unknown = |solution: &&Solution| {
        solution.language != "unknown" && language_class(&solution.language) == 0
    };
    let all = problem.solutions.iter().chain(&problem.wrong_solutions);
    let count = all.filter(unknown).count();
    if count > 0 {
        notes.push(format!(
            "the language of {count} solutions; CodeContests knows Python, C++ and Java"
        ));
    }
    notes
}

fn class(name: Option<&Value>, names: &[&str]) -> i64 {
    let place = name
        .and_then(Value::as_str)
        .and_then(|name| names.iter().position(|known| *known == name));
    place.unwrap_or(0) as i64
}

fn schema() -> String {
    let mut schema = SCHEMA.to_owned();
    for (word, inner) in [
        (
            "TESTS",
            format!("{{ optional group input {TEXTS} optional group output {TEXTS} }}"),
        ),
        (
            "PROGRAMS",
            format!("{{ optional group language {INTS} optional group solution {TEXTS} }}"),
        ),
    ] {
        while let Some(at) = schema.find(word) {
            let line_end = schema
                .get(at..)
                .and_then(|rest| rest.find('\n'))
                .map_or(schema.len(), |end| at + end);
            let name = schema
                .get(at + word.len()..line_end)
                .unwrap_or_default()
                .trim()
                .to_owned();
            schema.replace_range(at..line_end, &format!("optional group {name} {inner}"));
        }
    }
    schema
}

/// The columns in the order of [`SCHEMA`], with their deepest levels.
fn columns() -> Vec<Column> {
    let mut columns = vec![Column::text(1), Column::text(1)];
    columns.extend((0..6).map(|_| Column::texts(4)));
    columns.extend([Column::int(1), Column::int(1)]);
    for _ in 0..2 {
        columns.extend([Column::ints(4), Column::texts(4)]);
    }
    columns.extend([
        Column::int(1),
        Column::text(1),
        Column::float(),
        Column::int(1),
        Column::texts(3),
    ]);
    columns.extend([
        Column::bool(),
        Column::text(1),
        Column::int(2),
        Column::int(2),
        Column::int(1),
    ]);
    columns.extend([Column::text(1), Column::text(1)]);
    columns
}

/// What the `datasets` library wants to know of the columns, class names above all.
fn features() -> Value {
    let value = |kind: &str| json!({"dtype": kind, "_type": "Value"});
    let label = |names: &[&str]| json!({"names": names, "_type": "ClassLabel"});
    let sequence = |feature: Value| json!({"feature": feature, "_type": "Sequence"});
    let tests = || sequence(json!({"input": value("string"), "output": value("string")}));
    let programs = || sequence(json!({"language": label(&LANGUAGES), "solution": value("string")}));
    json!({"info": {"features": {
        "name": value("string"), "description": value("string"),
        "public_tests": tests(), "private_tests": tests(), "generated_tests": tests(),
        "source": label(&SOURCES), "difficulty": label(&DIFFICULTIES),
        "solutions": programs(), "incorrect_solutions": programs(),
        "cf_contest_id": value("int64"), "cf_index": value("string"), "cf_points": value("float32"),
        "cf_rating": value("int64"), "cf_tags": sequence(value("string")),
        "is_description_translated": value("bool"), "untranslated_description": value("string"),
        "time_limit": {"seconds": value("int64"), "nanos": value("int64")},
        "memory_limit_bytes": value("int64"), "input_file": value("string"), "output_file": value("string"),
    }}})
}

fn io_error(error: ParquetError) -> io::Error {
    io::Error::other(error)
}
