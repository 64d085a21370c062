//! Which programs an audit can run.

use crate::judge::Judge;

/// Whether programs in `language`, as a problem names it, can be run by this judge. Others are counted as not run: that
/// no compiler is here says nothing about a program.
pub fn is_runnable(judge: &Judge, language: &str) -> bool {
    judge.can_run(&language.to_ascii_lowercase())
}
