//! Which programs an audit can run.

use crate::judge::Judge;

/// Whether programs in `language`, as a problem names it, can be run by this judge. Others are counted as not run: that
/// no compiler is here says nothing about a program.
pub fn is_runnable(_judge: &Judge, language: &str) -> bool {
    matches!(language.to_ascii_lowercase().as_str(), "python" | "python3")
}
