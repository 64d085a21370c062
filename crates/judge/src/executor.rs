//! What the judge needs of a sandbox, as a trait, so that the judge can be tested without one.

use std::sync::Arc;

use rlef_sandbox::{Limits, Outcome, Sandbox};

/// Any error of an executor. It says that the machinery failed, never that the program did.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Runs programs. An `Err` is a fault of the machinery; whatever the *program* did is in the [`Outcome`].
pub trait Executor: Send + Sync {
    /// Runs `source` with `stdin` under `limits`.
    ///
    /// # Errors
    /// When the program could not be run or its end could not be observed.
    fn run(&self, source: &str, stdin: &[u8], limits: &Limits) -> Result<Outcome, BoxError>;

    /// Whether `source` compiles, without running it: `None` if it does, else the compiler's message.
    ///
    /// # Errors
    /// When the check itself could not be made.
    fn syntax_check(&self, source: &str, limits: &Limits) -> Result<Option<String>, BoxError>;
}

impl Executor for Sandbox {
    fn run(&self, source: &str, stdin: &[u8], limits: &Limits) -> Result<Outcome, BoxError> {
        Ok(Sandbox::run(self, source, stdin, limits)?)
    }

    fn syntax_check(&self, source: &str, limits: &Limits) -> Result<Option<String>, BoxError> {
        Ok(Sandbox::syntax_check(self, source, limits)?)
    }
}

impl<E: Executor + ?Sized> Executor for Arc<E> {
    fn run(&self, source: &str, stdin: &[u8], limits: &Limits) -> Result<Outcome, BoxError> {
        (**self).run(source, stdin, limits)
    }

    fn syntax_check(&self, source: &str, limits: &Limits) -> Result<Option<String>, BoxError> {
        (**self).syntax_check(source, limits)
    }
}
