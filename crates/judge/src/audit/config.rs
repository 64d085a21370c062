//! The audit's settings.

use serde::{Deserialize, Serialize};

/// Settings of [`check_all`](super::check_all).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditConfig {
    /// How often each accepted program is run, at least 1. Default 3: outputs that differ show that it is not
    /// deterministic.
    pub repeats: u32,
    /// At most so many accepted and so many wrong programs of a problem are run, the first ones. Default: all.
    pub programs: Option<usize>,
    /// A program that met the time limit this often is not run on further tests, at least 1. Default 1: each
    /// costs the whole limit.
    pub time_limits: usize,
    /// A time limit should be at least so many times the CPU time of the slowest accepted program. Default 2, the
    /// `time_multiplier` from the slowest accepted submission to the limit in the ICPC package format.
    pub margin: f64,
    /// Shortest private output, white space folded, that means something where it is found elsewhere, in characters.
    /// Default 24.
    pub leak_chars: usize,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self {
            repeats: 3,
            programs: None,
            time_limits: 1,
            margin: 2.0,
            leak_chars: 24,
        }
    }
}
