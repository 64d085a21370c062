//! Faults of the machinery: what kept us from running a program, which says nothing about the program.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a program could not be run, or not be judged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// No interpreter of that name.
    #[error(
        "no interpreter `{wanted}`: {reason}; install Python 3.8 or later, or name one in the configuration"
    )]
    NoInterpreter {
        /// What was looked for.
        wanted: PathBuf,
        /// Why it will not do.
        reason: String,
    },
    /// The interpreter is there but could not be asked where its parts are.
    #[error("the interpreter `{path}` cannot be used: {reason}")]
    Interpreter {
        /// The file that was started.
        path: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// The system-call policy does not compile.
    #[error(
        "the system-call policy cannot be turned into a filter: {0}; correct assets/syscalls.toml"
    )]
    Policy(String),
    /// The system refuses something that the sandbox is built on.
    #[error("the sandbox cannot be set up: {step}: {error}; {advice}")]
    Unsupported {
        /// The step that failed.
        step: String,
        /// What the system answered.
        error: io::Error,
        /// What to do about it.
        advice: &'static str,
    },
    /// There is no language file for a program's language.
    #[error("there is no language `{wanted}`; known: {}; others can be added by a file (Config::languages)", .known.join(", "))]
    UnknownLanguage {
        /// What was asked for.
        wanted: String,
        /// The names of all that there are files for.
        known: Vec<String>,
    },
    /// A language file that cannot be used.
    #[error("the language file {file} cannot be used: {reason}")]
    LanguageFile {
        /// The file.
        file: String,
        /// What is wrong with it, and where.
        reason: String,
    },
    /// The tools of a language are not installed.
    #[error(
        "{language} programs cannot be run here: {sought}; install it, or name another in a language file"
    )]
    NoTools {
        /// The language's name.
        language: String,
        /// What was looked for.
        sought: String,
    },
    /// The tools of a language are there, but a program that is known to be right cannot be compiled or run with them.
    #[error(
        "the tools for {language} do not work in the sandbox: {reason}; correct the language file or the installation"
    )]
    Tools {
        /// The language's name.
        language: String,
        /// What came of the known program.
        reason: String,
    },
    /// A call that cannot be made, whatever the program.
    #[error("the call cannot be made: {what}")]
    Call {
        /// What is wrong with it.
        what: String,
    },
    /// An external command that programs were to be run by.
    #[error("the command `{command}` {what}")]
    External {
        /// The command.
        command: String,
        /// What is wrong with it.
        what: String,
    },
    /// Required protections are not in force, and the configuration is strict.
    #[error("refusing to run untrusted code, not protected by: {}; see the advice for each, or set strict = false to run all the same", .missing.join("; "))]
    Unprotected {
        /// Each missing protection with its advice.
        missing: Vec<String>,
    },
    /// The machine was too busy for the wall-clock limit to say anything about the program.
    #[error(
        "the machine was too busy: in {wall:?} the program got {cpu:?} of CPU time and waited {waited:?} for a CPU; run fewer programs at once, or again later"
    )]
    Overloaded {
        /// How long it was there.
        wall: Duration,
        /// How much CPU time it got.
        cpu: Duration,
        /// How long it was ready to run but did not.
        waited: Duration,
    },
    /// The sandbox of this run broke.
    #[error("the sandbox broke while {doing}: {reason}; run the program again")]
    Broken {
        /// What was going on.
        doing: &'static str,
        /// What went wrong.
        reason: String,
    },
    /// The system refused a resource (descriptors, memory, processes) to the supervising process.
    #[error(
        "{doing} failed: {error}; check the limits of this process (ulimit -a) and of the machine"
    )]
    System {
        /// What was going on.
        doing: &'static str,
        /// What the system answered.
        error: io::Error,
    },
}

impl Fault {
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { doing, error }
    }

    pub(crate) fn errno(doing: &'static str) -> impl FnOnce(nix::Error) -> Self {
        move |error| Self::System {
            doing,
            error: error.into(),
        }
    }
}
