//! The audit of a problem set: do its tests, its limits and its known-right and known-wrong programs agree with each
//! other, and can it be learnt from and reported on?
//!
//! - [`check_all`] runs the programs of each problem and looks at its tests; a [`Record`] says what was found.
//! - [`Wording`] finds statements that are the same or nearly so, between splits and sets as well.
//! - [`SolveRates`] say which problems are too easy or too hard for a model that was evaluated on them.
//!
//! It changes nothing: what to do about a [`Finding`] is for people to decide. A fault of the machinery is a finding of
//! its own kind and never held against a problem.

mod assess;
mod calibration;
mod config;
mod engine;
mod finding;
mod language;
mod program;
mod record;
mod samples;
mod test_data;
mod wording;

pub use calibration::{Calibration, CalibrationError, SolveRates};
pub use config::AuditConfig;
pub use engine::{Done, Item, check_all};
pub use finding::{Finding, Kind, Severity};
pub use language::is_runnable;
pub use record::{Record, Verdicts, content_digest, settings_digest};
pub use wording::Wording;
