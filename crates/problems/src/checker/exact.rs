//! Byte for byte.

use super::{Comparison, Difference, EXCERPT};

pub(super) fn compare(expected: &[u8], got: &[u8]) -> Comparison {
    if expected == got {
        return Comparison::Same;
    }
    let same = common_prefix(expected, got);
    let before = got.get(..same).unwrap_or_default();
    Comparison::Differs(Difference {
        line: before.iter().filter(|&&byte| byte == b'\n').count() + 1,
        expected: line_at(expected, same),
        got: line_at(got, same),
    })
}

/// The number of equal bytes at the start.
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    // Blocks first: they are compared many bytes at a time.
    const BLOCK: usize = 4096;
    let blocks = a
        .chunks_exact(BLOCK)
        .zip(b.chunks_exact(BLOCK))
        .take_while(|(a, b)| a == b)
        .count();
    let start = blocks * BLOCK;
    let (a, b) = (
        a.get(start..).unwrap_or_default(),
        b.get(start..).unwrap_or_default(),
    );
    start + a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The line that holds the byte `at`, with its line break and with white space that can be seen; `None` at the end.
fn line_at(text: &[u8], at: usize) -> Option<String> {
    let (before, after) = text.split_at_checked(at)?;
    if after.is_empty() && before.last().is_none_or(|&byte| byte == b'\n') {
        return None;
    }
    let near = before.get(before.len().saturating_sub(EXCERPT / 4)..)?;
    let start = match near.iter().rposition(|&byte| byte == b'\n') {
        Some(line_break) => at - near.len() + line_break + 1,
        None => at - near.len(),
    };
    let rest = text.get(start..)?;
    // More than the excerpt needs in any encoding, so that a line of many megabytes is not decoded.
    let part = rest.get(..rest.len().min(EXCERPT * 4))?;
    let end = part
        .iter()
        .position(|&byte| byte == b'\n')
        .map_or(part.len(), |place| place + 1);
    let line = String::from_utf8_lossy(part.get(..end)?);
    let shown: String = line.chars().take(EXCERPT).flat_map(visible).collect();
    let cut = line.chars().nth(EXCERPT).is_some()
        || (end == part.len() && part.len() < rest.len() && !line.ends_with('\n'));
    let first = if near.len() < before.len() && start == at - near.len() {
        "…"
    } else {
        ""
    };
    Some(format!("{first}{shown}{}", if cut { "…" } else { "" }))
}

/// Control characters as escapes, and blanks as they are.
fn visible(c: char) -> Vec<char> {
    if c.is_control() {
        c.escape_default().collect()
    } else {
        vec![c]
    }
}
