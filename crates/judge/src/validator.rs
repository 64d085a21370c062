//! Output validators at work: made ready once, run on each output in a sandbox of their own.
//!
//! A validator gets the input, the judge's answer and a folder for feedback as files, and the output on its stdin; it
//! ends with status 42 (accepted) or 43 (wrong answer). The answer goes to it alone. Whatever else it does (another status,
//! a crash, a limit) is a fault and never a verdict: it says nothing about the program whose output it was to judge.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use rlef_problems::{Checker, EXIT_ACCEPTED, EXIT_WRONG_ANSWER, Problem, TestCase, Validator};
use rlef_sandbox::{Ending, Given, Limits, Outcome, Prepared, Program, Sources};
use sha2::{Digest, Sha256};

use crate::cache::{Key, Value};
use crate::fault::Fault;
use crate::judge::Judge;
use crate::report::{Detail, Verdict};

/// Files of a test in the validator's working folder. Names that no validator's own files are likely to have; relative,
/// as those are, and with the slash that the format promises.
const INPUT: &str = "test-data/test.in";
const ANSWER: &str = "test-data/test.ans";
const FEEDBACK: &str = "test-data/feedback/";
/// Where a validator leaves a message for judges.
const MESSAGE: &str = "test-data/feedback/judgemessage.txt";
/// Bytes of it that are looked at, and characters that are kept.
const MESSAGE_BYTES: u64 = 64 << 10;
const MESSAGE_CHARS: usize = 500;
/// How problems name what is built or run by a script of its own.
const SCRIPT: &str = "script";

/// Validators that are ready, the one used last at the end.
pub(crate) struct Validators {
    known: Mutex<VecDeque<([u8; 32], Arc<Slot>)>>,
}

/// Held while it is made ready, so that it is done once.
type Slot = Mutex<Option<Arc<Ready>>>;

/// A validator, or what the compiler has against it.
type Ready = Result<Prepared, String>;

/// Validators that are kept ready: each problem has its own, and problems come in rows of programs.
const KEPT: usize = 32;

impl Validators {
    pub(crate) fn new() -> Self {
        Self {
            known: Mutex::default(),
        }
    }

    fn slot(&self, digest: [u8; 32]) -> Arc<Slot> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let place = known.iter().position(|(other, _)| *other == digest);
        let entry = match place.and_then(|at| known.remove(at)) {
            Some(entry) => entry,
            None => (digest, Arc::default()),
        };
        let slot = Arc::clone(&entry.1);
        known.push_back(entry);
        if known.len() > KEPT {
            known.pop_front();
        }
        slot
    }
}

