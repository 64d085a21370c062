//! Records from Parquet, a row at a time: of each column one page is unpacked, never a whole row group.
//!
//! Columns may be plain values, lists, and structures of these, whatever the levels of lists are called. A list within a
//! list is no part of any format here and is left out.

use super::{FieldError, Record, pages};
use crate::import::{BadRow, ImportError, Place};
use parquet::basic::{ConvertedType, LogicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::Type;
use serde_json::{Map, Value};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::Once;

pub(super) struct Table {
    reader: SerializedFileReader<File>,
    /// The same file, for the sizes of its pages.
    raw: File,
    file: String,
    /// For each leaf column the names that lead to its values.
    paths: Vec<Vec<String>>,
    features: Option<Value>,
    group: usize,
    columns: Vec<Column>,
    left_in_group: u64,
    row: u64,
    rows: u64,
    max_bytes: u64,
    ended: bool,
}

impl Table {
    pub(super) fn open(path: &Path, max_bytes: u64) -> Result<Self, ImportError> {
        let file = path.display().to_string();
        let fail = |source| ImportError::io(file.clone(), source);
        let raw = File::open(path).map_err(fail)?;
        let source = raw.try_clone().map_err(fail)?;
        let reader =
            guarded(|| SerializedFileReader::new(source).map_err(|error| error.to_string()))
                .map_err(|message| damaged(&file, &message))?;
        let metadata = reader.metadata().file_metadata();
        let mut paths = Vec::new();
        for field in metadata.schema().get_fields() {
            leaves(field, &mut vec![field.name().to_owned()], &mut paths);
        }
        // Rows of nothing could go on for ever.
        if paths.is_empty() {
            return Err(damaged(&file, "it has no columns"));
        }
        let features = features(metadata.key_value_metadata());
        let rows = u64::try_from(metadata.num_rows()).unwrap_or(0);
        Ok(Self {
            reader,
            raw,
            file,
            paths,
            features,
            group: 0,
            columns: Vec::new(),
            left_in_group: 0,
            row: 0,
            rows,
            max_bytes,
            ended: false,
        })
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// What the writer said of its columns (`huggingface` in the file's metadata).
    pub(super) fn features(&self) -> Option<&Value> {
        self.features.as_ref()
    }

    pub(super) fn columns(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .paths
            .iter()
            .filter_map(|path| path.first().cloned())
            .collect();
        names.dedup();
        names
    }

    fn read(&mut self) -> Result<Option<(Place, Record)>, ImportError> {
        while self.left_in_group == 0 {
            if self.group == self.reader.num_row_groups() {
                return Ok(None);
            }
            let group = self.group;
            self.group += 1;
            self.start_group(group)
                .map_err(|message| damaged(&self.file, &message))?;
        }
        self.left_in_group -= 1;
        self.row += 1;
        let mut fields = Map::new();
        let mut wrong = None;
        let mut size = 0u64;
        let max_bytes = self.max_bytes;
        for (column, path) in self.columns.iter_mut().zip(&self.paths) {
            let read = guarded(|| column.next(max_bytes)).map_err(|message| {
                damaged(
                    &self.file,
                    &format!("row {}, column `{}`: {message}", self.row, path.join(".")),
                )
            })?;
            match read {
                Ok((value, bytes)) => {
                    size = size.saturating_add(bytes);
                    insert(&mut fields, path, value);
                }
                // All columns are read to the end of the row, so that the next row can be.
                Err(message) => wrong = wrong.or(Some(FieldError::new(path.join("."), message))),
            }
            if size > self.max_bytes {
                let message = format!(
                    "the row takes more than {} bytes, the limit for one problem",
                    self.max_bytes
                );
                wrong = wrong.or(Some(FieldError::new(".", message)));
                fields.clear();
            }
        }
        let place = Place::Row(self.row);
        match wrong {
            None => Ok(Some((place, Record::new(fields)))),
            Some(FieldError { field, message }) => Err(ImportError::Row(BadRow {
                file: self.file.clone(),
                place,
                field,
                message,
            })),
        }
    }

    fn start_group(&mut self, group: usize) -> Result<(), String> {
        let metadata = self.reader.metadata().row_group(group);
        self.left_in_group = u64::try_from(metadata.num_rows())
            .map_err(|_| "a negative number of rows".to_owned())?;
        for column in metadata.columns() {
            let (start, length) = guarded(|| Ok::<_, String>(column.byte_range()))?;
            pages::check(&self.raw, start, length, self.max_bytes)?;
        }
        let reader = &self.reader;
        self.columns = guarded(|| {
            let group = reader
                .get_row_group(group)
                .map_err(|error| error.to_string())?;
            (0..group.num_columns())
                .map(|at| {
                    let pages = group
                        .get_column_page_reader(at)
                        .map_err(|error| error.to_string())?;
                    let about = group.metadata().column(at).column_descr_ptr();
                    Ok(Column {
                        list: about.max_rep_level() > 0,
                        nested: about.max_rep_level() > 1,
                        filled: about.max_def_level(),
                        element: about.repeated_ancestor_def_level(),
                        reader: get_column_reader(about, pages),
                    })
                })
                .collect::<Result<Vec<_>, String>>()
        })?;
        if self.columns.len() == self.paths.len() {
            Ok(())
        } else {
            Err("a row group lacks columns".to_owned())
        }
    }
}

impl Iterator for Table {
    type Item = Result<(Place, Record), ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let read = self.read();
        self.ended = matches!(&read, Ok(None))
            || matches!(&read, Err(error) if !matches!(error, ImportError::Row(_)));
        read.transpose()
    }
}

fn damaged(file: &str, message: &str) -> ImportError {
    ImportError::damaged(
        file,
        format!("is no Parquet file that can be read ({message}); fetch it again"),
    )
}

thread_local! {
    /// Whether a panic of this thread is one that is expected, and that nobody has to be told of.
    static GUARDED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// The Parquet library panics on some damaged files; here that is an error like others, and is not told on stderr.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                others(panic);
            }
        }));
    });
    let before = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    done.unwrap_or_else(|_| Err("the reader failed on it".to_owned()))
}

