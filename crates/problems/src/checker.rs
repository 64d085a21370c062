//! Compares what a program printed with what it should have printed: on bytes, in linear time, in the trusted process.
//! It runs no programs: what a `validator` decides is asked of it by the judge, and `custom` ones are not run at all.

mod any_order;
mod decimal;
mod exact;
mod number;
#[cfg(test)]
mod tests;
mod tokens;

use crate::validator::of_group;
use crate::{Checker, Numbers, WhiteSpace};
use number::Number;

/// Longest excerpt of a line in a [`Difference`], in characters; what is longer ends in `…`.
const EXCERPT: usize = 120;

/// Largest absolute tolerance. Coarser ones accept nearly every number, and are slips of the exponent.
const LARGEST_ABS: f64 = 1e9;
/// Largest relative tolerance: with more, 0 is as good as any number.
const LARGEST_REL: f64 = 1.0;

/// What comparing two outputs showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// The output is right.
    Same,
    /// The output is wrong, first here.
    Differs(Difference),
}

impl Comparison {
    /// Whether the output is right.
    pub fn is_same(&self) -> bool {
        *self == Self::Same
    }
}

/// The first line in which the outputs differ. White space at both ends of the lines is cut, bytes that are not UTF-8
/// are shown as `�`, and long lines are shortened around the difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The line of the program's output, from 1; one more than it has when it ended too early.
    pub line: usize,
    /// What should be there; `None`: the output should have ended.
    pub expected: Option<String>,
    /// What is there; `None`: the output ended.
    pub got: Option<String>,
}

/// Why outputs cannot be compared: a fault of the problem, never of the program.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckerError {
    /// The problem needs a program of its own to check outputs.
    #[error(
        "the checker is `custom`: the problem brings a checking program of a kind that cannot be run; \
         use problems whose checker is another, such as `tokens` or `validator`"
    )]
    Custom,
    /// An output validator must be run.
    #[error(
        "the checker is `validator`: a program that comes with the problem decides on each output, \
         so outputs cannot be compared without running it"
    )]
    Validator,
    /// What was printed is no value.
    #[error(
        "the checker is `value`, which compares what a function returns, not what a program prints"
    )]
    Value,
    /// A rule of a group that compares nothing by itself.
    #[error(
        "the checker is `by_group`, and one of its rules is `by_group`, `value`, `validator` or `custom`; \
         a validator has flags for groups in its `group_flags`"
    )]
    Group,
    /// A tolerance that is not a number in its range.
    #[error("the checker's `{field}` is {value:?}; it must be a number from 0 to {largest:?}")]
    Tolerance {
        /// `abs` or `rel`.
        field: &'static str,
        /// Its value.
        value: f64,
        /// The largest that is allowed.
        largest: f64,
    },
}

impl Default for Checker {
    /// Tokens with their case: the usual rule of judges.
    fn default() -> Self {
        Self::Tokens {
            case_sensitive: true,
            white_space: WhiteSpace::Lines,
            numbers: None,
        }
    }
}

impl Checker {
    /// The rule of CodeContests: tokens without their case, whatever white space is between them; whole numbers
    /// exactly, others within 1e-5 (absolute).
    pub fn code_contests() -> Self {
        Self::Tokens {
            case_sensitive: false,
            white_space: WhiteSpace::Any,
            numbers: Some(Numbers {
                abs: 1e-5,
                rel: 0.0,
                integers_exact: true,
            }),
        }
    }

    /// The rule for the test of that name.
    pub fn for_test(&self, test: &str) -> &Self {
        match self {
            Self::ByGroup { otherwise, groups } => of_group(groups, test).unwrap_or(otherwise),
            one => one,
        }
    }

