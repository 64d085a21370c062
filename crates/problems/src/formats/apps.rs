//! APPS and TACO: Python problems whose tests are JSON in one field, `inputs` and `outputs`, with `fn_name` where a
//! function is called. They do not say which tests may be shown; see [`split_tests`].

use super::functions::{quantity, solutions, split_tests, with_starter};
use crate::import::{ImportError, ImportOptions, id_of};
use crate::records::{Convert, Converted, FieldError, Record, RecordRows, wrong};
use crate::{Checker, Numbers, Problem, TestCase, WhiteSpace};
use serde_json::{Map, Value};
use std::path::Path;

/// Seconds a test, as the data sets' own testers have it.
const TIME_LIMIT_S: f64 = 4.0;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    Apps,
    Taco,
}

pub(crate) fn rows(
    path: &Path,
    options: &ImportOptions,
    set: Set,
) -> Result<RecordRows<Apps>, ImportError> {
    let convert = Apps {
        set,
        time_limit_s: options.time_limit_s.unwrap_or(TIME_LIMIT_S),
        memory_limit_mb: options.memory_limit_mb,
    };
    RecordRows::open(path, options, |_| convert)
}

pub(crate) struct Apps {
    pub(super) set: Set,
    pub(super) time_limit_s: f64,
    pub(super) memory_limit_mb: u64,
}

impl Convert for Apps {
    fn convert(&self, row: u64, mut record: Record) -> Converted {
        let question = record.required("question")?;
        let starter = record.text("starter_code")?.unwrap_or_default();
        let mut meta = Map::new();
        let id = self.id(row, &mut record, &mut meta)?;
        let solutions = solutions(record.json("solutions")?, "solutions")?;
        let io = record.json("input_output")?;
        let function = io
            .as_ref()
            .and_then(|io| io.get("fn_name"))
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty())
            .map(str::to_owned);
        let tests = match io {
            Some(io) => tests(io, function.is_some())?,
            None => Vec::new(),
        };
        let statement = with_starter(&question, &starter);
        let (public_tests, private_tests) = split_tests(tests, &question, &mut meta);
        let mut limit = |field: &str| Ok(record.text(field)?.as_deref().and_then(quantity));
        let (time, memory): (Option<f64>, Option<f64>) =
            (limit("time_limit")?, limit("memory_limit")?);
        if time.is_none() {
            meta.insert("time_limit_from".to_owned(), "default".into());
        }
        record.keep(
            &mut meta,
            &[
                "difficulty",
                "source",
                "raw_tags",
                "tags",
                "skill_types",
                "date",
                "picture_num",
            ],
        );
        let name = record.text("name")?.unwrap_or_default();
        let checker = match function {
            Some(_) => Checker::Value {
                abs: 0.0,
                rel: 0.0,
                numbers_by_value: true,
            },
            // Their testers try many ways to find outputs equal; what is meant is this.
            None => Checker::Tokens {
                case_sensitive: true,
                white_space: WhiteSpace::Any,
                numbers: Some(Numbers {
                    abs: 1e-8,
                    rel: 1e-5,
                    integers_exact: true,
                }),
            },
        };
        Ok((
            Problem {
                name: if name.is_empty() { id.clone() } else { name },
                id,
                statement,
                time_limit_s: time.unwrap_or(self.time_limit_s),
                memory_limit_mb: memory.map_or(self.memory_limit_mb, |memory| memory.ceil() as u64),
                checker,
                function,
                public_tests,
                private_tests,
                generated_tests: Vec::new(),
                solutions,
                wrong_solutions: Vec::new(),
                meta,
            },
            Vec::new(),
        ))
    }
}

impl Apps {
    /// APPS numbers its problems; those of TACO are known by where they are from.
    fn id(
        &self,
        row: u64,
        record: &mut Record,
        meta: &mut Map<String, Value>,
    ) -> Result<String, FieldError> {
        let url = record.text("url")?.filter(|url| !url.trim().is_empty());
        let number = match record.take("problem_id").or_else(|| record.take("id")) {
            Some(Value::Number(number)) => Some(number.to_string()),
            Some(Value::String(number)) => Some(number),
            _ => None,
        };
        let id = match (self.set, &url, number) {
            (Set::Apps, _, Some(number)) => format!("apps-{}", id_of(&number)),
            (Set::Apps, _, None) => format!("apps-{}", row - 1),
            (Set::Taco, Some(url), _) => {
                let place = url
                    .split_once("://")
                    .map_or(url.as_str(), |(_, place)| place);
                format!("taco-{}", id_of(place))
            }
            (Set::Taco, None, _) => format!("taco-{}", row - 1),
        };
        if let Some(url) = url {
            meta.insert("url".to_owned(), url.into());
        }
        Ok(id)
    }
}

fn tests(mut io: Value, function: bool) -> Result<Vec<TestCase>, FieldError> {
    let mut list = |part: &str| match io.get_mut(part).map(Value::take) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => Ok(list),
        Some(other) => Err(wrong(format!("input_output.{part}"), "a list", &other)),
    };
    let (inputs, mut outputs) = (list("inputs")?, list("outputs")?);
    if inputs.len() != outputs.len() {
        let message = format!("has {} inputs but {} outputs", inputs.len(), outputs.len());
        return Err(FieldError::new("input_output", message));
    }
    // What functions return stands in lists of one.
    let wrapped = |value: &Value| value.as_array().is_some_and(|list| list.len() == 1);
    if function && outputs.iter().all(wrapped) {
        for output in &mut outputs {
            if let Some(inner) = output.get_mut(0).map(Value::take) {
                *output = inner;
            }
        }
    }
    let mut tests = Vec::with_capacity(inputs.len());
    for (at, (input, output)) in inputs.into_iter().zip(outputs).enumerate() {
        let field = |part: &str| format!("input_output.{part}[{at}]");
        let (input, output) = if function {
            (
                arguments(input).map_err(|what| FieldError::new(field("inputs"), what))?,
                output.to_string(),
            )
        } else {
            (
                lines(input, &field("inputs"))?,
                lines(output, &field("outputs"))?,
            )
        };
        tests.push(TestCase {
            name: String::new(),
            input,
            output,
        });
    }
    Ok(tests)
}

fn arguments(input: Value) -> Result<String, String> {
    let Value::Array(arguments) = &input else {
        return Err("must be a list of the arguments of the call".to_owned());
    };
    // The testers turn such keys into numbers, which JSON does not have as keys.
    let numbered = |value: &Value| {
        value.as_object().is_some_and(|fields| {
            !fields.is_empty() && fields.keys().all(|key| key.parse::<i64>().is_ok())
        })
    };
    if arguments.iter().any(numbered) {
        return Err(
            "holds a dictionary whose keys are numbers, which JSON does not have".to_owned(),
        );
    }
    Ok(input.to_string())
}

/// A text, or a list of its lines.
fn lines(value: Value, field: &str) -> Result<String, FieldError> {
    match value {
        Value::String(text) => Ok(text),
        Value::Array(lines) => {
            let mut text = String::new();
            for line in &lines {
                match line {
                    Value::String(line) => text.push_str(line),
                    Value::Number(number) => text.push_str(&number.to_string()),
                    other => return Err(wrong(field, "a text or a list of lines", other)),
                }
                text.push('\n');
            }
            Ok(text)
        }
        other => Err(wrong(field, "a text or a list of lines", &other)),
    }
}
