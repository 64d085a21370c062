//! A policy that guesses among a problem's stored programs and never looks at the feedback.
//!
//! It makes the dialogs from which a base model is fine-tuned: whatever the feedback says, its next answer is an
//! independent guess, so that a model that imitates it gains from a dialog no more than from a fresh try.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rlef_problems::{Problem, Solution};

use crate::{Answer, Ask, Policy, PolicyError, Reply, Session};

/// Guesses uniformly among the accepted solutions and the wrong ones whose class is `choice`.
#[derive(Debug, Clone, Copy, Default)]
pub struct GuessPolicy;

fn candidates(problem: &Problem) -> Vec<&Solution> {
    let mut all: Vec<&Solution> = problem
        .solutions
        .iter()
        .chain(
            problem
                .wrong_solutions
                .iter()
                .filter(|s| s.class.as_deref() == Some("choice")),
        )
        .collect();
    // By text, so that a guess does not depend on which candidate happens to be the accepted one.
    all.sort_by(|a, b| a.code.cmp(&b.code));
    all
}

impl Policy for GuessPolicy {
    fn open(&self) -> Box<dyn Session + '_> {
        Box::new(*self)
    }
}

impl Session for GuessPolicy {
    fn answer(&mut self, asks: &[Ask]) -> Result<Vec<Reply>, PolicyError> {
        asks.iter()
            .map(|ask| {
                let all = candidates(ask.problem);
                if all.is_empty() {
                    return Err(PolicyError::NoAnswer {
                        problem: ask.problem.id.clone(),
                        why: "it has no solutions to guess among".into(),
                    });
                }
                let mut rng = ChaCha8Rng::from_seed(ask.seed);
                let code = &all[rng.random_range(0..all.len())].code;
                Ok(Reply::Answer(Answer {
                    text: format!("```python\n{}\n```", code.trim_end()),
                    prompt: vec![],
                    tokens: vec![],
                    version: 0,
                    finished: true,
                }))
            })
            .collect()
    }
}
