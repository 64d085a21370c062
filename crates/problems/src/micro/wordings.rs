//! The statements of the family and the split that each belongs to.

use super::draw::Draw;
use super::tasks::{Task, Variant};
use super::{MicroConfig, MicroError};
use std::collections::BTreeSet;

/// Shuffles of the splits that are tried until the words of valid and test all occur in train.
const TRIES: u32 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Split {
    Train,
    Valid,
    Test,
}

/// One statement; all combinations of the hidden choices share it.
pub(super) struct Wording<'a> {
    /// As in `sort-017`.
    pub(super) id: String,
    pub(super) task: &'a Task,
    pub(super) variant: &'a Variant,
    pub(super) text: String,
    pub(super) split: Split,
}

/// The wordings of `tasks`, dealt to the splits variant by variant.
pub(super) fn deal<'a>(
    tasks: &'a [Task],
    config: &MicroConfig,
    seed: u64,
) -> Result<Vec<Wording<'a>>, MicroError> {
    let mut wordings = Vec::new();
    for task in tasks {
        let mut number = 0;
        for (at, variant) in task.variants.iter().enumerate() {
            // What does not divide evenly goes to the first variants.
            let share = config.wordings_per_task / task.variants.len()
                + usize::from(at < config.wordings_per_task % task.variants.len());
            let mut texts = texts(task, variant, config);
            if share < 3 || texts.len() < share {
                let (task, variant) = (task.name.as_str(), variant.name);
                return Err(MicroError::Wordings {
                    task,
                    variant,
                    wanted: share,
                    possible: texts.len(),
                });
            }
            Draw::new(
                seed,
                &format!("wordings/{}/{}", task.name.as_str(), variant.name),
            )
            .shuffle(&mut texts);
            texts.truncate(share);
            for text in texts {
                let id = format!("{}-{number:03}", task.name.as_str());
                number += 1;
                wordings.push(Wording {
                    id,
                    task,
                    variant,
                    text,
                    split: Split::Train,
                });
            }
        }
    }
    for attempt in 0..TRIES {
        let mut draw = Draw::new(seed, &format!("splits/{attempt}"));
        for of_one_variant in wordings.chunk_by_mut(|a, b| std::ptr::eq(a.variant, b.variant)) {
            assign(of_one_variant, config, &mut draw);
        }
        if train_has_every_word(&wordings) {
            return Ok(wordings);
        }
    }
    Err(MicroError::RareWords { tries: TRIES })
}

fn texts(task: &Task, variant: &Variant, config: &MicroConfig) -> Vec<String> {
    let mut texts = Vec::new();
    for opening in &config.openings {
        for verb in &config.verbs {
            for phrase in variant.phrases {
                texts.push(format!(
                    "{} {verb} {phrase}.",
                    opening.replace("{noun}", task.noun)
                ));
            }
        }
    }
    texts
}

/// At least one wording in each split.
fn assign(wordings: &mut [Wording], config: &MicroConfig, draw: &mut Draw) {
    let count = wordings.len();
    let share = |percent: usize| ((count * percent + 50) / 100).max(1);
    let valid = share(config.valid_percent);
    let test = share(config.test_percent);
    let mut splits: Vec<Split> = (0..count)
        .map(|at| match at {
            _ if at < valid => Split::Valid,
            _ if at < valid + test => Split::Test,
            _ => Split::Train,
        })
        .collect();
    draw.shuffle(&mut splits);
    for (wording, split) in wordings.iter_mut().zip(splits) {
        wording.split = split;
    }
}

fn train_has_every_word(wordings: &[Wording]) -> bool {
    let words = |train: bool| -> BTreeSet<&str> {
        let of_split = wordings
            .iter()
            .filter(|wording| (wording.split == Split::Train) == train);
        of_split
            .flat_map(|wording| words_of(&wording.text))
            .collect()
    };
    words(false).is_subset(&words(true))
}

/// The words of a statement without their punctuation.
pub(super) fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
}
