//! Policies that look their answers up: in the problem's stored programs, in its public tests, or in a file.
//!
//! They show what an evaluation is worth without a model: stored accepted programs must score 1, stored wrong ones and
//! programs that have learned the public outputs by heart must score 0. None of them looks at the feedback.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rlef_problems::{Problem, Solution};
use serde::Deserialize;
use serde_json::Value;

use crate::{Answer, Ask, Policy, PolicyError, Reply, Session};

/// Where the answers come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Script {
    /// One of the problem's accepted Python programs, drawn by the answer's seed.
    Accepted,
    /// One of its wrong Python programs, likewise.
    Incorrect,
    /// A program that prints (or returns) the expected outputs of the public tests and nothing else.
    Memorised,
    /// Answers that were written down, by problem id; the first is that of the first turn, the last one is repeated.
    Answers(BTreeMap<String, Vec<String>>),
}

/// Answers as they stand in a file, one problem a line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    problem: String,
    answers: Vec<String>,
}

impl Script {
    /// Reads answers: a JSON object a line, `{"problem": ID, "answers": [TEXT, …]}`, with the texts as a model would give
    /// them (the program in a fenced block).
    ///
    /// # Errors
    /// What is wrong, with the number of the line.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut known = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let wrong = |what: String| format!("line {}: {what}", at + 1);
            let read: Line = serde_json::from_str(line).map_err(|e| wrong(e.to_string()))?;
            if read.answers.is_empty() {
                return Err(wrong("`answers` is empty".into()));
            }
            if known.insert(read.problem.clone(), read.answers).is_some() {
                return Err(wrong(format!("problem {} is there twice", read.problem)));
            }
        }
        match known.is_empty() {
            true => Err("there are no answers in it".into()),
            false => Ok(Self::Answers(known)),
        }
    }

    /// The answer on a turn (from 0).
    ///
    /// # Errors
    /// [`PolicyError::NoAnswer`] if there is none for this problem.
    pub fn answer(
        &self,
        problem: &Problem,
        turn: usize,
        seed: [u8; 32],
    ) -> Result<String, PolicyError> {
        let none = |why: &str| PolicyError::NoAnswer {
            problem: problem.id.clone(),
            why: why.to_owned(),
        };
        let code = match self {
            Self::Accepted => drawn(&problem.solutions, seed)
                .ok_or_else(|| none("it has no accepted program in Python"))?,
            Self::Incorrect => drawn(&problem.wrong_solutions, seed)
                .ok_or_else(|| none("it has no wrong program in Python"))?,
            Self::Memorised => memorised(problem),
            Self::Answers(known) => {
                let answers = known.get(&problem.id).map(Vec::as_slice);
                let answers = answers.ok_or_else(|| none("the file has none"))?;
                let answer = answers.get(turn).or(answers.last());
                return answer.cloned().ok_or_else(|| none("the file has none"));
            }
        };
        Ok(format!("```python\n{}\n```", code.trim_end()))
    }
}

fn drawn(programs: &[Solution], seed: [u8; 32]) -> Option<String> {
    let is_python = |s: &&Solution| {
        let language = s.language.to_ascii_lowercase();
        ["python", "python3", "py"].contains(&language.as_str())
    };
    let programs: Vec<&Solution> = programs.iter().filter(is_python).collect();
    if programs.is_empty() {
        return None;
    }
    let at = ChaCha8Rng::from_seed(seed).random_range(0..programs.len());
    programs.get(at).map(|program| program.code.clone())
}

/// A program that knows the public tests by heart.
fn memorised(problem: &Problem) -> String {
    let pairs = problem.public_tests.iter();
    let pairs: Vec<Value> = pairs
        .map(|test| Value::from(vec![test.input.as_str(), test.output.as_str()]))
        .collect();
    // JSON in JSON: a string that Python's parser reads as it was written.
    let known = Value::from(Value::from(pairs).to_string());
    let Some(function) = &problem.function else {
        return format!(
            "import json, sys\n\
             known = dict(json.loads({known}))\n\
             sys.stdout.write(known.get(sys.stdin.read(), \"\"))\n"
        );
    };
    let look =
        "return next((json.loads(r) for a, r in known if json.loads(a) == list(arguments)), None)";
    let start = format!("import json\nknown = json.loads({known})\n");
    let mut parts: Vec<&str> = function.split('.').collect();
    let name = parts.pop().unwrap_or_default();
    match parts.first() {
        None => format!("{start}def {name}(*arguments):\n    {look}\n"),
        Some(class) => {
            format!("{start}class {class}:\n    def {name}(self, *arguments):\n        {look}\n")
        }
    }
}

/// A policy that answers by a [`Script`].
#[derive(Debug, Clone)]
pub struct ScriptedPolicy(pub Script);

impl Policy for ScriptedPolicy {
    fn open(&self) -> Box<dyn Session + '_> {
        Box::new(self)
    }
}

impl Session for &ScriptedPolicy {
    fn answer(&mut self, asks: &[Ask]) -> Result<Vec<Reply>, PolicyError> {
        let reply = |ask: &Ask| {
            Ok(Reply::Answer(Answer {
                text: self.0.answer(ask.problem, ask.turn, ask.seed)?,
                prompt: vec![],
                tokens: vec![],
                version: 0,
                finished: true,
            }))
        };
        asks.iter().map(reply).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_line_by_line() {
        let text = "{\"problem\": \"a\", \"answers\": [\"x\", \"y\"]}\n\n{\"problem\": \"b\", \"answers\": [\"z\"]}\n";
        let Ok(Script::Answers(known)) = Script::read(text) else {
            panic!("right");
        };
        assert_eq!(known["a"], ["x", "y"]);
        for (wrong, told) in [
            ("", "no answers"),
            (
                "{\"problem\": \"a\", \"answers\": []}",
                "line 1: `answers` is empty",
            ),
            ("\n{\"problem\": \"a\"}", "line 2: missing field `answers`"),
            (
                "{\"problem\": \"a\", \"answers\": [\"x\"], \"k\": 1}",
                "unknown field `k`",
            ),
            (
                "{\"problem\": \"a\", \"answers\": [\"x\"]}\n{\"problem\": \"a\", \"answers\": [\"x\"]}",
                "line 2: problem a is there twice",
            ),
        ] {
            let said = Script::read(wrong).unwrap_err();
            assert!(said.contains(told), "{said}");
        }
    }
}
