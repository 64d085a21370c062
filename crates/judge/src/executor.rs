//! What the judge needs of a sandbox, as a trait, so that the judge can be tested without one.

use std::sync::Arc;

use rlef_sandbox::{
    Called, Ending, External, Given, Limits, Outcome, PYTHON, Prepared, Program, Sandbox, Sources,
};

/// Any error of an executor. It says that the machinery failed, never that the program did.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What came of making a program ready.
pub enum Compiled<'a> {
    /// It can be run.
    Program(Box<dyn Candidate + 'a>),
    /// It does not compile; the compiler's message.
    Error(String),
}

/// Runs programs. What names no language is for Python. An `Err` is a fault of the machinery; whatever the *program* did is in the [`Outcome`].
pub trait Executor: Send + Sync {
    /// Runs `source` with `stdin` under `limits`.
    ///
    /// # Errors
    /// When the program could not be run or its end could not be observed.
    fn run(&self, source: &str, stdin: &[u8], limits: &Limits) -> Result<Outcome, BoxError>;

    /// Runs `source` and calls its function with `arguments`, a JSON array.
    ///
    /// # Errors
    /// When that could not be done or its end could not be observed. An executor that knows no functions says so.
    fn call(
        &self,
        source: &str,
        function: &str,
        arguments: &str,
        limits: &Limits,
    ) -> Result<Called, BoxError> {
        let _ = (source, arguments, limits);
        Err(
            format!("this executor cannot call functions, as the tests ask for with `{function}`")
                .into(),
        )
    }

    /// `source`, to be run on several tests: as so many runs, but what can be done once is.
    fn candidate<'a>(&'a self, source: &'a str) -> Box<dyn Candidate + 'a> {
        Box::new(Plain {
            executor: self,
            source,
        })
    }

    /// Whether it can run programs in this language: it knows it, and what that needs is there.
    fn can_run(&self, language: &str) -> bool {
        let source = "";
        (Program { language, source }).is_python()
    }

    /// Whether it can call functions.
    fn calls(&self) -> bool {
        false
    }

    /// Whether programs can be run under these limits at all.
    ///
    /// # Errors
    /// What stands in the way.
    fn check(&self, limits: &Limits) -> Result<(), BoxError> {
        Ok(limits.check()?)
    }

    /// A program in any language, compiled if it has to be. A Python program need not be looked at: what is wrong with it
    /// shows when it is run. An executor that knows other languages than Python says so by its own version of this.
    ///
    /// # Errors
    /// When that could not be done, or the language is not known.
    fn compile<'a>(&'a self, program: Program<'a>) -> Result<Compiled<'a>, BoxError> {
        match program.is_python() {
            true => Ok(Compiled::Program(self.candidate(program.source))),
            false => Err(only_python(program.language)),
        }
    }

    /// Whether it can run programs of several files with files and arguments, as output validators are.
    fn validates(&self) -> bool {
        false
    }

    /// Makes an output validator ready, compiling it if it has to be: or what the compiler says.
    ///
    /// # Errors
    /// When that could not be done.
    fn prepare(&self, validator: &Sources) -> Result<Result<Prepared, String>, BoxError> {
        Err(format!(
            "this executor runs no output validators, as `{}` is one",
            validator.entry
        )
        .into())
    }

    /// Runs a validator that [`Executor::prepare`] has made ready. The second part is the file that it was to keep.
    ///
    /// # Errors
    /// When that could not be done or its end could not be observed.
    fn validate(
        &self,
        validator: &Prepared,
        stdin: &[u8],
        given: &Given,
        limits: &Limits,
    ) -> Result<(Outcome, Option<Vec<u8>>), BoxError> {
        let _ = (validator, stdin, given, limits);
        Err("this executor runs no output validators".into())
    }

    /// What a problem's time limit is multiplied by for programs in a language, where the settings say nothing.
    ///
    /// # Errors
    /// When the language is not known.
    fn time_factor(&self, language: &str) -> Result<f64, BoxError> {
        let source = "";
        match (Program { language, source }).is_python() {
            true => Ok(1.0),
            false => Err(only_python(language)),
        }
    }

    /// Whether `source` compiles, without running it: `None` if it does, else the compiler's message.
    ///
    /// # Errors
    /// When the check itself could not be made.
    fn syntax_check(&self, source: &str, limits: &Limits) -> Result<Option<String>, BoxError>;
}

fn only_python(language: &str) -> BoxError {
    format!("this executor runs {PYTHON} programs only, not `{language}`").into()
}

/// A program that is to be run on several tests.
pub trait Candidate {
    /// As [`Executor::run`].
    ///
    /// # Errors
    /// As there.
    fn run(&self, stdin: &[u8], limits: &Limits) -> Result<Outcome, BoxError>;

    /// As [`Executor::call`].
    ///
    /// # Errors
    /// As there.
    fn call(&self, function: &str, arguments: &str, limits: &Limits) -> Result<Called, BoxError>;
}

/// A candidate of an executor that does nothing once for all.
struct Plain<'a, E: ?Sized> {
    executor: &'a E,
    source: &'a str,
}

impl<E: Executor + ?Sized> Candidate for Plain<'_, E> {
    fn run(&self, stdin: &[u8], limits: &Limits) -> Result<Outcome, BoxError> {
        self.executor.run(self.source, stdin, limits)
    }

    fn call(&self, function: &str, arguments: &str, limits: &Limits) -> Result<Called, BoxError> {
        self.executor.call(self.source, function, arguments, limits)
    }
}

