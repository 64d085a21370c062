//! LiveCodeBench's `code_generation_lite`: problems that print and problems with a function. Private tests are JSON, or
//! JSON in a pickle that is compressed; the pickle is read as data (see [`pickle`]), never executed.

use super::functions::with_starter;
use super::pickle;
use crate::import::{ImportError, ImportOptions, id_of};
use crate::records::{Convert, Converted, FieldError, Record, RecordRows, wrong};
use crate::{Checker, Numbers, Problem, TestCase, WhiteSpace};
use base64::Engine as _;
use serde_json::{Map, Value};
use std::io::Read as _;
use std::path::Path;

/// CPU seconds a test, as the benchmark's own runner has it.
const TIME_LIMIT_S: f64 = 6.0;

pub(crate) fn rows(
    path: &Path,
    options: &ImportOptions,
) -> Result<RecordRows<LiveCodeBench>, ImportError> {
    let convert = LiveCodeBench {
        time_limit_s: options.time_limit_s.unwrap_or(TIME_LIMIT_S),
        memory_limit_mb: options.memory_limit_mb,
        most: options.max_problem_bytes,
    };
    RecordRows::open(path, options, |_| convert)
}

pub(crate) struct LiveCodeBench {
    time_limit_s: f64,
    memory_limit_mb: u64,
    /// Bytes that the tests of a problem may unpack to.
    most: u64,
}

/// Which of the two kinds of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdin,
    Functional,
}

impl Convert for LiveCodeBench {
    fn convert(&self, _row: u64, mut record: Record) -> Converted {
        let title = record.text("question_title")?.unwrap_or_default();
        let statement = record.required("question_content")?;
        let id = match record.take("question_id") {
            Some(Value::String(id)) if !id.trim().is_empty() => id,
            Some(Value::Number(id)) => id.to_string(),
            _ => {
                return Err(FieldError::new(
                    "question_id",
                    "is missing; this format needs it",
                ));
            }
        };
        let mut kind = None;
        let public = record.json("public_test_cases")?;
        let public_tests = tests("public", "public_test_cases", public, &mut kind)?;
        let private = self.private(&mut record)?;
        let private_tests = tests("private", "private_test_cases", private, &mut kind)?;
        let starter = record.text("starter_code")?.unwrap_or_default();
        let metadata = record.json("metadata")?.unwrap_or_default();
        let mut meta = Map::new();
        record.keep(
            &mut meta,
            &["platform", "contest_id", "contest_date", "difficulty"],
        );
        let function = match kind {
            Some(Kind::Functional) => {
                let name = metadata.get("func_name").and_then(Value::as_str);
                let missing = || {
                    FieldError::new(
                        "metadata",
                        "has no `func_name`, and the tests call a function",
                    )
                };
                Some(name.ok_or_else(missing)?.to_owned())
            }
            _ => None,
        };
        let checker = match function {
            Some(_) => Checker::Value {
                abs: 0.0,
                rel: 0.0,
                numbers_by_value: true,
            },
            // Lines are compared; numbers by their exact decimal value.
            None => Checker::Tokens {
                case_sensitive: true,
                white_space: WhiteSpace::Lines,
                numbers: Some(Numbers {
                    abs: 0.0,
                    rel: 0.0,
                    integers_exact: false,
                }),
            },
        };
        Ok((
            Problem {
                id: id_of(&id),
                name: title,
                statement: with_starter(&statement, &starter),
                time_limit_s: self.time_limit_s,
                memory_limit_mb: self.memory_limit_mb,
                checker,
                function,
                public_tests,
                private_tests,
                generated_tests: Vec::new(),
                solutions: Vec::new(),
                wrong_solutions: Vec::new(),
                meta,
            },
            Vec::new(),
        ))
    }
}

impl LiveCodeBench {
    fn private(&self, record: &mut Record) -> Result<Option<Value>, FieldError> {
        const FIELD: &str = "private_test_cases";
        let text = match record.take(FIELD) {
            Some(Value::String(text)) => text,
            other => return Ok(other),
        };
        let wrong = |message: String| FieldError::new(FIELD, message);
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let json = if text.starts_with('[') {
            text.to_owned()
        } else {
            let packed = base64::engine::general_purpose::STANDARD.decode(text);
            let packed =
                packed.map_err(|error| wrong(format!("is neither JSON nor base64: {error}")))?;
            let mut pickle = Vec::new();
            let unpacked = flate2::read::ZlibDecoder::new(packed.as_slice())
                .take(self.most.saturating_add(1))
                .read_to_end(&mut pickle);
            unpacked.map_err(|error| wrong(format!("does not unpack: {error}")))?;
            if pickle.len() as u64 > self.most {
                return Err(wrong(format!(
                    "unpacks to more than {} bytes, the limit for one problem",
                    self.most
                )));
            }
            pickle::text(&pickle)
                .map_err(|error| wrong(format!("is no pickle of one text: {error}")))?
        };
        serde_json::from_str(&json)
            .map(Some)
            .map_err(|error| wrong(format!("is no JSON: {error}")))
    }
}

fn tests(
    name: &str,
    field: &str,
    value: Option<Value>,
    kind: &mut Option<Kind>,
) -> Result<Vec<TestCase>, FieldError> {
    let list = match value {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(wrong(field, "a list of tests", &other)),
    };
    let mut tests = Vec::with_capacity(list.len());
    for (at, mut test) in list.into_iter().enumerate() {
        let mut part = |part: &str| match test.get_mut(part).map(Value::take) {
            Some(Value::String(text)) => Ok(text),
            other => Err(wrong(
                format!("{field}[{at}].{part}"),
                "a text",
                &other.unwrap_or_default(),
            )),
        };
        let (input, output, of) = (part("input")?, part("output")?, part("testtype")?);
        let of = match of.as_str() {
            "stdin" => Kind::Stdin,
            "functional" => Kind::Functional,
            other => {
                let message = format!("is `{other}`; there are `stdin` and `functional`");
                return Err(FieldError::new(format!("{field}[{at}].testtype"), message));
            }
        };
        if *kind.get_or_insert(of) != of {
            let message = "is another than that of the test before; a problem has one kind";
            return Err(FieldError::new(format!("{field}[{at}].testtype"), message));
        }
        let input = match of {
            Kind::Stdin => input,
            // An argument a line.
            Kind::Functional => arguments(&input)
                .map_err(|error| FieldError::new(format!("{field}[{at}].input"), error))?,
        };
        tests.push(TestCase {
            name: format!("{name}/{}", at + 1),
            input,
            output,
        });
    }
    Ok(tests)
}

/// Lines of JSON as one array.
fn arguments(input: &str) -> Result<String, String> {
    let mut all = String::with_capacity(input.len() + 2);
    for line in input.lines().filter(|line| !line.trim().is_empty()) {
        let read: Result<serde::de::IgnoredAny, _> = serde_json::from_str(line);
        read.map_err(|error| format!("must be an argument in JSON a line: {error}"))?;
        all.push_str(if all.is_empty() { "[" } else { ", " });
        all.push_str(line.trim());
    }
    if all.is_empty() {
        all.push('[');
    }
    all.push(']');
    Ok(all)
}