    /// Compares the output of a program with the expected one.
    ///
    /// * `by_group`: by the rule for tests that are in no group; see [`Checker::for_test`].
    /// * `lines`: the same lines; white space at the ends of lines and of the output does not count.
    /// * `exact`: the same bytes.
    /// * `tokens`: the same tokens (what stands between white space) with line breaks at the same places; the amount of
    ///   white space, empty lines, and white space at either end do not count. Where the setting `white_space` is `any`,
    ///   line breaks do not count either; where it is `exact`, all white space does. With `numbers`, two decimal numbers
    ///   within its tolerance are the same.
    /// * `any_order`: the same lines in any order, compared by their tokens; empty lines do not count.
    /// * `float`: as tokens, but where the expected token is a decimal number, a number within `abs` or within
    ///   `rel` × |expected| is as good. Only plain decimal notation is a number: `nan`, `inf`, `0x1p3` and `1_000` are
    ///   words, and right only where they are expected letter for letter.
    ///
    /// White space is the ASCII kind, line breaks are `\n`, `\r` and `\r\n`, and ignoring case is about ASCII letters.
    ///
    /// # Errors
    /// When the checker itself is unusable; see [`CheckerError`].
    pub fn compare(&self, expected: &[u8], got: &[u8]) -> Result<Comparison, CheckerError> {
        self.check()?;
        let comparison = match self {
            Self::Lines => compare_lines(expected, got),
            Self::Exact => exact::compare(expected, got),
            Self::Tokens {
                case_sensitive,
                white_space,
                numbers,
            } => {
                let same = |expected: &[u8], got: &[u8]| {
                    same_word(expected, got, *case_sensitive)
                        || numbers.is_some_and(|rule| rule.same(expected, got))
                };
                match white_space {
                    WhiteSpace::Lines => compare_tokens(expected, got, same),
                    WhiteSpace::Any => tokens::compare(expected, got, false, same),
                    WhiteSpace::Exact => tokens::compare(expected, got, true, same),
                }
            }
            Self::AnyOrder { case_sensitive } => any_order::compare(expected, got, *case_sensitive),
            Self::Float {
                abs,
                rel,
                case_sensitive,
            } => compare_tokens(expected, got, |expected, got| {
                same_word(expected, got, *case_sensitive) || same_number(expected, got, *abs, *rel)
            }),
            Self::ByGroup { otherwise, .. } => return otherwise.compare(expected, got),
            Self::Value { .. } => return Err(CheckerError::Value),
            Self::Validator(_) => return Err(CheckerError::Validator),
            Self::Custom(_) => return Err(CheckerError::Custom),
        };
        Ok(comparison)
    }

    /// Whether the tolerances are usable: `abs` from 0 to 10^9, `rel` from 0 to 1; and whether the rules of groups are
    /// such that compare outputs by themselves.
    ///
    /// # Errors
    /// [`CheckerError::Tolerance`], [`CheckerError::Group`]
    pub fn check(&self) -> Result<(), CheckerError> {
        if let Self::ByGroup { otherwise, groups } = self {
            for checker in std::iter::once(&**otherwise).chain(groups.values()) {
                if let Self::ByGroup { .. }
                | Self::Value { .. }
                | Self::Validator(_)
                | Self::Custom(_) = checker
                {
                    return Err(CheckerError::Group);
                }
                checker.check()?;
            }
        }
        if let Self::Float { abs, rel, .. }
        | Self::Value { abs, rel, .. }
        | Self::Tokens {
            numbers: Some(Numbers { abs, rel, .. }),
            ..
        } = self
        {
            for (field, value, largest) in [("abs", *abs, LARGEST_ABS), ("rel", *rel, LARGEST_REL)]
            {
                if !(0.0..=largest).contains(&value) {
                    return Err(CheckerError::Tolerance {
                        field,
                        value,
                        largest,
                    });
                }
            }
        }
        Ok(())
    }
}

impl Numbers {
    fn same(&self, expected: &[u8], got: &[u8]) -> bool {
        match (Number::parse(expected), Number::parse(got)) {
            (Some(expected), Some(got))
                if self.integers_exact && expected.is_whole() && got.is_whole() =>
            {
                expected.is_near(&got, 0.0, 0.0)
            }
            (Some(expected), Some(got)) => expected.is_near(&got, self.abs, self.rel),
            _ => false,
        }
    }
}

fn same_word(expected: &[u8], got: &[u8], case_sensitive: bool) -> bool {
    if case_sensitive {
        expected == got
    } else {
        expected.eq_ignore_ascii_case(got)
    }
}

fn same_number(expected: &[u8], got: &[u8], abs: f64, rel: f64) -> bool {
    match (Number::parse(expected), Number::parse(got)) {
        (Some(expected), Some(got)) => expected.is_near(&got, abs, rel),
        _ => false,
    }
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn is_empty(line: &[u8]) -> bool {
    line.iter().all(is_blank)
}

/// The lines of an output with their numbers from 1; nothing after a final line break.
struct Lines<'a> {
    rest: &'a [u8],
    /// The number of the line that comes next.
    next: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self {
            rest: text,
            next: 1,
        }
    }

    /// The next line that holds a token.
    fn filled(&mut self) -> Option<(usize, &'a [u8])> {
        self.find(|(_, line)| !is_empty(line))
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self
            .rest
            .iter()
            .position(|byte| matches!(byte, b'\n' | b'\r'))
            .unwrap_or(self.rest.len());
        let (line, after) = self.rest.split_at(end);
        self.rest = after
            .strip_prefix(b"\r\n")
            .or_else(|| after.get(1..))
            .unwrap_or_default();
        self.next += 1;
        Some((self.next - 1, line))
    }
}

