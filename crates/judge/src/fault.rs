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
    /// Programs in a language cannot be judged here.
    #[error(
        "could not make ready a {language} program for problem {problem}, {tries} tries: {source}; the program is not to blame"
    )]
    Language {
        /// Problem id.
        problem: String,
        /// The language.
        language: String,
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
    /// The problem's output validator cannot decide: it does not compile, crashes, or reaches a limit.
    #[error(
        "the output validator of problem {} {}; the program that was judged is not to blame: correct the validator, or leave \
         the problem out",
        visible(.problem), visible(.what)
    )]
    Validator {
        /// Problem id.
        problem: String,
        /// What it did, on which test.
        what: String,
    },
    /// An output validator cannot be run here, though nothing may be wrong with it.
    #[error("problem {} needs its output validator, which cannot be run here: {}", visible(.problem), visible(.what))]
    NoValidator {
        /// Problem id.
        problem: String,
        /// What stands in the way.
        what: String,
    },
    /// The problem's tests call a function, and what runs programs here cannot.
    #[error(
        "problem {} is solved by a function, and the command that runs programs in place of the sandbox cannot call \
         any; leave `judge.command` (--backend) out, or the problem",
        visible(.problem)
    )]
    Calls {
        /// Problem id.
        problem: String,
    },
    /// The judge itself failed.
    #[error("the judge failed on problem {}: {}; this is a mistake in rlef, and says nothing of the problem", visible(.problem), visible(.what))]
    Panicked {
        /// Problem id.
        problem: String,
        /// The panic's message.
        what: String,
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
