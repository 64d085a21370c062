//! What has been seen of a run so far, and how it is shown.

use std::path::Path;

use anyhow::Result;

use super::folder::Line;
use crate::plot::{self, curve};

/// Shares of problems solved, by iteration.
#[derive(Default)]
pub struct History {
    /// Rollouts learned from, solved within the dialog.
    pub solved: Vec<(f64, f64)>,
    /// Rollouts learned from, solved by the first answer.
    pub first: Vec<(f64, f64)>,
    /// 1@(turns) on the valid split.
    pub valid: Vec<(f64, f64)>,
    /// Time spent in iterations.
    pub seconds: f64,
}

impl History {
    /// Takes up a line of the metrics; `turns` is the number of turns of a dialog.
    pub fn add(&mut self, line: &Line, turns: usize) {
        let step = line.step as f64;
        let mut put = |name: &str, to: fn(&mut Self) -> &mut Vec<(f64, f64)>| {
            if let Some(&x) = line.metrics.get(name) {
                to(self).push((step, x));
            }
        };
        put("solved", |h| &mut h.solved);
        put("solved_first_turn", |h| &mut h.first);
        put(&format!("val/1@{turns}"), |h| &mut h.valid);
    }

    /// The curve as SVG.
    pub fn plot(&self, path: &Path, title: &str, turns: usize) -> Result<()> {
        let lines = [
            plot::Line {
                name: format!("rollouts, within {turns} turns"),
                points: self.solved.clone(),
                colour: (150, 190, 230),
                marked: false,
            },
            plot::Line {
                name: "rollouts, first turn".into(),
                points: self.first.clone(),
                colour: (190, 190, 190),
                marked: false,
            },
            plot::Line {
                name: format!("valid 1@{turns}"),
                points: self.valid.clone(),
                colour: (20, 90, 170),
                marked: true,
            },
        ];
        curve(path, title, &lines)
    }

    /// What there is to say of a run that was stopped; nothing if it had not begun.
    pub fn table(&self, turns: usize) -> Option<String> {
        if self.valid.is_empty() && self.solved.is_empty() {
            return None;
        }
        let mut lines = vec![format!("iteration  1@{turns} (valid)")];
        for (i, x) in &self.valid {
            lines.push(format!("{i:>9}  {x:.2}"));
        }
        if let Some((i, x)) = self.solved.last() {
            lines.push(format!("{i:>9}  {x:.2} (rollouts of the last iteration)"));
        }
        Some(lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_run_says_what_it_has() {
        assert_eq!(History::default().table(3), None);
        let h = History {
            solved: vec![(1.0, 0.25), (2.0, 0.5)],
            valid: vec![(0.0, 0.31)],
            ..History::default()
        };
        assert_eq!(
            h.table(3).unwrap(),
            "iteration  1@3 (valid)\n        0  0.31\n        2  0.50 (rollouts of the last iteration)"
        );
    }
}
