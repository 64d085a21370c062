//! Statements that are the same or nearly so: within a split, between splits, and in other sets (contamination).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use rlef_problems::{Overlap, SimilarTexts, Similarity};

use super::finding::{Finding, Kind, Severity};

/// Others that one finding names.
const NAMED: usize = 3;

struct Entry {
    /// The other set that it is in; none: the set that is looked at.
    set: Option<String>,
    split: Option<String>,
    id: String,
    /// Of the text without its case and the amount of its white space.
    text: u64,
}

/// The statements of a set, and then of others.
pub struct Wording {
    texts: SimilarTexts,
    entries: Vec<Entry>,
    own: usize,
}

/// How the other statement lies to the one that gets the finding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Other {
    InSplit,
    InSet,
    Elsewhere,
}

/// A likeness, to the one that gets the finding.
struct Match {
    kind: Kind,
    relation: Other,
    /// The other one.
    other: usize,
    /// None: all of it.
    overlap: Option<Overlap>,
}

impl Match {
    fn likeness(&self) -> f64 {
        self.overlap.map_or(1.0, |overlap| overlap.containment())
    }
}

impl Wording {
    /// Nothing yet.
    pub fn new(settings: Similarity) -> Self {
        Self {
            texts: SimilarTexts::new(settings),
            entries: Vec::new(),
            own: 0,
        }
    }

    /// Adds a statement of the set, in the set's order and before any of another set. They are numbered from 0.
    pub fn add_own(&mut self, split: Option<&str>, id: &str, statement: &str) {
        self.add(None, split, id, statement);
        self.own = self.entries.len();
    }

    /// Adds a statement of another set.
    pub fn add_other(&mut self, set: &str, split: Option<&str>, id: &str, statement: &str) {
        self.add(Some(set), split, id, statement);
    }

    fn add(&mut self, set: Option<&str>, split: Option<&str>, id: &str, statement: &str) {
        let mut hasher = DefaultHasher::new();
        for word in statement.split_whitespace() {
            word.to_lowercase().hash(&mut hasher);
        }
        self.texts.add(statement);
        self.entries.push(Entry {
            set: set.map(str::to_owned),
            split: split.map(str::to_owned),
            id: id.to_owned(),
            text: hasher.finish(),
        });
    }

    /// Findings by the number of the statement that gets them. Of two in one split that is the later one; of two in
    /// different splits the earlier one, so that it is the training problem which has to go; and of two in different sets
    /// the one of the set that is looked at.
    pub fn findings(&self) -> HashMap<usize, Vec<Finding>> {
        let mut matches: HashMap<usize, Vec<Match>> = HashMap::new();
        let mut add = |first: usize, second: usize, overlap: Option<Overlap>| {
            let Some((whose, kind, relation, other)) = self.relation(first, second) else {
                return;
            };
            matches.entry(whose).or_default().push(Match {
                kind,
                relation,
                other,
                overlap,
            });
        };
        for group in self.texts.duplicates() {
            for (at, &first) in group.iter().enumerate() {
                if first >= self.own {
                    break;
                }
                // Elsewhere a few, in its own split the first: enough to say that there are others.
                let others = group.iter().skip(at + 1).copied();
                let elsewhere = others.filter(|&other| !self.in_one_split(first, other));
                for other in elsewhere.take(NAMED) {
                    add(first, other, None);
                }
                let mut earlier = group.iter().take(at).copied();
                if let Some(other) = earlier.find(|&other| self.in_one_split(first, other)) {
                    add(other, first, None);
                }
            }
        }
        for pair in self.texts.near(self.own) {
            add(pair.first, pair.second, Some(pair.overlap));
        }
        matches
            .into_iter()
            .map(|(whose, matches)| (whose, self.findings_of(matches)))
            .collect()
    }

    fn in_one_split(&self, first: usize, second: usize) -> bool {
        let (Some(one), Some(other)) = (self.entries.get(first), self.entries.get(second)) else {
            return false;
        };
        one.set == other.set && one.split == other.split
    }

    /// Whose finding it is, what kind, how the other one lies, and which that is. `first` is the earlier one.
    fn relation(&self, first: usize, second: usize) -> Option<(usize, Kind, Other, usize)> {
        let (one, other) = (self.entries.get(first)?, self.entries.get(second)?);
        let kind = if one.text == other.text {
            Kind::Duplicate
        } else {
            Kind::NearDuplicate
        };
        Some(if other.set.is_some() {
            (first, kind, Other::Elsewhere, second)
        } else if one.split == other.split {
            (second, kind, Other::InSplit, first)
        } else {
            (first, kind, Other::InSet, second)
        })
    }

    fn findings_of(&self, mut matches: Vec<Match>) -> Vec<Finding> {
        matches.sort_by(|a, b| {
            (a.kind, a.relation)
                .cmp(&(b.kind, b.relation))
                .then(b.likeness().total_cmp(&a.likeness()))
                .then(a.other.cmp(&b.other))
        });
        let groups = matches.chunk_by(|a, b| (a.kind, a.relation) == (b.kind, b.relation));
        groups
            .filter_map(|group| {
                let Match { kind, relation, .. } = *group.first()?;
                let mut others: Vec<String> = group
                    .iter()
                    .take(NAMED)
                    .map(|found| self.named(found.other, found.overlap.as_ref()))
                    .collect();
                if group.len() > NAMED {
                    others.push(format!("{} more", group.len() - NAMED));
                }
                let what = match kind {
                    Kind::Duplicate => "the same statement as",
                    _ => "nearly the same statement as",
                };
                let finding = Finding::new(kind, format!("{what} {}", others.join(", ")));
                Some(match (kind, relation) {
                    // Twice in one split is a waste, no wrong result.
                    (Kind::Duplicate, Other::InSplit) => finding.with(Severity::Warning),
                    _ => finding,
                })
            })
            .collect()
    }

    fn named(&self, number: usize, overlap: Option<&Overlap>) -> String {
        let Some(entry) = self.entries.get(number) else {
            return String::new();
        };
        let place = match (&entry.set, &entry.split) {
            (Some(set), Some(split)) => format!(" in {set}/{split}"),
            (Some(set), None) => format!(" in {set}"),
            (None, Some(split)) => format!(" in {split}"),
            (None, None) => String::new(),
        };
        let shares = overlap.map_or(String::new(), |overlap| {
            format!(
                " ({} of {} n-grams shared, Jaccard {:.2})",
                overlap.shared,
                overlap.first.min(overlap.second),
                overlap.jaccard()
            )
        });
        format!("`{}`{place}{shares}", super::assess::shown(&entry.id))
    }
}
