use super::*;
use crate::{CodeContestsWriter, ImportOptions, ProblemSet, import};
use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

fn table(path: &Path, most: u64) -> Result<Vec<Value>, ImportError> {
    Table::open(path, most)?
        .map(|read| read.map(|(_, record)| Value::Object(record.fields)))
        .collect()
}

/// Writes a group of rows; `columns` fills the writer of each column.
fn write(path: &Path, schema: &str, columns: &[&dyn Fn(&mut ColumnWriter<'_>)]) {
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let properties = Arc::new(
        WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .build(),
    );
    let file = std::fs::File::create(path).expect("a file");
    let mut writer = SerializedFileWriter::new(file, schema, properties).expect("a writer");
    let mut group = writer.next_row_group().expect("a group");
    for fill in columns {
        let mut column = group.next_column().expect("a column").expect("one more");
        fill(column.untyped());
        column.close().expect("closed");
    }
    group.close().expect("closed");
    writer.close().expect("closed");
}

macro_rules! column {
    ($kind:ident, $values:expr, $definitions:expr, $repetitions:expr) => {
        &|writer: &mut ColumnWriter<'_>| match writer {
            ColumnWriter::$kind(writer) => {
                writer
                    .write_batch(&$values, $definitions, $repetitions)
                    .expect("written");
            }
            _ => panic!("another type"),
        }
    };
}

#[test]
fn every_width_and_every_name_of_lists_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.parquet");
    let schema = "message s {
        required int32 small; optional int64 large; required float half; optional double whole; required boolean truth;
        optional group items (LIST) { repeated group bag { optional int32 array_element; } }
        optional group pairs (LIST) { repeated group list { optional group element { optional binary name (STRING); } } }
        repeated int32 bare;
        optional group deep (LIST) { repeated group list { optional group element (LIST) { repeated group list { optional int32 element; } } } }
        required fixed_len_byte_array(2) fixed;
        optional group inner { optional int32 a; }
    }";
    let fixed = vec![
        FixedLenByteArray::from(ByteArray::from("ab")),
        FixedLenByteArray::from(ByteArray::from("cd")),
    ];
    write(
        &file,
        schema,
        &[
            column!(Int32ColumnWriter, [1, -2], None, None),
            column!(Int64ColumnWriter, [1 << 40], Some(&[1, 0]), None),
            column!(FloatColumnWriter, [0.5, 1.0], None, None),
            column!(DoubleColumnWriter, [2.5], Some(&[0, 1]), None),
            column!(BoolColumnWriter, [true, false], None, None),
            // [5, null], then no list.
            column!(Int32ColumnWriter, [5], Some(&[3, 2, 0]), Some(&[0, 1, 0])),
            // [{name: "a"}], then [].
            column!(
                ByteArrayColumnWriter,
                [ByteArray::from("a")],
                Some(&[4, 1]),
                Some(&[0, 0])
            ),
            column!(
                Int32ColumnWriter,
                [7, 8],
                Some(&[1, 1, 0]),
                Some(&[0, 1, 0])
            ),
            column!(
                Int32ColumnWriter,
                [9, 9],
                Some(&[5, 5, 0]),
                Some(&[0, 1, 0])
            ),
            column!(FixedLenByteArrayColumnWriter, fixed, None, None),
            column!(Int32ColumnWriter, [3], Some(&[2, 0]), None),
        ],
    );
    let rows = table(&file, 1 << 20).expect("rows");
    assert_eq!(
        rows,
        [
            json!({"small": 1, "large": 1_i64 << 40, "half": 0.5, "whole": null, "truth": true, "items": [5, null],
                "pairs": {"name": ["a"]}, "bare": [7, 8], "deep": null, "fixed": null, "inner": {"a": 3}}),
            json!({"small": -2, "large": null, "half": 1.0, "whole": 2.5, "truth": false, "items": [],
                "pairs": {"name": []}, "bare": [], "deep": null, "fixed": null, "inner": {"a": null}}),
        ]
    );
}

#[test]
fn a_bad_value_spoils_its_row_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.parquet");
    let bad = [
        ByteArray::from("a"),
        ByteArray::from(vec![0xff]),
        ByteArray::from("c"),
    ];
    write(
        &file,
        "message s { required binary a; required int32 b; }",
        &[
            column!(ByteArrayColumnWriter, bad, None, None),
            column!(Int32ColumnWriter, [1, 2, 3], None, None),
        ],
    );
    let rows: Vec<_> = Table::open(&file, 1 << 20).expect("a table").collect();
    assert!(rows[0].is_ok());
    let error = rows[1]
        .as_ref()
        .map(drop)
        .expect_err("no UTF-8")
        .to_string();
    assert!(
        error.contains("row 2, field `a`") && error.contains("UTF-8"),
        "{error}"
    );
    assert_eq!(rows[2].as_ref().expect("a row").1.fields["b"], 3);
}

#[test]
fn a_page_that_would_swell_is_refused_before_it_is_unpacked() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.parquet");
    let large = [ByteArray::from(vec![b'0'; 8 << 20])];
    write(
        &file,
        "message s { required binary a; }",
        &[column!(ByteArrayColumnWriter, large, None, None)],
    );
    assert!(std::fs::metadata(&file).expect("a file").len() < 1 << 20);
    let error = table(&file, 1 << 20).expect_err("too large").to_string();
    assert!(
        error.contains("a page unpacks to") && error.contains("1048576"),
        "{error}"
    );
    assert_eq!(table(&file, 16 << 20).expect("a row").len(), 1);
}

