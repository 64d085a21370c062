//! How much of a text's wording another one shares: word n-grams ("shingles", Broder 1997), and an index that finds the
//! pairs that share many among tens of thousands of texts.
//!
//! Words are runs of letters and digits, their case folded, so layout and punctuation do not count. It says nothing of
//! meaning: a paraphrase is another text.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::Hasher;

/// Settings of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Similarity {
    /// Words of a shingle, at least 1. Default 5: long enough that two texts on the same subject share few by chance.
    pub words: usize,
    /// A shingle that is in more texts than this is boilerplate ("the first line contains an integer"), and no reason to
    /// compare two of them. Default 50.
    pub common: usize,
    /// Texts are near-duplicates from this Jaccard index on. Default 0.5.
    pub near: f64,
    /// So are texts of which the shorter one is contained in the longer one to this part. Default 0.8.
    pub contained: f64,
    /// … and which share at least so many shingles. Default 8.
    pub least_shared: usize,
}

impl Default for Similarity {
    fn default() -> Self {
        Self {
            words: 5,
            common: 50,
            near: 0.5,
            contained: 0.8,
            least_shared: 8,
        }
    }
}

/// The different shingles of two texts, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlap {
    /// In both.
    pub shared: usize,
    /// In the first.
    pub first: usize,
    /// In the second.
    pub second: usize,
}

impl Overlap {
    /// Shared shingles / all shingles of both, from 0 to 1.
    pub fn jaccard(&self) -> f64 {
        let all = self.first + self.second - self.shared;
        if all == 0 {
            return 0.0;
        }
        self.shared as f64 / all as f64
    }

    /// Shared shingles / those of the shorter text, from 0 to 1.
    pub fn containment(&self) -> f64 {
        let least = self.first.min(self.second);
        if least == 0 {
            return 0.0;
        }
        self.shared as f64 / least as f64
    }
}

/// Compares two texts by shingles of `words` words. A text with fewer words is one shingle, one without any words is
/// compared as it stands.
pub fn overlap(words: usize, first: &str, second: &str) -> Overlap {
    shared(&shingles(words, first), &shingles(words, second))
}

/// Hashes of the different shingles, sorted; never empty.
fn shingles(words: usize, text: &str) -> Vec<u64> {
    let words = words.max(1);
    let hashes: Vec<u64> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| hash(word.chars().flat_map(char::to_lowercase)))
        .collect();
    if hashes.is_empty() {
        return vec![hash(text.trim().chars())];
    }
    let mut all: Vec<u64> = hashes
        .windows(words.min(hashes.len()))
        .map(|window| {
            let mut hasher = Fnv::default();
            for hash in window {
                hasher.write(&hash.to_le_bytes());
            }
            hasher.finish()
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn hash(text: impl Iterator<Item = char>) -> u64 {
    let mut hasher = Fnv::default();
    for c in text {
        hasher.write(&u32::from(c).to_le_bytes());
    }
    hasher.finish()
}

/// FNV-1a with a final mix, so that a hash is the same in every process and every version.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    }
}

/// Both are sorted.
fn shared(first: &[u64], second: &[u64]) -> Overlap {
    let (mut a, mut b, mut shared) = (0, 0, 0);
    while let (Some(x), Some(y)) = (first.get(a), second.get(b)) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => a += 1,
            std::cmp::Ordering::Greater => b += 1,
            std::cmp::Ordering::Equal => (a, b, shared) = (a + 1, b + 1, shared + 1),
        }
    }
    Overlap {
        shared,
        first: first.len(),
        second: second.len(),
    }
}

/// Two texts with much in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The earlier one, by its number.
    pub first: usize,
    /// The later one.
    pub second: usize,
    /// What they share.
    pub overlap: Overlap,
}

/// Texts by their shingles; memory is linear in their length (24 bytes a word), the texts are not kept.
#[derive(Debug, Default)]
pub struct SimilarTexts {
    settings: Similarity,
    texts: Vec<Vec<u64>>,
}

impl SimilarTexts {
    /// No texts yet.
    pub fn new(settings: Similarity) -> Self {
        Self {
            settings,
            texts: Vec::new(),
        }
    }

    /// Adds a text; they are numbered from 0.
    pub fn add(&mut self, text: &str) {
        self.texts.push(shingles(self.settings.words, text));
    }

    /// Groups of texts with the same shingles, each in order: the same words in the same order but for repetitions.
    pub fn duplicates(&self) -> Vec<Vec<usize>> {
        let mut groups: HashMap<&[u64], Vec<usize>> = HashMap::new();
        for (number, text) in self.texts.iter().enumerate() {
            groups.entry(text).or_default().push(number);
        }
        let mut groups: Vec<Vec<usize>> = groups
            .into_values()
            .filter(|group| group.len() > 1)
            .collect();
        groups.sort_unstable();
        groups
    }

    /// The near-duplicates with one of the first `own` texts in them, in order; [`duplicates`](Self::duplicates) are not
    /// among them. Two texts that share nothing but boilerplate are not found.
    pub fn near(&self, own: usize) -> Vec<Pair> {
        let postings = self.postings();
        let mut pairs = Vec::new();
        let mut met: HashMap<usize, usize> = HashMap::new();
        for (first, shingles) in self.texts.iter().enumerate().take(own) {
            met.clear();
            for &shingle in shingles {
                let from = postings.partition_point(|&(hash, _)| hash < shingle);
                let holders = postings.iter().skip(from);
                for &(_, text) in holders.take_while(|&&(hash, _)| hash == shingle) {
                    if text as usize > first {
                        *met.entry(text as usize).or_default() += 1;
                    }
                }
            }
            let mut seconds: Vec<usize> = met.keys().copied().collect();
            seconds.sort_unstable();
            pairs.extend(
                seconds
                    .into_iter()
                    .filter_map(|second| self.pair(first, second)),
            );
        }
        pairs
    }

    fn pair(&self, first: usize, second: usize) -> Option<Pair> {
        let (one, other) = (self.texts.get(first)?, self.texts.get(second)?);
        // What cannot reach either bound is not counted out.
        let (least, most) = (one.len().min(other.len()), one.len().max(other.len()));
        if least < self.settings.least_shared && (least as f64) < self.settings.near * most as f64 {
            return None;
        }
        let overlap = shared(one, other);
        let same = overlap.shared == least && least == most;
        let near = overlap.jaccard() >= self.settings.near
            || (overlap.containment() >= self.settings.contained
                && overlap.shared >= self.settings.least_shared);
        (near && !same).then_some(Pair {
            first,
            second,
            overlap,
        })
    }

    /// Who has which shingle, sorted, without those that only one text has and those that too many have.
    fn postings(&self) -> Vec<(u64, u32)> {
        let mut all: Vec<(u64, u32)> = Vec::with_capacity(self.texts.iter().map(Vec::len).sum());
        for (number, text) in (0..u32::MAX).zip(&self.texts) {
            all.extend(text.iter().map(|&shingle| (shingle, number)));
        }
        all.sort_unstable();
        let mut kept = 0;
        let mut from = 0;
        while let Some(&(shingle, _)) = all.get(from) {
            let count = all[from..]
                .iter()
                .take_while(|&&(hash, _)| hash == shingle)
                .count();
            if (2..=self.settings.common.max(2)).contains(&count) {
                all.copy_within(from..from + count, kept);
                kept += count;
            }
            from += count;
        }
        all.truncate(kept);
        all.shrink_to_fit();
        all
    }
}
