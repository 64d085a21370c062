//! The micro family: short generated problems whose statement leaves three choices open on purpose (order, separator,
//! brackets …), so that a first answer can only guess and the feedback of the public tests tells. Everything comes from
//! a seed; nothing is read and nothing is run. Whether a program gets its verdict is for the judge to say, not for this
//! module.
//!
//! A problem is a *wording* (its statement) with one *combination* of the hidden choices. All combinations of a wording
//! are in the same split, so the splits share neither a problem nor a statement.

mod config;
mod draw;
mod tasks;
#[cfg(test)]
mod tests;
mod wordings;

pub use config::{MicroConfig, MicroError};
pub use tasks::TaskName;

use crate::{Checker, Problem, Solution, TestCase};
use draw::Draw;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use tasks::{Ask, Task, Variant};
use wordings::{Split, Wording};

/// Draws of the tests of one problem that are tried until they tell all combinations apart. The default tables need
/// fewer than ten.
const TRIES: u32 = 1000;

/// A generated family, in its splits. The order within a split is shuffled, so that a part of it is a fair sample.
#[derive(Debug, Clone, PartialEq)]
pub struct MicroSet {
    /// To learn from.
    pub train: Vec<Problem>,
    /// To watch while learning.
    pub valid: Vec<Problem>,
    /// To report on.
    pub test: Vec<Problem>,
}

/// The default family of `seed`: the same problems on every machine.
///
/// # Errors
/// Only where no tests or splits are found, which the default tables make all but impossible.
pub fn generate(seed: u64) -> Result<MicroSet, MicroError> {
    generate_with(&MicroConfig::default(), seed)
}

/// The family of a configuration and a seed.
///
/// # Errors
/// A setting that makes no sense, or one with which no splits or tests can be found.
pub fn generate_with(config: &MicroConfig, seed: u64) -> Result<MicroSet, MicroError> {
    config.check()?;
    let tasks: Vec<Task> = config.tasks.iter().map(|task| task.table(config)).collect();
    let wordings = wordings::deal(&tasks, config, seed)?;
    let mut splits: BTreeMap<Split, Vec<Problem>> = BTreeMap::new();
    for wording in &wordings {
        let combos = wording.task.combos();
        let split = splits.entry(wording.split).or_default();
        for combo in 0..combos.len() {
            split.push(problem(wording, &combos, combo, config, seed)?);
        }
    }
    let mut take = |split: Split, name: &str| {
        let mut problems = splits.remove(&split).unwrap_or_default();
        Draw::new(seed, &format!("order/{name}")).shuffle(&mut problems);
        problems
    };
    Ok(MicroSet {
        train: take(Split::Train, "train"),
        valid: take(Split::Valid, "valid"),
        test: take(Split::Test, "test"),
    })
}

fn problem(
    wording: &Wording,
    combos: &[[&str; 3]],
    combo: usize,
    config: &MicroConfig,
    seed: u64,
) -> Result<Problem, MicroError> {
    let (task, variant) = (wording.task, wording.variant);
    let id = format!("micro-{}-{combo}", wording.id);
    let tests = Tests {
        task,
        variant,
        combos,
        combo,
    };
    let mut draw = Draw::new(seed, &format!("tests/{id}"));
    let (public_tests, private_tests) = tests
        .find(config, &mut draw)
        .ok_or_else(|| MicroError::Tests { id: id.clone() })?;
    let mut solutions = Vec::new();
    let mut wrong_solutions = Vec::new();
    for (at, &values) in combos.iter().enumerate() {
        let program = Solution {
            file: format!("choice-{at}.py"),
            language: "python".to_owned(),
            class: None,
            expected: "AC".to_owned(),
            code: (task.program)(variant, values),
        };
        if at == combo {
            solutions.push(program);
        } else {
            wrong_solutions.push(Solution {
                class: Some("choice".to_owned()),
                expected: "WA".to_owned(),
                ..program
            });
        }
    }
    wrong_solutions.push(memorised(&public_tests));
    Ok(Problem {
        name: format!("{}: {} ({combo})", task.name.as_str(), variant.name),
        statement: wording.text.clone(),
        time_limit_s: 2.0,
        memory_limit_mb: 256,
        function: None,
        checker: Checker::default(),
        public_tests,
        private_tests,
        generated_tests: Vec::new(),
        solutions,
        wrong_solutions,
        meta: meta(wording, combos.get(combo).copied(), combo),
        id,
    })
}