fn compare_lines(expected: &[u8], got: &[u8]) -> Comparison {
    // What is blank at the end is cut first, so that empty lines there do not count and those in between do.
    let (mut expected, mut got) = (Lines::new(cut_end(expected)), Lines::new(cut_end(got)));
    loop {
        let next = got.next;
        match (expected.next(), got.next()) {
            (None, None) => return Comparison::Same,
            (Some((_, wanted)), Some((line, found))) => {
                let (wanted, found) = (cut_end(wanted), cut_end(found));
                if wanted != found {
                    let same = wanted.iter().zip(found).take_while(|(a, b)| a == b).count();
                    return differs(line, Some((wanted, same)), Some((found, same)));
                }
            }
            (wanted, found) => {
                return differs(
                    next,
                    wanted.map(|(_, line)| (line, 0)),
                    found.map(|(_, line)| (line, 0)),
                );
            }
        }
    }
}

fn cut_end(text: &[u8]) -> &[u8] {
    let end = text
        .iter()
        .rposition(|byte| !is_blank(byte))
        .map_or(0, |last| last + 1);
    text.get(..end).unwrap_or_default()
}

fn compare_tokens(expected: &[u8], got: &[u8], same: impl Fn(&[u8], &[u8]) -> bool) -> Comparison {
    let (mut expected, mut got) = (Lines::new(expected), Lines::new(got));
    loop {
        match (expected.filled(), got.filled()) {
            (None, None) => return Comparison::Same,
            (Some((_, wanted)), Some((line, found))) => {
                let (mut wanted_tokens, mut found_tokens) =
                    (Tokens::new(wanted), Tokens::new(found));
                loop {
                    let (wanted_token, found_token) = (wanted_tokens.next(), found_tokens.next());
                    match (wanted_token, found_token) {
                        (None, None) => break,
                        (Some((_, a)), Some((_, b))) if same(a, b) => {}
                        (a, b) => {
                            let at = |token: Option<(usize, &[u8])>, line: &[u8]| {
                                token.map_or(line.len(), |t| t.0)
                            };
                            return differs(
                                line,
                                Some((wanted, at(a, wanted))),
                                Some((found, at(b, found))),
                            );
                        }
                    }
                }
            }
            (wanted, found) => {
                let line = found.map_or(got.next, |(line, _)| line);
                return differs(
                    line,
                    wanted.map(|(_, line)| (line, 0)),
                    found.map(|(_, line)| (line, 0)),
                );
            }
        }
    }
}

/// The tokens of a line with the places where they start.
struct Tokens<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    fn new(line: &'a [u8]) -> Self {
        Self { line, at: 0 }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.line.get(self.at..)?;
        let start = self.at + rest.iter().position(|byte| !is_blank(byte))?;
        let token = self.line.get(start..)?;
        let token = token.split(is_blank).next()?;
        self.at = start + token.len();
        Some((start, token))
    }
}

/// Each side is a line and the byte in it from which on it differs.
fn differs(
    line: usize,
    expected: Option<(&[u8], usize)>,
    got: Option<(&[u8], usize)>,
) -> Comparison {
    let excerpt = |side: Option<(&[u8], usize)>| side.map(|(text, at)| excerpt(text, at));
    Comparison::Differs(Difference {
        line,
        expected: excerpt(expected),
        got: excerpt(got),
    })
}

/// The line, or where it is long, the part of it around the byte `at`.
fn excerpt(line: &[u8], at: usize) -> String {
    // Far more than the excerpt needs in any encoding, so that a line of many megabytes is not decoded.
    let wide = EXCERPT * 4;
    let shortened = line.len() > wide;
    let start = if shortened {
        at.saturating_sub(EXCERPT / 4).min(line.len())
    } else {
        0
    };
    let part = line.get(start..).unwrap_or_default();
    let part = part.get(..wide.min(part.len())).unwrap_or_default();
    let text = String::from_utf8_lossy(part);
    let text = if start > 0 {
        text.as_ref()
    } else {
        text.trim_start()
    };
    let text = text.trim_end();
    let mut cut: String = text.chars().take(EXCERPT).collect();
    if text.chars().nth(EXCERPT).is_some() || start + part.len() < line.len() {
        cut.push('…');
    }
    if start > 0 { format!("…{cut}") } else { cut }
}
