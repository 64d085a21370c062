//! Records as JSON: one object a line, or one array of them.

use super::Record;
use crate::import::{BadRow, ImportError, Place};
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

pub(super) struct Lines {
    source: BufReader<File>,
    file: String,
    line: usize,
    bytes: u64,
    max_line: u64,
    /// The records of an array, in reverse; it is held as a whole, within the limit for one problem.
    array: Option<Vec<Value>>,
    ended: bool,
}

impl Lines {
    pub(super) fn open(path: &Path, max_line: u64) -> Result<Self, ImportError> {
        let file = path.display().to_string();
        match File::open(path) {
            Ok(source) => Ok(Self {
                source: BufReader::with_capacity(1 << 16, source),
                file,
                line: 0,
                bytes: 0,
                max_line,
                array: None,
                ended: false,
            }),
            Err(source) => Err(ImportError::io(file, source)),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn bad(&self, field: &str, message: String) -> ImportError {
        let place = Place::Line(self.line);
        ImportError::Row(BadRow {
            file: self.file.clone(),
            place,
            field: field.to_owned(),
            message,
        })
    }

    /// The next line that is not empty.
    fn line(&mut self) -> Result<Option<Vec<u8>>, ImportError> {
        let mut text = Vec::new();
        loop {
            text.clear();
            let limit = self.max_line.saturating_add(1);
            let read = (&mut self.source).take(limit).read_until(b'\n', &mut text);
            let read = read.map_err(|source| ImportError::io(self.file.clone(), source))?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            self.bytes += read as u64;
            if read as u64 > self.max_line {
                self.skip_line()?;
                let most = self.max_line;
                return Err(self.bad(
                    ".",
                    format!("is longer than {most} bytes, the limit for one problem"),
                ));
            }
            if !text.trim_ascii().is_empty() {
                return Ok(Some(text));
            }
        }
    }

    /// The rest of a line that is too long.
    fn skip_line(&mut self) -> Result<(), ImportError> {
        loop {
            let buffer = self.source.fill_buf();
            let buffer = buffer.map_err(|source| ImportError::io(self.file.clone(), source))?;
            let end = buffer.iter().position(|&byte| byte == b'\n');
            let count = end.map_or(buffer.len(), |at| at + 1);
            self.source.consume(count);
            self.bytes += count as u64;
            if end.is_some() || count == 0 {
                return Ok(());
            }
        }
    }

    fn read(&mut self) -> Result<Option<(Place, Record)>, ImportError> {
        if let Some(array) = &mut self.array {
            let Some(value) = array.pop() else {
                return Ok(None);
            };
            self.line += 1;
            return self
                .record(value)
                .map(|record| Some((Place::Row(self.line as u64), record)));
        }
        let Some(text) = self.line()? else {
            return Ok(None);
        };
        if self.line == 1 && text.trim_ascii_start().first() == Some(&b'[') {
            return self.start_array(text);
        }
        let value = serde_json::from_slice(text.trim_ascii());
        let value = value.map_err(|error| self.bad(".", format!("is no JSON: {error}")))?;
        self.record(value)
            .map(|record| Some((Place::Line(self.line), record)))
    }

    fn record(&self, value: Value) -> Result<Record, ImportError> {
        match value {
            Value::Object(fields) => Ok(Record::new(fields)),
            _ => Err(self.bad(".", "must be an object with named fields".to_owned())),
        }
    }

    fn start_array(&mut self, mut text: Vec<u8>) -> Result<Option<(Place, Record)>, ImportError> {
        let limit = self.max_line.saturating_add(1);
        let read = (&mut self.source).take(limit).read_to_end(&mut text);
        self.bytes += read.map_err(|source| ImportError::io(self.file.clone(), source))? as u64;
        if text.len() as u64 > self.max_line {
            let message = format!(
                "is one array of more than {} bytes; write one record a line",
                self.max_line
            );
            return Err(ImportError::damaged(self.file.clone(), message));
        }
        let array: Result<Vec<Value>, _> = serde_json::from_slice(&text);
        let mut array = array.map_err(|error| {
            ImportError::damaged(self.file.clone(), format!("is no array of JSON: {error}"))
        })?;
        array.reverse();
        self.array = Some(array);
        self.line = 0;
        self.read()
    }
}

impl Iterator for Lines {
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

pub(super) fn field_names(path: &Path, max_bytes: u64) -> Result<Vec<String>, ImportError> {
    let mut lines = Lines::open(path, max_bytes)?;
    let not_json = |message: String| ImportError::Unknown {
        file: path.display().to_string(),
        message,
    };
    let Some(text) = lines.line()? else {
        return Err(not_json("the file is empty".to_owned()));
    };
    if text.trim_ascii_start().first() == Some(&b'[') {
        return match lines.start_array(text)? {
            Some((_, record)) => Ok(record.fields.keys().cloned().collect()),
            None => Err(not_json("the array is empty".to_owned())),
        };
    }
    let fields: Result<BTreeMap<String, IgnoredAny>, _> = serde_json::from_slice(&text);
    match fields {
        Ok(fields) => Ok(fields.into_keys().collect()),
        Err(error) => Err(not_json(format!(
            "its first line is no object in JSON ({error})"
        ))),
    }
}