/// A leaf column.
struct Column {
    reader: ColumnReader,
    list: bool,
    /// A list within a list; read, but left out.
    nested: bool,
    /// The definition level of a value that is there.
    filled: i16,
    /// The definition level from which a list has the element at all.
    element: i16,
}

/// A value of a row or why it is none, and its size.
type Cell = Result<(Value, u64), String>;

impl Column {
    /// The outer error is one of the file, the inner one of the value, as when texts take more than `most` bytes.
    fn next(&mut self, most: u64) -> Result<Cell, String> {
        let (list, nested, filled, element) = (self.list, self.nested, self.filled, self.element);
        let shape = |levels: &[i16], values: Vec<Value>, bytes: u64| {
            if nested {
                return (Value::Null, 0);
            }
            let mut values = values.into_iter();
            if !list {
                return (values.next().unwrap_or(Value::Null), bytes);
            }
            let levels = levels.iter().filter(|&&level| level >= element);
            let items = levels.map(|&level| {
                if level == filled {
                    values.next().unwrap_or(Value::Null)
                } else {
                    Value::Null
                }
            });
            (Value::Array(items.collect()), bytes)
        };
        macro_rules! read {
            ($reader:expr, $value:expr) => {{
                let (levels, raw) = record($reader)?;
                let mut bytes = 0;
                let values: Result<Vec<Value>, String> = raw
                    .into_iter()
                    .map(|raw| {
                        let (value, size): (Result<Value, String>, u64) = $value(raw);
                        bytes += size;
                        value
                    })
                    .collect();
                Ok(values.map(|values| shape(&levels, values, bytes)))
            }};
        }
        match &mut self.reader {
            ColumnReader::BoolColumnReader(reader) => {
                read!(reader, |raw: bool| (Ok(raw.into()), 1))
            }
            ColumnReader::Int32ColumnReader(reader) => {
                read!(reader, |raw: i32| (Ok(raw.into()), 4))
            }
            ColumnReader::Int64ColumnReader(reader) => {
                read!(reader, |raw: i64| (Ok(raw.into()), 8))
            }
            ColumnReader::FloatColumnReader(reader) => {
                read!(reader, |raw: f32| (Ok(Value::from(f64::from(raw))), 4))
            }
            ColumnReader::DoubleColumnReader(reader) => {
                read!(reader, |raw: f64| (Ok(raw.into()), 8))
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                let (levels, raw) = record(reader)?;
                // Before they are copied: many values may be one and the same in the file.
                let bytes = raw.iter().map(|raw| raw.len() as u64).sum();
                if bytes > most {
                    return Ok(Err(format!(
                        "takes {bytes} bytes, more than {most}, the limit for one problem"
                    )));
                }
                let values: Result<Vec<Value>, String> =
                    raw.iter().map(|raw| text(raw.data())).collect();
                Ok(values.map(|values| shape(&levels, values, bytes)))
            }
            // Times of old and bytes of fixed length are in no format here.
            ColumnReader::Int96ColumnReader(reader) => read!(reader, |_| (Ok(Value::Null), 12)),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                read!(reader, |_| (Ok(Value::Null), 16))
            }
        }
    }
}

