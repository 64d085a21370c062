//! What is known of a problem after it was checked, as it stands in a file of results.

use std::collections::BTreeMap;

use rlef_problems::Problem;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::AuditConfig;
use super::finding::{Finding, Severity};
use crate::config::JudgeConfig;

/// Programs by the verdict that they should get and the one that they got (or `not run`, `not checked`).
pub type Verdicts = BTreeMap<String, BTreeMap<String, u64>>;

/// The result for one problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The problem's id.
    pub problem: String,
    /// The split that it is in, if the set has any.
    pub split: Option<String>,
    /// Of all that the problem is; see [`content_digest`].
    pub digest: String,
    /// Of the settings that it was checked with; see [`settings_digest`].
    pub settings: String,
    /// How many tests there are: public, private, generated.
    pub tests: [usize; 3],
    /// Known programs and what became of them.
    pub verdicts: Verdicts,
    /// CPU seconds of the slowest accepted program on its slowest test.
    pub slowest_s: Option<f64>,
    /// CPU seconds that are allowed.
    pub limit_s: f64,
    /// What was found, worst first.
    pub findings: Vec<Finding>,
}

impl Record {
    /// The worst of its findings.
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// Whether something is wrong with the problem. What could not be checked is not.
    pub fn has_errors(&self) -> bool {
        self.severity() == Some(Severity::Error)
    }

    /// Whether the machinery failed somewhere, so that it is worth checking again.
    pub fn is_incomplete(&self) -> bool {
        let not_checked = |finding: &Finding| finding.severity == Severity::NotChecked;
        self.findings.iter().any(not_checked)
    }

    /// Puts what comes from the whole set, or from an evaluation, in place of what was known of that.
    pub fn set_findings(&mut self, of_set: impl IntoIterator<Item = Finding>) {
        self.findings.retain(|finding| !finding.kind.is_of_set());
        self.findings.extend(of_set);
        self.findings
            .sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.kind));
    }
}

/// Changes when what is found of a problem changes though neither it nor the settings do.
const VERSION: u32 = 1;

/// A digest of everything in a problem: one that is the same need not be checked again.
pub fn content_digest(problem: &Problem) -> String {
    digest(problem)
}

/// A digest of the settings that what is found depends on.
pub fn settings_digest(audit: &AuditConfig, judge: &JudgeConfig) -> String {
    digest(&(VERSION, audit, judge))
}

fn digest(what: &impl Serialize) -> String {
    let text = serde_json::to_vec(what).unwrap_or_default();
    let hash = Sha256::digest(&text);
    // Half of it is enough to tell problems apart.
    hash.iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
