//! What an audit found, as a table and as JSON.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use rlef_judge::audit::{Kind, Record, Severity, SolveRates};
use serde_json::{Value, json};

use crate::args::Check;
use crate::text;

/// Problems in the table.
const PROBLEMS: usize = 20;
/// Findings of each.
const FINDINGS: usize = 5;
/// Longest line, in characters.
const LINE: usize = 220;

/// Counts over a set.
pub struct Summary {
    set: String,
    split: Option<String>,
    problems: usize,
    reused: usize,
    with_errors: usize,
    with_warnings: usize,
    not_checked: usize,
    /// Problems and findings.
    kinds: BTreeMap<(std::cmp::Reverse<Severity>, Kind), (usize, usize)>,
    /// By expected verdict and the one that was got.
    verdicts: BTreeMap<String, BTreeMap<String, u64>>,
    /// Problems of the evaluation that the set has.
    evaluated: Option<usize>,
}

impl Summary {
    /// Counts.
    pub fn new(
        args: &Check,
        records: &[Record],
        reused: usize,
        rates: Option<&SolveRates>,
    ) -> Self {
        let having = |what: &dyn Fn(&Record) -> bool| records.iter().filter(|r| what(r)).count();
        let mut kinds: BTreeMap<_, (usize, usize)> = BTreeMap::new();
        let mut verdicts: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for record in records {
            let mut met = HashSet::new();
            for finding in &record.findings {
                let key = (std::cmp::Reverse(finding.severity), finding.kind);
                let counts = kinds.entry(key).or_default();
                counts.0 += usize::from(met.insert(key));
                counts.1 += 1;
            }
            for (expected, got) in &record.verdicts {
                for (got, count) in got {
                    let counts = verdicts.entry(expected.clone()).or_default();
                    *counts.entry(got.clone()).or_default() += count;
                }
            }
        }
        Self {
            set: args.set.clone(),
            split: args.split.clone(),
            problems: records.len(),
            reused,
            with_errors: having(&Record::has_errors),
            with_warnings: having(&|r| r.severity() == Some(Severity::Warning)),
            not_checked: having(&Record::is_incomplete),
            kinds,
            verdicts,
            evaluated: rates.map(|rates| having(&|r| rates.knows(&r.problem))),
        }
    }

    /// For people.
    pub fn table(&self, records: &[Record]) -> String {
        let mut said = String::new();
        let split = match &self.split {
            Some(split) => format!("/{split}"),
            None => String::new(),
        };
        let mut line = format!(
            "{}{split}: {} problems, {} with errors, {} with warnings, {} not checked",
            self.set, self.problems, self.with_errors, self.with_warnings, self.not_checked
        );
        if self.reused > 0 {
            let _ = write!(line, " ({} known from before)", self.reused);
        }
        if let Some(evaluated) = self.evaluated {
            let _ = write!(line, "; {evaluated} of them in the evaluation");
        }
        said += &line;
        said.push('\n');
        if !self.verdicts.is_empty() {
            said += &format!("\nprograms\n{}", self.programs());
        }
        if !self.kinds.is_empty() {
            let mut rows = vec![];
            for ((severity, kind), (problems, findings)) in &self.kinds {
                rows.push(vec![
                    severity.0.to_string(),
                    kind.to_string(),
                    format!("{problems} problems"),
                    if findings > problems {
                        format!("{findings} findings")
                    } else {
                        String::new()
                    },
                ]);
            }
            said += &format!("\nfindings\n{}", text::columns(&rows, "  "));
        }
        said + &self.worst(records)
    }

    /// A line for each expected verdict.
    fn programs(&self) -> String {
        let mut rows = vec![];
        for (expected, got) in &self.verdicts {
            let all: u64 = got.values().sum();
            let ran = all - got.get("not run").unwrap_or(&0) - got.get("not checked").unwrap_or(&0);
            let agree: u64 = got
                .iter()
                .filter(|(got, _)| agrees(expected, got))
                .map(|(_, count)| count)
                .sum();
            let others: Vec<String> = got
                .iter()
                .filter(|(got, _)| !agrees(expected, got))
                .map(|(got, count)| format!("{count} {got}"))
                .collect();
            rows.push(vec![
                format!("expected {expected}"),
                format!("{agree} of {ran} agree"),
                others.join(", "),
            ]);
        }
        text::columns(&rows, "  ")
    }

    /// Problems with errors, then those not checked, then those with warnings; the most findings first.
    fn worst(&self, records: &[Record]) -> String {
        let mut worst: Vec<&Record> = records
            .iter()
            .filter(|record| record.severity() > Some(Severity::Note))
            .collect();
        worst.sort_by_key(|record| {
            let most = record.severity();
            let count = record
                .findings
                .iter()
                .filter(|f| Some(f.severity) == most)
                .count();
            std::cmp::Reverse((most, count))
        });
        let mut said = String::new();
        for record in worst.iter().take(PROBLEMS) {
            let place = match &record.split {
                Some(split) => format!(" ({split})"),
                None => String::new(),
            };
            said += &format!("\n{}{place}\n", text::line(&record.problem, 80));
            let told: Vec<_> = record
                .findings
                .iter()
                .filter(|finding| finding.severity > Severity::Note)
                .collect();
            for finding in told.iter().take(FINDINGS) {
                let line = format!(
                    "{}: {}: {}",
                    finding.severity, finding.kind, finding.message
                );
                said += &format!("  {}\n", text::line(&line, LINE));
            }
            if told.len() > FINDINGS {
                said += &format!("  … and {} more findings\n", told.len() - FINDINGS);
            }
        }
        if worst.len() > PROBLEMS {
            said += &format!(
                "\n… and {} more problems (--out FILE or --json has all)\n",
                worst.len() - PROBLEMS
            );
        }
        said
    }

    /// For programs.
    pub fn json(&self, records: &[Record]) -> Value {
        let kinds: Vec<Value> = self
            .kinds
            .iter()
            .map(|((severity, kind), (problems, findings))| {
                json!({ "severity": severity.0, "kind": kind, "problems": problems, "findings": findings })
            })
            .collect();
        let told: Vec<Value> = records
            .iter()
            .filter(|record| record.severity() > Some(Severity::Note))
            .map(|record| {
                json!({ "problem": record.problem, "split": record.split, "findings": record.findings })
            })
            .collect();
        json!({
            "set": self.set,
            "split": self.split,
            "problems": self.problems,
            "reused": self.reused,
            "with_errors": self.with_errors,
            "with_warnings": self.with_warnings,
            "not_checked": self.not_checked,
            "verdicts": self.verdicts,
            "findings": kinds,
            "told": told,
        })
    }
}

/// `NOT_AC` is any failure.
fn agrees(expected: &str, got: &str) -> bool {
    let failing = got != "AC" && !got.starts_with("not ");
    expected == got || (expected == "NOT_AC" && failing)
}
