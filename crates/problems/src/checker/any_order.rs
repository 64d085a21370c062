//! The same lines in any order.
//!
//! Sorting the lines of a large output would take many times its size in memory. Instead each line is hashed, and the
//! hashes are summed in buckets: outputs with the same lines have the same sums. Hashes are of 128 bits under a key that
//! is drawn for each process, so that no program can aim at a sum; two different outputs are taken for the same with a
//! chance below 2^-100.

use super::{Comparison, Lines, Tokens, differs, is_empty};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

/// Buckets: enough that the lines of one of them, of millions, are few.
const BUCKETS: usize = 1 << 12;

type Sums = Vec<(u128, u64)>;

pub(super) fn compare(expected: &[u8], got: &[u8], case_sensitive: bool) -> Comparison {
    if expected == got {
        return Comparison::Same;
    }
    let (wanted, found) = (sums(expected, case_sensitive), sums(got, case_sensitive));
    if wanted == found {
        return Comparison::Same;
    }
    let differing = |line: &[u8]| {
        let at = bucket(hash(line, case_sensitive));
        wanted.get(at) != found.get(at)
    };
    // The first line that may be one too many, else the first that may be missing, leads to a bucket whose lines are
    // few enough to be counted.
    let lead = filled(got).find(|(_, line)| differing(line));
    let Some((_, lead)) = lead.or_else(|| filled(expected).find(|(_, line)| differing(line)))
    else {
        return Comparison::Same;
    };
    let chosen = bucket(hash(lead, case_sensitive));
    let of_bucket = |text| {
        filled(text)
            .map(move |(number, line)| (number, line, hash(line, case_sensitive)))
            .filter(move |(_, _, hash)| bucket(*hash) == chosen)
    };
    let mut counts: HashMap<u128, i64> = HashMap::new();
    for (_, _, hash) in of_bucket(expected) {
        *counts.entry(hash).or_default() += 1;
    }
    for (number, line, hash) in of_bucket(got) {
        let left = counts.entry(hash).or_default();
        *left -= 1;
        if *left < 0 {
            return differs(number, None, Some((line, 0)));
        }
    }
    let missing =
        of_bucket(expected).find(|(_, _, hash)| counts.get(hash).is_some_and(|left| *left > 0));
    let end = Lines::new(got).count() + 1;
    differs(end, missing.map(|(_, line, _)| (line, 0)), None)
}

fn filled(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    Lines::new(text).filter(|(_, line)| !is_empty(line))
}

/// For each bucket the sum of the hashes of its lines, and their number.
fn sums(text: &[u8], case_sensitive: bool) -> Sums {
    let mut sums = vec![(0u128, 0u64); BUCKETS];
    for (_, line) in filled(text) {
        let hash = hash(line, case_sensitive);
        if let Some((sum, count)) = sums.get_mut(bucket(hash)) {
            *sum = sum.wrapping_add(hash);
            *count += 1;
        }
    }
    sums
}

fn bucket(hash: u128) -> usize {
    (hash >> 64) as usize % BUCKETS
}

/// Of the tokens of a line.
fn hash(line: &[u8], case_sensitive: bool) -> u128 {
    static KEYS: OnceLock<[RandomState; 2]> = OnceLock::new();
    let [first, second] = KEYS.get_or_init(|| [RandomState::new(), RandomState::new()]);
    let (mut first, mut second) = (first.build_hasher(), second.build_hasher());
    for (_, token) in Tokens::new(line) {
        let mut write = |bytes: &[u8]| {
            first.write(bytes);
            second.write(bytes);
        };
        if case_sensitive {
            write(token);
        } else {
            let mut lower = [0u8; 64];
            for part in token.chunks(lower.len()) {
                let lower = lower.get_mut(..part.len()).unwrap_or_default();
                lower.copy_from_slice(part);
                lower.make_ascii_lowercase();
                write(lower);
            }
        }
        // White space is in no token, so the end of one cannot be mistaken.
        write(b" ");
    }
    u128::from(first.finish()) << 64 | u128::from(second.finish())
}