fn meta(wording: &Wording, values: Option<[&str; 3]>, combo: usize) -> Map<String, Value> {
    let names = wording.task.dims.iter().map(|dim| dim.name.to_owned());
    let choices: Map<String, Value> = names
        .zip(values.into_iter().flatten().map(Value::from))
        .collect();
    Map::from_iter([
        ("task".to_owned(), wording.task.name.as_str().into()),
        ("variant".to_owned(), wording.variant.name.into()),
        ("choices".to_owned(), choices.into()),
        ("combo".to_owned(), combo.into()),
        ("wording".to_owned(), wording.id.clone().into()),
    ])
}

/// A program that knows the public tests by heart; the private ones must catch it.
fn memorised(public_tests: &[TestCase]) -> Solution {
    let code = match public_tests {
        [only] => format!("print('{}')\n", only.output.trim_end()),
        several => {
            let entry = |test: &TestCase| {
                format!("'{}':'{}'", test.input.trim_end(), test.output.trim_end())
            };
            let entries = several.iter().map(entry).collect::<Vec<_>>().join(",");
            format!(
                "a={{{entries}}}\nprint(a.get(input(),'{}'))\n",
                several.first().map_or("", |test| test.output.trim_end())
            )
        }
    };
    Solution {
        file: "memorised.py".to_owned(),
        language: "python".to_owned(),
        class: Some("memorised".to_owned()),
        expected: "WA".to_owned(),
        code,
    }
}

/// Finds the tests of one problem.
struct Tests<'a> {
    task: &'a Task,
    variant: &'a Variant,
    combos: &'a [[&'a str; 3]],
    combo: usize,
}

impl Tests<'_> {
    /// Public and private tests, each list enough to tell the right combination from all others. No private input is
    /// public, and no private output either.
    fn find(
        &self,
        config: &MicroConfig,
        draw: &mut Draw,
    ) -> Option<(Vec<TestCase>, Vec<TestCase>)> {
        let (shown, public) = (0..TRIES).find_map(|_| {
            let inputs = self.inputs(true, 1, config.public_items, draw);
            Some((self.cases("public", &inputs)?, inputs))
        })?;
        let seen: BTreeSet<&str> = shown.iter().map(|test| test.output.as_str()).collect();
        let hidden = (0..TRIES).find_map(|_| {
            let inputs = self.inputs(false, config.private_tests, config.private_items, draw);
            if inputs.iter().any(|input| public.contains(input)) {
                return None;
            }
            let cases = self.cases("private", &inputs)?;
            let copied = cases.iter().any(|test| seen.contains(test.output.as_str()));
            (!copied).then_some(cases)
        })?;
        Some((shown, hidden))
    }

    fn inputs(
        &self,
        public: bool,
        count: usize,
        items: (u32, u32),
        draw: &mut Draw,
    ) -> Vec<Vec<u32>> {
        let ask = |index| Ask {
            variant: self.variant,
            public,
            index,
            count: items,
        };
        (0..count)
            .map(|index| (self.task.draw)(&ask(index), draw))
            .collect()
    }

    /// The tests of these inputs, or nothing when two inputs are the same or another combination gives the same
    /// outputs.
    fn cases(&self, list: &str, inputs: &[Vec<u32>]) -> Option<Vec<TestCase>> {
        if inputs.iter().collect::<BTreeSet<_>>().len() < inputs.len() {
            return None;
        }
        let outputs = |values: &[&str; 3]| -> Vec<String> {
            inputs
                .iter()
                .map(|input| (self.task.solve)(self.variant, input, *values))
                .collect()
        };
        let expected = outputs(self.combos.get(self.combo)?);
        let mut others = self
            .combos
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != self.combo);
        if others.any(|(_, values)| outputs(values) == expected) {
            return None;
        }
        let case = |(at, (input, output)): (usize, (&Vec<u32>, String))| TestCase {
            name: format!("{list}/{}", at + 1),
            input: format!("{}\n", (self.task.show)(input)),
            output: format!("{output}\n"),
        };
        Some(inputs.iter().zip(expected).enumerate().map(case).collect())
    }
}
