//! What a problem is. Field names are those of the JSONL format (one problem a line).

use crate::Validator;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One test: what the program reads and what it must print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestCase {
    /// A name that is unique in its list.
    #[serde(default)]
    pub name: String,
    /// Standard input; for a problem with a function, its arguments as a JSON array.
    pub input: String,
    /// The expected standard output; for a problem with a function, what it must return, as JSON.
    pub output: String,
}

/// How an output is compared with the expected one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Checker {
    /// Same lines after trailing white space is cut from each line and from the end.
    Lines,
    /// Same bytes.
    Exact,
    /// Same tokens on the same lines; amount of white space ignored.
    Tokens {
        /// Whether letter case matters.
        #[serde(default = "yes")]
        case_sensitive: bool,
        /// How much of the white space between tokens matters.
        #[serde(default, skip_serializing_if = "WhiteSpace::is_default")]
        white_space: WhiteSpace,
        /// How far numbers may differ; none: they are words like others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        numbers: Option<Numbers>,
    },
    /// Same lines in any order; the amount of white space in them and empty lines are ignored.
    AnyOrder {
        /// Whether letter case matters.
        #[serde(default = "yes")]
        case_sensitive: bool,
    },
    /// As tokens, but numbers may differ.
    Float {
        /// Largest absolute difference.
        #[serde(default)]
        abs: f64,
        /// Largest relative difference.
        #[serde(default)]
        rel: f64,
        /// Whether letter case matters for tokens that are not numbers.
        #[serde(default = "yes")]
        case_sensitive: bool,
    },
    /// The value that a function returns, by type: a list or tuple for an array, a dictionary with string keys for an
    /// object, never a boolean for a number. Only for problems with a function, which have no other.
    Value {
        /// Largest absolute difference of floating-point numbers.
        #[serde(default)]
        abs: f64,
        /// Largest relative difference of floating-point numbers.
        #[serde(default)]
        rel: f64,
        /// Whether 2.0 is as good as 2, as for Python's `==`.
        #[serde(default = "yes")]
        numbers_by_value: bool,
    },
    /// An output validator: a program that comes with the problem and decides on each output.
    Validator(Validator),
    /// Tests of some groups have rules of their own: one of the above for each, but for `value` and `validator`.
    ByGroup {
        /// For all other tests.
        otherwise: Box<Checker>,
        /// The key is the start of their names up to a `/` (`secret/group1`), or one whole name; the longest that fits
        /// counts.
        groups: BTreeMap<String, Checker>,
    },
    /// A checking program of another kind that comes with the problem. Such problems can be read, not judged.
    Custom(Map<String, Value>),
}

/// What the white space between tokens means to [`Checker::Tokens`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhiteSpace {
    /// Line breaks must be at the same places (empty lines aside); otherwise it only separates.
    #[default]
    Lines,
    /// It only separates; line breaks are like blanks.
    Any,
    /// It must be the same, byte for byte.
    Exact,
}

impl WhiteSpace {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How far the numbers among tokens may differ: within `abs`, or within `rel` × |expected|.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Numbers {
    /// Largest absolute difference.
    #[serde(default)]
    pub abs: f64,
    /// Largest relative difference.
    #[serde(default)]
    pub rel: f64,
    /// Whether two whole numbers (no point, no exponent) must have the same value whatever the tolerances.
    #[serde(default)]
    pub integers_exact: bool,
}

fn yes() -> bool {
    true
}

/// A program that is known to be right or wrong. Other fields are not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Solution {
    /// File name, for people.
    #[serde(default)]
    pub file: String,
    /// `python` (or `python3`, the same), `python2`, `cpp`, `c`, `java`, `rust`, `go`, `javascript` …
    pub language: String,
    /// What kind of mistake it makes (wrong solutions only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The verdict it must get: `AC`, `WA`, `TLE`, `MLE`, `RTE`, `OLE`, `CE`, or `NOT_AC` for any failure.
    pub expected: String,
    /// The source text.
    pub code: String,
}

/// A programming problem: read stdin, write stdout; or a function to be called.
///
/// A field in a file that is none of these is kept in `meta`; one that is nearly the name of one of these is an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Line")]
pub struct Problem {
    /// Unique in its set.
    pub id: String,
    /// Title, for people.
    pub name: String,
    /// What the model is told.
    pub statement: String,
    /// CPU time a test, in seconds.
    pub time_limit_s: f64,
    /// Memory, in MiB.
    pub memory_limit_mb: u64,
    /// How outputs are compared.
    pub checker: Checker,
    /// The function that tests call, as in `solve` or `Solution.solve`; none: the program reads stdin and writes
    /// stdout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Tests whose failures are shown to the model.
    pub public_tests: Vec<TestCase>,
    /// Hidden tests that decide the reward.
    pub private_tests: Vec<TestCase>,
    /// Further hidden tests that were made by a program from others, and whose expected outputs are those of accepted
    /// solutions. Kept apart, as they are less sure; often empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub generated_tests: Vec<TestCase>,
    /// Programs that must be accepted.
    pub solutions: Vec<Solution>,
    /// Programs that must fail.
    pub wrong_solutions: Vec<Solution>,
    /// What the generator knows beyond the statement (hidden choices …); never shown to a model.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

/// The version of the format that this code writes, and the latest that it reads. Lines of version 1 do not name it.
pub const FORMAT_VERSION: u64 = 1;

/// A problem as it stands in a file.
#[derive(Deserialize)]
struct Line {
    #[serde(default = "first_version")]
    version: u64,
    id: String,
    #[serde(default)]
    name: String,
    statement: String,
    time_limit_s: f64,
    memory_limit_mb: u64,
    checker: Checker,
    #[serde(default)]
    function: Option<String>,
    public_tests: Vec<TestCase>,
    private_tests: Vec<TestCase>,
    #[serde(default)]
    generated_tests: Vec<TestCase>,
    #[serde(default)]
    solutions: Vec<Solution>,
    #[serde(default)]
    wrong_solutions: Vec<Solution>,
    #[serde(default)]
    meta: Map<String, Value>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

fn first_version() -> u64 {
    1
}

/// The fields that may be left out: a slip in the name of another one is noticed anyway.
const OPTIONAL: [&str; 5] = [
    "version",
    "function",
    "generated_tests",
    "solutions",
    "wrong_solutions",
];

impl TryFrom<Line> for Problem {
    type Error = String;

    fn try_from(line: Line) -> Result<Self, String> {
        if !(1..=FORMAT_VERSION).contains(&line.version) {
            return Err(format!(
                "`version` is {}; this program reads up to {FORMAT_VERSION}, a later one may read this file",
                line.version
            ));
        }
        let mut meta = line.meta;
        for (key, value) in line.others {
            if let Some(known) = OPTIONAL
                .iter()
                .find(|known| strsim::damerau_levenshtein(known, &key) <= 2)
            {
                return Err(format!("unknown field `{key}`; is `{known}` meant?"));
            }
            if meta.contains_key(&key) {
                return Err(format!(
                    "`{key}` is a field of the problem and of its `meta`; keep one of them"
                ));
            }
            meta.insert(key, value);
        }
        Ok(Self {
            id: line.id,
            name: line.name,
            statement: line.statement,
            time_limit_s: line.time_limit_s,
            memory_limit_mb: line.memory_limit_mb,
            checker: line.checker,
            function: line.function,
            public_tests: line.public_tests,
            private_tests: line.private_tests,
            generated_tests: line.generated_tests,
            solutions: line.solutions,
            wrong_solutions: line.wrong_solutions,
            meta,
        })
    }
}
