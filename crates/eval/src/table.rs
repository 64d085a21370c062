//! Scores side by side, for people (a table that is also Markdown) and for programs (JSON).

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::bootstrap::{Difference, Score};

/// The scores of one condition: a model, a kind of feedback, a way to spend the budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// What it is called in the table.
    pub name: String,
    /// Its scores.
    pub scores: Vec<Score>,
}

/// A comparison of two conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedDifference {
    /// What it is called in the table.
    pub name: String,
    /// First minus second.
    #[serde(flatten)]
    pub difference: Difference,
}

/// Everything an evaluation has to say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// Comparisons between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<NamedDifference>,
}

impl Summary {
    /// The table: a row for each condition, a column for each n@k, then what was lost to faults, then the comparisons.
    pub fn table(&self) -> String {
        let mut columns: Vec<String> = Vec::new();
        for score in self.conditions.iter().flat_map(|c| &c.scores) {
            let column = score.budget.to_string();
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        let mut head = vec![String::new()];
        head.extend(columns.iter().cloned());
        head.extend([
            "problems".to_owned(),
            "rollouts".to_owned(),
            "lost".to_owned(),
        ]);
        let rows = self.conditions.iter().map(|condition| {
            let mut row = vec![condition.name.clone()];
            row.extend(columns.iter().map(|column| {
                let score = condition
                    .scores
                    .iter()
                    .find(|s| s.budget.to_string() == *column);
                score.map_or_else(|| "-".to_owned(), |s| s.estimate.to_string())
            }));
            let most =
                |count: fn(&Score) -> usize| condition.scores.iter().map(count).max().unwrap_or(0);
            let left_out = most(|s| s.problems_left_out);
            let problems = condition
                .scores
                .iter()
                .map(|s| s.problems)
                .min()
                .unwrap_or(0);
            row.push(match left_out {
                0 => problems.to_string(),
                left_out => format!("{problems} ({left_out} left out)"),
            });
            row.push(most(|s| s.rollouts).to_string());
            row.push(most(|s| s.rollouts_lost).to_string());
            row
        });
        let mut text = aligned(&head, &rows.collect::<Vec<_>>());
        if !self.differences.is_empty() {
            let head = [
                "difference".to_owned(),
                "value".to_owned(),
                "problems".to_owned(),
                "beyond chance".to_owned(),
            ];
            let rows = self.differences.iter().map(|named| {
                let difference = &named.difference;
                let estimate = difference.estimate;
                vec![
                    named.name.clone(),
                    format!(
                        "{:+.3} [{:+.3}, {:+.3}]",
                        estimate.value, estimate.low, estimate.high
                    ),
                    difference.problems.to_string(),
                    if difference.is_significant() {
                        "yes"
                    } else {
                        "no"
                    }
                    .to_owned(),
                ]
            });
            text.push('\n');
            text.push_str(&aligned(&head, &rows.collect::<Vec<_>>()));
        }
        text
    }
}

/// A Markdown table whose columns line up.
fn aligned(head: &[String], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(column))
            .chain(head.get(column));
        cells
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
            .max(3)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    let mut line = |cells: &[String]| {
        for (cell, width) in cells.iter().zip(&widths) {
            // Writing to a string cannot fail.
            let _ = write!(text, "| {cell:<width$} ");
        }
        text.push_str("|\n");
    };
    line(head);
    line(
        &widths
            .iter()
            .map(|width| "-".repeat(*width))
            .collect::<Vec<_>>(),
    );
    for row in rows {
        line(row);
    }
    text
}
