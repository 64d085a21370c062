//! Tokens over the whole output, where lines mean nothing or all white space does.

use super::exact::common_prefix;
use super::{Comparison, differs, is_blank};

/// Compares token by token; with `spaces`, what is between them must be the same as well.
pub(super) fn compare(
    expected: &[u8],
    got: &[u8],
    spaces: bool,
    same: impl Fn(&[u8], &[u8]) -> bool,
) -> Comparison {
    // What is equal up to the start of a token needs no second look.
    let equal = common_prefix(expected, got);
    let start = expected
        .get(..equal)
        .unwrap_or_default()
        .iter()
        .rposition(is_blank)
        .map_or(0, |blank| blank + 1);
    let (mut wanted, mut found) = (Place::at(expected, start), Place::at(got, start));
    loop {
        let (wanted_space, found_space) = (wanted.blanks(), found.blanks());
        let (wanted_at, found_at) = (wanted.at, found.at);
        let (wanted_token, found_token) = (wanted.token(), found.token());
        let gap = spaces && wanted_space != found_space;
        if gap || !both(wanted_token, found_token, &same) {
            // A gap that differs is on the line before it, where the tokens after it are the same.
            let at = |place: usize, space: &[u8]| {
                if gap && !space.is_empty() {
                    place - space.len()
                } else {
                    place
                }
            };
            let found_from = at(found_at, found_space);
            return differs(
                line_number(got, found_from),
                line_of(
                    expected,
                    at(wanted_at, wanted_space),
                    wanted_token.is_empty() && !gap,
                ),
                line_of(got, found_from, found_token.is_empty() && !gap),
            );
        }
        if wanted_token.is_empty() {
            return Comparison::Same;
        }
    }
}

/// Whether both tokens are there and the same, or neither is there.
fn both(wanted: &[u8], found: &[u8], same: impl Fn(&[u8], &[u8]) -> bool) -> bool {
    match (wanted.is_empty(), found.is_empty()) {
        (true, true) => true,
        (false, false) => same(wanted, found),
        _ => false,
    }
}

struct Place<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Place<'a> {
    fn at(text: &'a [u8], at: usize) -> Self {
        Self { text, at }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, count: Option<usize>) -> &'a [u8] {
        let rest = self.rest();
        let (taken, _) = rest.split_at(count.unwrap_or(rest.len()).min(rest.len()));
        self.at += taken.len();
        taken
    }

    fn blanks(&mut self) -> &'a [u8] {
        let end = self.rest().iter().position(|byte| !is_blank(byte));
        self.take(end)
    }

    /// The token that starts here; empty at the end.
    fn token(&mut self) -> &'a [u8] {
        let end = self.rest().iter().position(is_blank);
        self.take(end)
    }
}

fn is_break(byte: &u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// The number of the line that holds the byte `at`, from 1.
fn line_number(text: &[u8], at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let mut breaks = 0;
    let mut last = 0;
    for &byte in before {
        if byte == b'\r' || (byte == b'\n' && last != b'\r') {
            breaks += 1;
        }
        last = byte;
    }
    // A line break that is cut in two belongs to the line that it ends.
    if last == b'\r' && text.get(at) == Some(&b'\n') {
        breaks
    } else {
        breaks + 1
    }
}

/// The line that holds the byte `at`, and the place of that byte in it; `None` where nothing more comes.
fn line_of(text: &[u8], at: usize, ended: bool) -> Option<(&[u8], usize)> {
    let (before, after) = text.split_at_checked(at)?;
    let start = before
        .iter()
        .rposition(is_break)
        .map_or(0, |place| place + 1);
    let end = after
        .iter()
        .position(is_break)
        .map_or(text.len(), |place| at + place);
    let line = text.get(start..end)?;
    // On the last line the tokens before the end are worth showing; after it there is nothing.
    if ended && line.iter().all(is_blank) {
        return None;
    }
    Some((line, at - start))
}