fn digest(validator: &Validator) -> [u8; 32] {
    let mut hash = Sha256::new();
    let files = validator.files.iter().flat_map(|f| [&f.path, &f.text]);
    for part in [&validator.language, &validator.entry]
        .into_iter()
        .chain(files)
    {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

impl Judge {
    /// Whether the validator of a problem, if it has one, can be run here by what is known without trying.
    pub(crate) fn check_validator(&self, problem: &Problem) -> Result<(), Fault> {
        let Checker::Validator(validator) = &problem.checker else {
            return Ok(());
        };
        let no_validator = |what: String| Fault::NoValidator {
            problem: problem.id.clone(),
            what,
        };
        if validator.language == SCRIPT {
            return Err(Fault::Validator {
                problem: problem.id.clone(),
                what: format!(
                    "brings a script of its own, `{}`, and scripts are not run; a validator in one language, compiled or \
                     run in the usual way, can be",
                    validator.entry
                ),
            });
        }
        if !self.executor.validates() {
            let what = "what runs programs here in place of the sandbox runs no validators; leave `judge.command` \
                        (--backend) out, or the problem";
            return Err(no_validator(what.to_owned()));
        }
        if !self.executor.can_run(&validator.language) {
            let what = format!(
                "it is in {}, whose tools are not here or are not known (see `rlef sandbox doctor`)",
                validator.language
            );
            return Err(no_validator(what));
        }
        let limits = self.config().validator_limits();
        let kept = self.executor.check(&limits);
        kept.map_err(|error| no_validator(error.to_string()))
    }

    /// The validator, made ready if it is not yet.
    fn validator(
        &self,
        problem: &Problem,
        validator: &Validator,
        digest: [u8; 32],
    ) -> Result<Arc<Ready>, Fault> {
        let slot = self.validators.slot(digest);
        let mut held = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ready) = &*held {
            return Ok(Arc::clone(ready));
        }
        let files: Vec<(&str, &str)> = (validator.files.iter())
            .map(|file| (file.path.as_str(), file.text.as_str()))
            .collect();
        let sources = Sources {
            language: &validator.language,
            entry: &validator.entry,
            files: &files,
        };
        let limits = self.config().validator_limits();
        let made = self.retrying(&limits, |_| {
            let _shared = self.beside_others();
            self.executor.prepare(&sources)
        });
        let made = made.map_err(|(tries, source)| Fault::NoValidator {
            problem: problem.id.clone(),
            what: format!("{source} ({tries} tries)"),
        })?;
        let ready = Arc::new(match made {
            Ok(prepared) if sources.is_python() => match self.python_error(&sources, &limits) {
                Some(message) => Err(message),
                None => Ok(prepared),
            },
            other => other,
        });
        *held = Some(Arc::clone(&ready));
        Ok(ready)
    }

    /// What keeps a Python validator from being compiled; a fault is left for its first run.
    fn python_error(&self, sources: &Sources, limits: &Limits) -> Option<String> {
        let (_, text) = sources
            .files
            .iter()
            .find(|(path, _)| *path == sources.entry)?;
        self.syntax(&Program::python(text), limits).ok()?
    }

    /// Makes ready what judging the problem needs besides programs: its output validator, if it has one.
    ///
    /// # Errors
    /// [`Fault::Validator`] if it does not compile; [`Fault::NoValidator`]. None of them says anything of a program.
    pub fn ready(&self, problem: &Problem) -> Result<(), Fault> {
        self.check(problem)?;
        if let Checker::Validator(validator) = &problem.checker {
            let ready = self.validator(problem, validator, digest(validator))?;
            does_compile(problem, &ready)?;
        }
        Ok(())
    }

    /// What the validator says of an output.
    pub(crate) fn validated(
        &self,
        problem: &Problem,
        validator: &Validator,
        test: &TestCase,
        name: &str,
        output: &[u8],
    ) -> Result<(Verdict, Detail), Fault> {
        let limits = self.config().validator_limits();
        let flags = validator.flags_for(&test.name);
        let digest = digest(validator);
        let files = [test.input.as_bytes(), test.output.as_bytes()];
        let key = Key::validated(digest, files, flags, output, &limits);
        let key = self.cache.is_some().then_some(key);
        if let Some(Value::Validated(message)) = self.remembered(key.as_ref()) {
            return Ok(verdict(message));
        }
        let ready = self.validator(problem, validator, digest)?;
        let prepared = does_compile(problem, &ready)?;
        let [input, answer] = files;
        let mut arguments = vec![INPUT.to_owned(), ANSWER.to_owned(), FEEDBACK.to_owned()];
        arguments.extend_from_slice(flags);
        let given = Given {
            files: &[(INPUT, input), (ANSWER, answer), (FEEDBACK, b"")],
            arguments: &arguments,
            keep: Some((MESSAGE, MESSAGE_BYTES)),
        };
        let ran = self.retrying(&limits, |limits| {
            self.count_validation();
            let _shared = self.beside_others();
            self.executor.validate(prepared, output, &given, limits)
        });
        let (outcome, message) = ran.map_err(|(tries, source)| Fault::Execution {
            problem: problem.id.clone(),
            test: name.to_owned(),
            tries,
            source: format!("its output validator could not be run: {source}").into(),
        })?;
        let message = match outcome.ending {
            Ending::Exited(EXIT_ACCEPTED) => None,
            Ending::Exited(EXIT_WRONG_ANSWER) => Some(shown(&message.unwrap_or_default())),
            _ => {
                return Err(Fault::Validator {
                    problem: problem.id.clone(),
                    what: format!(
                        "cannot decide on test {name}: {}",
                        failure(&outcome, &limits)
                    ),
                });
            }
        };
        self.remember(key, || Value::Validated(message.clone()));
        Ok(verdict(message))
    }
}

fn does_compile<'r>(problem: &Problem, ready: &'r Ready) -> Result<&'r Prepared, Fault> {
    ready.as_ref().map_err(|message| Fault::Validator {
        problem: problem.id.clone(),
        what: format!("does not compile: {}", cut(message)),
    })
}

fn verdict(message: Option<String>) -> (Verdict, Detail) {
    match message {
        None => (Verdict::Accepted, Detail::None),
        Some(message) => (Verdict::WrongAnswer, Detail::Validator(message)),
    }
}

/// Its message, in one piece of text.
fn shown(message: &[u8]) -> String {
    match String::from_utf8_lossy(message).trim() {
        "" => "the output validator rejects the output".to_owned(),
        text => cut(text),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn failure(outcome: &Outcome, limits: &Limits) -> String {
    let what = match outcome.ending {
        Ending::Exited(status) => format!(
            "it ends with status {status} in place of {EXIT_ACCEPTED} or {EXIT_WRONG_ANSWER}"
        ),
        Ending::CpuLimit | Ending::WallLimit => format!(
            "it reaches its time limit ({} s of CPU time, `judge.validator_time_s`)",
            limits.cpu.as_secs_f64()
        ),
        Ending::MemoryLimit => format!(
            "it reaches its memory limit ({} MiB, `judge.validator_memory_mb`)",
            limits.memory_bytes >> 20
        ),
        other => other.to_string(),
    };
    let end = &outcome.stderr[outcome.stderr.len().saturating_sub(4096)..];
    let said = String::from_utf8_lossy(end);
    match said.trim_end().lines().next_back() {
        Some(line) if !line.trim().is_empty() => format!("{what}; it says: {}", cut(line.trim())),
        _ => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_is_kept_and_the_one_in_use_stays() {
        let validators = Validators::new();
        let number = |n: u8| [n; 32];
        let first = validators.slot(number(0));
        for n in 1..100 {
            validators.slot(number(n));
            assert!(Arc::ptr_eq(&first, &validators.slot(number(0))), "{n}");
        }
        assert_eq!(validators.known.lock().unwrap().len(), KEPT);
    }

    #[test]
    fn messages_are_short_text() {
        assert_eq!(shown(b" \n"), "the output validator rejects the output");
        assert_eq!(shown(b"line 3: \xff\n"), "line 3: \u{fffd}");
        assert_eq!(shown("ä".repeat(600).as_bytes()).chars().count(), 501);
    }
}