impl Candidate for rlef_sandbox::Candidate<'_> {
    fn run(&self, stdin: &[u8], limits: &Limits) -> Result<Outcome, BoxError> {
        Ok(Self::run(self, stdin, limits)?)
    }

    fn call(&self, function: &str, arguments: &str, limits: &Limits) -> Result<Called, BoxError> {
        Ok(Self::call(self, function, arguments, limits)?)
    }
}

impl Executor for Sandbox {
    fn run(&self, source: &str, stdin: &[u8], limits: &Limits) -> Result<Outcome, BoxError> {
        Ok(Sandbox::run(self, source, stdin, limits)?)
    }

    fn call(
        &self,
        source: &str,
        function: &str,
        arguments: &str,
        limits: &Limits,
    ) -> Result<Called, BoxError> {
        Ok(Sandbox::call(self, source, function, arguments, limits)?)
    }

    fn candidate<'a>(&'a self, source: &'a str) -> Box<dyn Candidate + 'a> {
        Box::new(Sandbox::candidate(self, source))
    }

    fn can_run(&self, language: &str) -> bool {
        Sandbox::can_run(self, language)
    }

    fn calls(&self) -> bool {
        true
    }

    fn check(&self, limits: &Limits) -> Result<(), BoxError> {
        Ok(Sandbox::check(self, limits)?)
    }

    fn compile<'a>(&'a self, program: Program<'a>) -> Result<Compiled<'a>, BoxError> {
        Ok(match Sandbox::compile(self, &program)? {
            rlef_sandbox::Compiled::Program(candidate) => Compiled::Program(Box::new(candidate)),
            rlef_sandbox::Compiled::Error(error) => Compiled::Error(error.message),
        })
    }

    fn validates(&self) -> bool {
        true
    }

    fn prepare(&self, validator: &Sources) -> Result<Result<Prepared, String>, BoxError> {
        let made = Sandbox::prepare(self, validator)?;
        Ok(made.map_err(|error| error.message))
    }

    fn validate(
        &self,
        validator: &Prepared,
        stdin: &[u8],
        given: &Given,
        limits: &Limits,
    ) -> Result<(Outcome, Option<Vec<u8>>), BoxError> {
        Ok(Sandbox::run_prepared(
            self, validator, stdin, given, limits,
        )?)
    }

    fn time_factor(&self, language: &str) -> Result<f64, BoxError> {
        Ok(Sandbox::time_factor(self, language)?)
    }

    fn syntax_check(&self, source: &str, limits: &Limits) -> Result<Option<String>, BoxError> {
        Ok(Sandbox::syntax_check(self, source, limits)?)
    }
}

/// Compiles a source that stands on stdin, and says what it finds.
const COMPILE: &str = "import sys, traceback\n\
try:\n    compile(sys.stdin.buffer.read(), 'main.py', 'exec', dont_inherit=True)\n\
except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:\n\
    traceback.print_exception(type(error), error, None)\n    sys.exit(65)\n";

impl Executor for External {
    fn run(&self, source: &str, stdin: &[u8], limits: &Limits) -> Result<Outcome, BoxError> {
        Ok(Self::run(self, source, stdin, limits)?)
    }

    fn syntax_check(&self, source: &str, limits: &Limits) -> Result<Option<String>, BoxError> {
        let outcome = Self::run(self, COMPILE, source.as_bytes(), limits)?;
        let said = String::from_utf8_lossy(&outcome.stderr)
            .trim_end()
            .to_owned();
        Ok(match outcome.ending {
            Ending::Exited(0) => None,
            Ending::Exited(65) if !said.is_empty() => Some(said),
            other => Some(format!("the compiler did not finish: {other}")),
        })
    }
}

impl<E: Executor + ?Sized> Executor for Arc<E> {
    fn run(&self, source: &str, stdin: &[u8], limits: &Limits) -> Result<Outcome, BoxError> {
        (**self).run(source, stdin, limits)
    }

    fn call(
        &self,
        source: &str,
        function: &str,
        arguments: &str,
        limits: &Limits,
    ) -> Result<Called, BoxError> {
        (**self).call(source, function, arguments, limits)
    }

    fn candidate<'a>(&'a self, source: &'a str) -> Box<dyn Candidate + 'a> {
        (**self).candidate(source)
    }

    fn can_run(&self, language: &str) -> bool {
        (**self).can_run(language)
    }

    fn calls(&self) -> bool {
        (**self).calls()
    }

    fn check(&self, limits: &Limits) -> Result<(), BoxError> {
        (**self).check(limits)
    }

    fn compile<'a>(&'a self, program: Program<'a>) -> Result<Compiled<'a>, BoxError> {
        (**self).compile(program)
    }

    fn validates(&self) -> bool {
        (**self).validates()
    }

    fn prepare(&self, validator: &Sources) -> Result<Result<Prepared, String>, BoxError> {
        (**self).prepare(validator)
    }

    fn validate(
        &self,
        validator: &Prepared,
        stdin: &[u8],
        given: &Given,
        limits: &Limits,
    ) -> Result<(Outcome, Option<Vec<u8>>), BoxError> {
        (**self).validate(validator, stdin, given, limits)
    }

    fn time_factor(&self, language: &str) -> Result<f64, BoxError> {
        (**self).time_factor(language)
    }

    fn syntax_check(&self, source: &str, limits: &Limits) -> Result<Option<String>, BoxError> {
        (**self).syntax_check(source, limits)
    }
}