fn text(bytes: &[u8]) -> Result<Value, String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(error) => Err(format!("is no UTF-8 text ({error})")),
    }
}

/// The definition levels and the values of the next record.
fn record<T: DataType>(reader: &mut ColumnReaderImpl<T>) -> Result<(Vec<i16>, Vec<T::T>), String> {
    let (mut levels, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let read = reader.read_records(1, Some(&mut levels), Some(&mut repetitions), &mut values);
    match read.map_err(|error| error.to_string())? {
        (1, _, _) => Ok((levels, values)),
        _ => Err("it ends before the other columns do".to_owned()),
    }
}

/// Puts a value where its path leads.
fn insert(fields: &mut Map<String, Value>, path: &[String], value: Value) {
    match path {
        [] => {}
        [name] => {
            fields.insert(name.clone(), value);
        }
        [name, rest @ ..] => {
            let inner = fields
                .entry(name.clone())
                .or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// The paths of the leaf columns under `kind`, without the levels that only make lists.
fn leaves(kind: &Type, path: &mut Vec<String>, all: &mut Vec<Vec<String>>) {
    if kind.is_primitive() {
        all.push(path.clone());
        return;
    }
    let fields = kind.get_fields();
    if is_list(kind)
        && let [repeated] = fields
    {
        if repeated.is_primitive() {
            all.push(path.clone());
            return;
        }
        if let [element] = repeated.get_fields() {
            leaves(element, path, all);
            return;
        }
        children(repeated.get_fields(), path, all);
        return;
    }
    children(fields, path, all);
}

fn children(
    fields: &[parquet::schema::types::TypePtr],
    path: &mut Vec<String>,
    all: &mut Vec<Vec<String>>,
) {
    for field in fields {
        path.push(field.name().to_owned());
        leaves(field, path, all);
        path.pop();
    }
}

fn is_list(kind: &Type) -> bool {
    let info = kind.get_basic_info();
    info.converted_type() == ConvertedType::LIST
        || matches!(info.logical_type_ref(), Some(LogicalType::List))
}

fn features(metadata: Option<&Vec<parquet::file::metadata::KeyValue>>) -> Option<Value> {
    let entry = metadata?.iter().find(|entry| entry.key == "huggingface")?;
    let mut info: Value = serde_json::from_str(entry.value.as_deref()?).ok()?;
    info.pointer_mut("/info/features").map(Value::take)
}

/// The names of the classes of a column, wherever under `features` it stands.
pub(crate) fn class_names(features: &Value, path: &[&str]) -> Option<Vec<String>> {
    let mut here = features;
    for name in path {
        here = find(here, name, 0)?;
    }
    let names = find(here, "names", 0)?.as_array()?;
    names
        .iter()
        .map(|name| name.as_str().map(str::to_owned))
        .collect()
}

/// The value of `key` in `value` or in what it holds.
fn find<'v>(value: &'v Value, key: &str, depth: u32) -> Option<&'v Value> {
    if depth > 8 {
        return None;
    }
    match value {
        Value::Object(fields) => fields.get(key).or_else(|| {
            fields
                .values()
                .find_map(|inner| find(inner, key, depth + 1))
        }),
        Value::Array(items) => items.iter().find_map(|inner| find(inner, key, depth + 1)),
        _ => None,
    }
}
