//! What a task of the family is: a table of variants and hidden choices, how inputs are drawn, what the answer is and
//! how the program looks. One file a task; to change a task, change its table.

mod filter;
mod letters;
mod map;
mod range;
mod sort;

use super::MicroConfig;
use super::draw::Draw;
use serde::{Deserialize, Serialize};

/// The tasks of the family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskName {
    /// Integers in order. Hidden: direction, separator, brackets.
    Sort,
    /// Every integer changed in the same way. Hidden: order, separator, brackets.
    Map,
    /// Letters in one case. Hidden: which case, order, separator.
    Letters,
    /// The integers from one to another. Hidden: whether the end belongs, direction, separator.
    Range,
    /// The integers that fulfil a condition. Hidden: order, separator, brackets.
    Filter,
}

impl TaskName {
    /// Every task, in the order of the tables.
    pub const ALL: [Self; 5] = [
        Self::Sort,
        Self::Map,
        Self::Letters,
        Self::Range,
        Self::Filter,
    ];

    /// The word used in ids and in `meta.task`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sort => "sort",
            Self::Map => "map",
            Self::Letters => "letters",
            Self::Range => "range",
            Self::Filter => "filter",
        }
    }

    pub(super) fn table(self, config: &MicroConfig) -> Task {
        match self {
            Self::Sort => sort::table(config),
            Self::Map => map::table(config),
            Self::Letters => letters::table(config),
            Self::Range => range::table(config),
            Self::Filter => filter::table(config),
        }
    }
}

/// One thing that the statement leaves open.
pub(super) struct Dim {
    pub(super) name: &'static str,
    pub(super) values: Vec<String>,
}

impl Dim {
    fn new<S: AsRef<str>>(name: &'static str, values: &[S]) -> Self {
        Self {
            name,
            values: values
                .iter()
                .map(|value| value.as_ref().to_owned())
                .collect(),
        }
    }
}

/// A task in one of its meanings ("doubled", "plus 1" …).
pub(super) struct Variant {
    pub(super) name: &'static str,
    /// What follows the verb in the statement; each gives wordings of its own.
    pub(super) phrases: [&'static str; 3],
    /// The Python text that differs from variant to variant.
    pub(super) code: &'static str,
    /// What becomes of one number; `None`: it is left out.
    pub(super) rule: fn(u32) -> Option<u32>,
}

/// What kind of input is wanted.
pub(super) struct Ask<'a> {
    pub(super) variant: &'a Variant,
    /// Public inputs are shorter and have single digits only.
    pub(super) public: bool,
    /// Which test of its list this is, from 0.
    pub(super) index: usize,
    /// Least and greatest number of items.
    pub(super) count: (u32, u32),
}

/// Everything about one task.
pub(super) struct Task {
    pub(super) name: TaskName,
    /// What the opening of the statement names.
    pub(super) noun: &'static str,
    pub(super) dims: [Dim; 3],
    pub(super) variants: Vec<Variant>,
    /// Draws an input. It may be unfit; the generator checks and draws again.
    pub(super) draw: fn(&Ask, &mut Draw) -> Vec<u32>,
    /// How an input is written.
    pub(super) show: fn(&[u32]) -> String,
    /// The right output for the given values of the three dims.
    pub(super) solve: fn(&Variant, &[u32], [&str; 3]) -> String,
    /// The canonical program for the given values of the three dims.
    pub(super) program: fn(&Variant, [&str; 3]) -> String,
}

impl Task {
    /// Every combination of the hidden choices; the last dim changes fastest. This order is part of the format: wrong
    /// solutions are listed in it.
    pub(super) fn combos(&self) -> Vec<[&str; 3]> {
        let [first, second, third] = &self.dims;
        let mut combos = Vec::new();
        for a in &first.values {
            for b in &second.values {
                for c in &third.values {
                    combos.push([a.as_str(), b.as_str(), c.as_str()]);
                }
            }
        }
        combos
    }
}

/// The input's numbers, blank between them.
fn show_numbers(input: &[u32]) -> String {
    join(input, " ")
}

fn join(numbers: &[u32], separator: &str) -> String {
    numbers
        .iter()
        .map(u32::to_string)
        .collect::<Vec<_>>()
        .join(separator)
}

/// The text inside the brackets; `brackets` is empty or an opening and a closing character.
fn wrap(text: &str, brackets: &str) -> String {
    match pair(brackets) {
        Some((open, close)) => format!("{open}{text}{close}"),
        None => text.to_owned(),
    }
}

/// The Python expression that puts brackets around the string `expression`, which has no double quotes. A format
/// string, so that whether there are brackets is decided by one piece of text at its start, and what follows is the
/// same as without.
fn wrap_code(expression: &str, brackets: &str) -> String {
    match pair(brackets) {
        Some((open, close)) => format!("f\"{open}{{{expression}}}{close}\""),
        None => expression.to_owned(),
    }
}

fn pair(brackets: &str) -> Option<(char, char)> {
    let mut chars = brackets.chars();
    Some((chars.next()?, chars.next()?))
}

/// Reverses `items` where the hidden choice says so.
fn turn(items: &mut [u32], order: &str) {
    if order == REVERSED || order == DESCENDING {
        items.reverse();
    }
}

/// What the program appends to a list for that order.
fn turn_code(order: &str) -> &'static str {
    if order == REVERSED || order == DESCENDING {
        "[::-1]"
    } else {
        ""
    }
}

const GIVEN: &str = "as given";
const REVERSED: &str = "reversed";
const ASCENDING: &str = "ascending";
const DESCENDING: &str = "descending";
