//! Seeded choices. They depend on the seed alone, never on a shared generator, so that an episode is the same in
//! whatever order and on whatever thread it is run.

use std::sync::Arc;

use rlef_problems::{Problem, Solution};

/// One step of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014), which turns
/// neighbouring seeds into unrelated numbers.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number below `count` that depends on `seed` and `turn`; 0 if `count` is 0.
fn below(count: usize, seed: u64, turn: u64) -> usize {
    // The bias of the remainder is below 2⁻³⁰ for any list that fits in memory.
    (mix(mix(seed) ^ turn) % count.max(1) as u64) as usize
}

/// The wrong solutions that can be run.
fn wrong_solutions(problem: &Problem) -> Vec<&Solution> {
    let python = |s: &&Solution| {
        matches!(
            s.language.to_ascii_lowercase().as_str(),
            "python" | "python3" | "py"
        )
    };
    problem.wrong_solutions.iter().filter(python).collect()
}

/// A wrong solution of the donor, another one on another turn.
pub(crate) fn choose_wrong(donor: &Problem, seed: u64, turn: u64) -> Option<&Solution> {
    let solutions = wrong_solutions(donor);
    solutions.get(below(solutions.len(), seed, turn)).copied()
}

/// Chooses the problem that gives random feedback for problem `id`: another one of the same split, one with wrong
/// solutions if there is any. `None` if the split has no other problem with public tests.
pub fn choose_donor(split: &[Arc<Problem>], id: &str, seed: u64) -> Option<Arc<Problem>> {
    let others: Vec<_> = split
        .iter()
        .filter(|p| p.id != id && !p.public_tests.is_empty())
        .collect();
    let with_wrong: Vec<_> = others
        .iter()
        .copied()
        .filter(|p| !wrong_solutions(p).is_empty())
        .collect();
    let pool = if with_wrong.is_empty() {
        others
    } else {
        with_wrong
    };
    pool.get(below(pool.len(), seed, u64::MAX))
        .map(|p| Arc::clone(p))
}