#[test]
fn lines_and_arrays_of_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.json");
    let read = |text: &str| -> Vec<Result<String, String>> {
        std::fs::write(&file, text).expect("written");
        let lines = Lines::open(&file, 64).expect("opened");
        lines
            .map(|read| {
                read.map(|(place, record)| format!("{place}: {}", record.fields.len()))
                    .map_err(|e| e.to_string())
            })
            .collect()
    };
    let text = |text: &str| Ok(text.to_owned());
    assert_eq!(
        read("{\"a\": 1}\n\n{}\n"),
        [text(", line 1: 1"), text(", line 3: 0")]
    );
    assert_eq!(
        read("[{\"a\": 1},\n {}]"),
        [text(", row 1: 1"), text(", row 2: 0")]
    );
    // What is wrong with one line leaves the next.
    let rows = read(&format!(
        "no\n[1]\n{{\"a\": \"{}\"}}\n{{}}",
        "x".repeat(100)
    ));
    assert_eq!(rows.len(), 4);
    for (row, words) in rows
        .iter()
        .zip(["line 1", "line 2", "longer than 64 bytes"])
    {
        assert!(
            row.as_ref().expect_err("an error").contains(words),
            "{row:?}"
        );
    }
    assert_eq!(rows[3], text(", line 4: 0"));
    assert!(
        read(&format!("[{}]", "1, ".repeat(60)))[0]
            .as_ref()
            .expect_err("long")
            .contains("64 bytes")
    );
    assert!(
        read("[1, 2")[0]
            .as_ref()
            .expect_err("cut off")
            .contains("no array of JSON")
    );
    assert!(
        read("[1]")[0]
            .as_ref()
            .expect_err("no object")
            .contains("row 1")
    );
}

#[test]
fn fields_say_what_they_should_be() {
    let record = || {
        let Value::Object(fields) = json!({"text": "a", "number": "2.5", "list": [1], "json": "[1]", "bad": "{", "none": null})
        else {
            panic!("an object")
        };
        Record::new(fields)
    };
    assert_eq!(record().text("text"), Ok(Some("a".into())));
    assert_eq!(record().text("none"), Ok(None));
    assert_eq!(record().number("number"), Ok(Some(2.5)));
    assert_eq!(record().list("list"), Ok(vec![json!(1)]));
    assert_eq!(record().json("json"), Ok(Some(json!([1]))));
    assert!(!record().has("none") && record().has("bad"));
    for error in [
        record().text("list").map(drop),
        record().required("none").map(drop),
        record().number("text").map(drop),
        record().list("text").map(drop),
        record().json("bad").map(drop),
    ] {
        let error = error.expect_err("an error");
        assert!(!error.field.is_empty() && !error.message.is_empty());
    }
}

/// A file of five problems.
fn example() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.parquet");
    let mut writer = CodeContestsWriter::create(&file).expect("a file");
    let set = ProblemSet::open("basics").expect("bundled");
    for problem in set.split("all").expect("problems").iter().take(5) {
        writer.write(problem).expect("written");
    }
    writer.finish().expect("finished");
    let bytes = std::fs::read(&file).expect("read");
    (folder, file, bytes)
}

#[test]
fn a_damaged_table_is_an_error_or_problems() {
    // The library that reads Parquet panics on some of these; that is caught, and its message need not be seen.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (_folder, file, whole) = example();
    let options = ImportOptions {
        skip_bad: true,
        max_problem_bytes: 1 << 20,
        ..ImportOptions::default()
    };
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut read = 0;
    let mut outcomes = Vec::new();
    for round in 0..600 {
        let mut bytes = whole.clone();
        for _ in 0..=round % 3 {
            // The description of the columns at the end is as worth damaging as all the rest.
            let at = if round % 2 == 0 {
                bytes.len() - 1 - random(bytes.len().min(3000))
            } else {
                random(bytes.len())
            };
            bytes[at] = random(256) as u8;
        }
        if round % 10 == 0 {
            bytes.truncate(random(whole.len()));
        }
        std::fs::write(&file, bytes).expect("written");
        let found = import(&file, &options, &mut |_| Ok(()), &mut |_| {});
        read += usize::from(found.is_ok());
        outcomes.push(found.is_ok());
    }
    std::panic::set_hook(hook);
    assert!(read > 0 && read < outcomes.len(), "{read}");
}

proptest! {
    #[test]
    fn any_lines_are_records_or_errors(text in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"{}[]\":,1a\n ".to_vec())], 0..120)) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x.jsonl");
        std::fs::write(&file, &text).expect("written");
        let count = Lines::open(&file, 50).expect("opened").count();
        prop_assert!(count <= text.len() + 1);
        let _ = field_names(&file, 50);
    }

    #[test]
    fn any_page_header_is_sizes_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x");
        std::fs::write(&file, &bytes).expect("written");
        let file = std::fs::File::open(&file).expect("opened");
        let _ = pages::check(&file, 0, bytes.len() as u64, 1 << 20);
    }
}
