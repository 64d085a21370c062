//! Parquet columns that are filled value by value and written group by group.

use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;

/// The values of a leaf column.
enum Values {
    Text(Vec<ByteArray>),
    Int(Vec<i64>),
    Float(Vec<f32>),
    Bool(Vec<bool>),
}

/// A leaf column: a value or a list of values a row, in optional groups.
pub(super) struct Column {
    values: Values,
    /// The level of a value that is there.
    filled: i16,
    definitions: Vec<i16>,
    /// For lists.
    repetitions: Option<Vec<i16>>,
}

impl Column {
    fn new(values: Values, filled: i16, list: bool) -> Self {
        Self {
            values,
            filled,
            definitions: Vec::new(),
            repetitions: list.then(Vec::new),
        }
    }

    pub(super) fn text(filled: i16) -> Self {
        Self::new(Values::Text(Vec::new()), filled, false)
    }

    pub(super) fn texts(filled: i16) -> Self {
        Self::new(Values::Text(Vec::new()), filled, true)
    }

    pub(super) fn int(filled: i16) -> Self {
        Self::new(Values::Int(Vec::new()), filled, false)
    }

    pub(super) fn ints(filled: i16) -> Self {
        Self::new(Values::Int(Vec::new()), filled, true)
    }

    pub(super) fn float() -> Self {
        Self::new(Values::Float(Vec::new()), 1, false)
    }

    pub(super) fn bool() -> Self {
        Self::new(Values::Bool(Vec::new()), 1, false)
    }

    /// The value of a row, or none.
    pub(super) fn put(&mut self, value: Option<Cell<'_>>) {
        self.definitions
            .push(if value.is_some() { self.filled } else { 0 });
        self.add(value);
    }

    /// The list of a row; an empty one is there all the same.
    pub(super) fn put_list<'v>(&mut self, items: impl Iterator<Item = Cell<'v>>) {
        let mut first = true;
        for item in items {
            self.mark(self.filled, i16::from(!first));
            self.add(Some(item));
            first = false;
        }
        if first {
            // One level for the element, one for the repetition above it.
            self.mark(self.filled - 2, 0);
        }
    }

    fn mark(&mut self, definition: i16, repetition: i16) {
        self.definitions.push(definition);
        if let Some(repetitions) = &mut self.repetitions {
            repetitions.push(repetition);
        }
    }

    fn add(&mut self, value: Option<Cell<'_>>) {
        match (&mut self.values, value) {
            (Values::Text(all), Some(Cell::Text(text))) => all.push(ByteArray::from(text)),
            (Values::Int(all), Some(Cell::Int(value))) => all.push(value),
            (Values::Float(all), Some(Cell::Float(value))) => all.push(value),
            (Values::Bool(all), Some(Cell::Bool(value))) => all.push(value),
            _ => {}
        }
    }

    /// Writes what is there and empties the column.
    pub(super) fn write(&mut self, writer: &mut ColumnWriter<'_>) -> parquet::errors::Result<()> {
        let definitions = Some(self.definitions.as_slice());
        let repetitions = self.repetitions.as_deref();
        match (&mut self.values, writer) {
            (Values::Text(values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                writer.write_batch(values, definitions, repetitions)?;
                values.clear();
            }
            (Values::Int(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(values, definitions, repetitions)?;
                values.clear();
            }
            (Values::Float(values), ColumnWriter::FloatColumnWriter(writer)) => {
                writer.write_batch(values, definitions, repetitions)?;
                values.clear();
            }
            (Values::Bool(values), ColumnWriter::BoolColumnWriter(writer)) => {
                writer.write_batch(values, definitions, repetitions)?;
                values.clear();
            }
            _ => {
                return Err(parquet::errors::ParquetError::General(
                    "a column is of another type".to_owned(),
                ));
            }
        }
        self.definitions.clear();
        if let Some(repetitions) = &mut self.repetitions {
            repetitions.clear();
        }
        Ok(())
    }
}

/// A value for a column of its type.
pub(super) enum Cell<'v> {
    Text(&'v str),
    Int(i64),
    Float(f32),
    Bool(bool),
}
