//! Faults of the machinery: what kept us from running a program, which says nothing about the program.
//!
//! A message may hold what a machine or a program says; all of it goes through [`visible`].

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::text::visible;

/// Why a program could not be run, or not be judged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// No interpreter of that name.
    #[error(
        "no interpreter `{}`: {}; install Python 3.8 or later, or give the file of one (`--python FILE`, \
         setting `judge.python`)",
        visible(.wanted.display()), visible(.reason)
    )]
    NoInterpreter {
        /// What was looked for.
        wanted: PathBuf,
        /// Why it will not do.
        reason: String,
    },
    /// The interpreter is there but could not be asked where its parts are.
    #[error("the interpreter `{}` cannot be used: {}", visible(.path.display()), visible(.reason))]
    Interpreter {
        /// The file that was started.
        path: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// Packages that programs are to have cannot be given to them.
    #[error("programs cannot have the packages of `{}`: {}", visible(.interpreter.display()), visible(.reason))]
    Packages {
        /// The interpreter that was asked for them.
        interpreter: PathBuf,
        /// What is in the way, and what to do.
        reason: String,
    },
    /// The interpreter is there but did not answer in time.
    #[error(
        "the interpreter `{}` did not answer within {patience:?}: the machine may be too busy, or what is started under \
         this name hangs; try again when less is running, or give the file of another (`--python FILE`, \
         setting `judge.python`)",
        visible(.path.display())
    )]
    Silent {
        /// What was started.
        path: PathBuf,
        /// How long it was waited for.
        patience: Duration,
    },
    /// The system-call policy does not compile.
    #[error(
        "the system-call policy cannot be turned into a filter: {}; correct assets/syscalls.toml", visible(.0)
    )]
    Policy(String),
    /// The system refuses something that the sandbox is built on.
    #[error("the sandbox cannot be set up: {}: {}; {advice}", visible(.step), visible(.error))]
    Unsupported {
        /// The step that failed.
        step: String,
        /// What the system answered.
        error: io::Error,
        /// What to do about it.
        advice: &'static str,
    },
    /// A limit under which no program could be judged.
    #[error("the limit `{limit}` {what}")]
    Limit {
        /// Its name in [`Limits`](crate::Limits).
        limit: &'static str,
        /// What it is and what it may be.
        what: String,
    },
    /// A process may have fewer files open than a sandbox takes.
    #[error(
        "this process may have {limit} files open, and the sandbox needs {needed}: raise the limit (`ulimit -n {needed}` \
         before the command, or LimitNOFILE of its service)"
    )]
    Descriptors {
        /// The limit in force (`RLIMIT_NOFILE`).
        limit: u64,
        /// The least that will do.
        needed: u64,
    },
    /// A limit of this process itself is below what programs are promised.
    #[error(
        "programs may have {promised} {what} by their limits, and this process has a limit of {limit} itself: raise it, \
         or lower that of the programs"
    )]
    OwnLimit {
        /// The resource.
        what: &'static str,
        /// The hard limit in force.
        limit: u64,
        /// What the limits of a run say, with what the sandbox needs itself.
        promised: u64,
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
    #[error("the call cannot be made: {}", visible(.what))]
    Call {
        /// What is wrong with it.
        what: String,
    },
    /// Files or arguments that cannot be given to a program.
    #[error("the program's files or arguments cannot be used: {}", visible(.what))]
    Files {
        /// What is wrong with them.
        what: String,
    },
    /// An external command that programs were to be run by.
    #[error("the command `{}` {}", visible(.command), visible(.what))]
    External {
        /// The command.
        command: String,
        /// What is wrong with it.
        what: String,
    },
    /// Required protections are not in force, and the configuration is strict.
    #[error("refusing to run untrusted code, not protected by: {}; see the advice for each, or set strict = false to run all the same", visible(.missing.join("; ")))]
    Unprotected {
        /// Each missing protection with its advice.
        missing: Vec<String>,
    },
    /// The machine was too busy for the wall-clock limit to say anything about the program.
    #[error(
        "the machine was too busy: in {wall:.1?} the program got {cpu:.1?} of CPU time and waited {waited:.1?} for a CPU; run fewer programs at once, or again later"
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
    #[error("the sandbox broke while {doing}: {}; run the program again", visible(.reason))]
    Broken {
        /// What was going on.
        doing: &'static str,
        /// What went wrong.
        reason: String,
    },
    /// The system refused a resource (descriptors, memory, processes) to the supervising process.
    #[error("{doing} failed: {}; {}", visible(.error), remedy(.error))]
    System {
        /// What was going on.
        doing: &'static str,
        /// What the system answered.
        error: io::Error,
    },
}

/// What to do when the system refuses a resource.
fn remedy(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EMFILE) => format!(
            "this process may have {} files open: raise the limit (ulimit -n), or run fewer programs at once",
            descriptors()
        ),
        Some(libc::EAGAIN) => {
            "no further process or thread may be started: raise the limit on processes (ulimit -u, \
             TasksMax of a service, pids.max of a container), or run fewer programs at once"
                .into()
        }
        _ => "check the limits of this process (ulimit -a) and of the machine".into(),
    }
}

/// How many files this process may have open.
pub(crate) fn descriptors() -> u64 {
    let mut own = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the structure is valid and the call only fills it in; should it fail, there is no limit to tell of.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut own) };
    own.rlim_cur
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every variant that can hold what others say.
    #[test]
    fn no_message_shows_what_a_terminal_obeys() {
        let raw = || String::from("a\x1b]0;title\x07\r\u{9b}\u{202e}z");
        let error = || io::Error::other(raw());
        let faults = [
            Fault::NoInterpreter {
                wanted: raw().into(),
                reason: raw(),
            },
            Fault::Interpreter {
                path: raw().into(),
                reason: raw(),
            },
            Fault::Silent {
                path: raw().into(),
                patience: Duration::from_secs(20),
            },
            Fault::Policy(raw()),
            Fault::Unsupported {
                step: raw(),
                error: error(),
                advice: "do",
            },
            Fault::Call { what: raw() },
            Fault::Files { what: raw() },
            Fault::External {
                command: raw(),
                what: raw(),
            },
            Fault::Unprotected {
                missing: vec![raw(), raw()],
            },
            Fault::Broken {
                doing: "it",
                reason: raw(),
            },
            Fault::System {
                doing: "it",
                error: error(),
            },
        ];
        for fault in faults {
            let said = fault.to_string();
            assert!(
                !said.contains(|c: char| c.is_control() || c == '\u{202e}'),
                "{said:?}"
            );
            assert!(
                said.contains("\\u{1b}]0;title\\u{7}\\r\\u{9b}\\u{202e}z"),
                "{said}"
            );
        }
    }

    #[test]
    fn a_resource_that_is_used_up_is_named_with_what_to_do() {
        let said = |number| {
            let error = io::Error::from_raw_os_error(number);
            Fault::system("starting a process")(error).to_string()
        };
        let files = said(libc::EMFILE);
        assert!(
            files.contains("ulimit -n") && files.contains(&descriptors().to_string()),
            "{files}"
        );
        assert!(said(libc::EAGAIN).contains("ulimit -u"));
        assert!(said(libc::ENOMEM).contains("ulimit -a"));
    }
}
