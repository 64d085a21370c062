//! A fault: the machinery failed. It is a type of its own so that it can never become a verdict or a reward.

use rlef_problems::CheckerError;
use rlef_sandbox::visible;

use crate::executor::BoxError;

/// Why no report could be made. None of these says anything about the program.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The sandbox failed, also when asked again.
    #[error(
        "could not run the program on test {} of problem {}, {tries} tries: {}; \
         the program is not to blame: leave the sample out, and check the sandbox if this repeats",
        visible(.test), visible(.problem), visible(.source)
    )]
    Execution {
        /// Problem id.
        problem: String,
        /// Test name.
        test: String,
        /// How often it was tried.
        tries: u32,
        /// What the sandbox said last.
        source: BoxError,
    },
    /// The problem's checker cannot compare outputs.
    #[error("cannot judge problem {}: {source}", visible(.problem))]
    Checker {
        /// Problem id.
        problem: String,
        /// What the checker said.
        source: CheckerError,
    },
    /// There is nothing to judge by; passing none of none is not passing.
    #[error(
        "problem {} was judged on an empty list of tests, which no program can pass or fail; give it tests or leave it out",
        visible(.problem)
    )]
    NoTests {
        /// Problem id.
        problem: String,
    },
    /// The limits of a problem and the factors of the configuration give no usable limit.
    #[error(
        "problem {}: {what}; correct the limits in the problem file or the factors in the judge settings",
        visible(.problem)
    )]
    Limits {
        /// Problem id.
        problem: String,
        /// Which limit and why.
        what: String,
    },
    /// A setting of the judge is out of range.
    #[error("judge setting `{setting}` {what}")]
    Setting {
        /// The setting's name.
        setting: &'static str,
        /// What is wrong and what is allowed.
        what: String,
    },
}
