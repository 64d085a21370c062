//! Seeded draws that do not depend on how any library turns random bits into ranges: the ChaCha8 stream is fixed by
//! its specification, and the few conversions needed are written out here.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

/// A source of draws that belongs to one purpose, so that adding a task or a test never shifts the draws of another.
pub(super) struct Draw(ChaCha8Rng);

impl Draw {
    /// The stream of `purpose` under `seed`.
    pub(super) fn new(seed: u64, purpose: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(seed.to_le_bytes());
        hash.update(purpose.as_bytes());
        Self(ChaCha8Rng::from_seed(hash.finalize().into()))
    }

    /// A number in `low..=high` (`low` when the range is empty). Multiply and shift: the bias is below 2^-24 for the
    /// ranges used here (under 256 values).
    pub(super) fn between(&mut self, low: u32, high: u32) -> u32 {
        let width = u64::from(high.saturating_sub(low)) + 1;
        let offset = (u64::from(self.0.next_u32()) * width) >> 32;
        low.saturating_add(u32::try_from(offset).unwrap_or(0))
    }

    /// True in one of two draws.
    pub(super) fn coin(&mut self) -> bool {
        self.between(0, 1) == 1
    }

    /// Fisher and Yates' shuffle.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.between(0, u32::try_from(last).unwrap_or(u32::MAX)) as usize;
            items.swap(last, other);
        }
    }

    /// `count` different numbers of `low..=high` in random order; fewer when the range holds fewer.
    pub(super) fn distinct(&mut self, low: u32, high: u32, count: u32) -> Vec<u32> {
        let mut all: Vec<u32> = (low..=high).collect();
        self.shuffle(&mut all);
        all.truncate(count as usize);
        all
    }
}
