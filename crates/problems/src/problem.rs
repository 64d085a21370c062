//! What a problem is. Field names are those of the JSONL format (one problem a line).

use serde::{Deserialize, Serialize};

/// One test: what the program reads and what it must print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestCase {
    /// A name that is unique in its list.
    #[serde(default)]
    pub name: String,
    /// Standard input.
    pub input: String,
    /// The expected standard output.
    pub output: String,
}

/// How an output is compared with the expected one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Checker {
    /// Same lines after trailing white space is cut from each line and from the end.
    Lines,
    /// Same tokens on the same lines; amount of white space ignored.
    Tokens {
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
    /// A checking program that comes with the problem. Such problems can be read, not judged.
    Custom(serde_json::Map<String, serde_json::Value>),
}

fn yes() -> bool {
    true
}

/// A program that is known to be right or wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Solution {
    /// File name, for people.
    #[serde(default)]
    pub file: String,
    /// `python`.
    pub language: String,
    /// What kind of mistake it makes (wrong solutions only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The verdict it must get: `AC`, `WA`, `TLE`, `MLE`, `RTE`, or `NOT_AC` for any failure.
    pub expected: String,
    /// The source text.
    pub code: String,
}

/// A programming problem: read stdin, write stdout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// Unique in its set.
    pub id: String,
    /// Title, for people.
    #[serde(default)]
    pub name: String,
    /// What the model is told.
    pub statement: String,
    /// CPU time a test, in seconds.
    pub time_limit_s: f64,
    /// Memory, in MiB.
    pub memory_limit_mb: u64,
    /// How outputs are compared.
    pub checker: Checker,
    /// Tests whose failures are shown to the model.
    pub public_tests: Vec<TestCase>,
    /// Hidden tests that decide the reward.
    pub private_tests: Vec<TestCase>,
    /// Programs that must be accepted.
    #[serde(default)]
    pub solutions: Vec<Solution>,
    /// Programs that must fail.
    #[serde(default)]
    pub wrong_solutions: Vec<Solution>,
    /// What the generator knows beyond the statement (hidden choices …); never shown to a model.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub meta: serde_json::Map<String, serde_json::Value>,
}
