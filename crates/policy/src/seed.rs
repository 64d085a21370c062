//! Seeds that belong to the dialog: the same whatever batch, thread or order it is answered in.

use sha2::{Digest, Sha256};

/// The seed of one answer: a hash of the run's seed, the problem, the number of the rollout on it, and the turn.
pub fn dialog_seed(run: u64, problem: &str, sample: u64, turn: usize) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(run.to_le_bytes());
    hash.update(sample.to_le_bytes());
    hash.update((turn as u64).to_le_bytes());
    hash.update(problem.as_bytes());
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_matters() {
        let base = dialog_seed(1, "p", 2, 3);
        assert_eq!(base, dialog_seed(1, "p", 2, 3));
        for other in [
            dialog_seed(2, "p", 2, 3),
            dialog_seed(1, "q", 2, 3),
            dialog_seed(1, "p", 3, 3),
            dialog_seed(1, "p", 2, 4),
            dialog_seed(2, "p", 1, 3),
        ] {
            assert_ne!(base, other);
        }
    }
}
