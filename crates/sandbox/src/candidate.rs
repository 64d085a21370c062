//! One program on many inputs: what can be done once for all of them.
//!
//! Compiling. It is done in the first run, inside the sandbox like everything that touches the source, and the code
//! travels to the next runs as bytes in a sealed memory file. Only processes that run this very program ever read
//! them, so that whatever a hostile source could make the compiler write, it gains nothing that it has not anyway. (An
//! interpreter that compiled once and were then forked for each test would do the same work, but it would have to hold
//! what it takes to place a child into namespaces, next to a compiler that reads hostile text.)

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::language::Ready;
use crate::launcher::order;
use crate::slot::seal;
use crate::{Called, Fault, Limits, Outcome, Sandbox};

/// A program that is to be run several times.
pub struct Candidate<'s> {
    program: Kind<'s>,
}

enum Kind<'s> {
    Python {
        sandbox: &'s Sandbox,
        source: String,
        code: CodeCache,
    },
    Compiled(Ready<'s>),
}

impl<'s> Candidate<'s> {
    pub(crate) fn new(sandbox: &'s Sandbox, source: &str) -> Self {
        Self {
            program: Kind::Python {
                sandbox,
                source: source.to_owned(),
                code: CodeCache::default(),
            },
        }
    }

    pub(crate) fn compiled(ready: Ready<'s>) -> Self {
        Self {
            program: Kind::Compiled(ready),
        }
    }

    /// As [`Sandbox::run`]. Each run is isolated from all others.
    ///
    /// # Errors
    /// A fault says nothing about the program.
    pub fn run(&self, stdin: &[u8], limits: &Limits) -> Result<Outcome, Fault> {
        match &self.program {
            Kind::Python {
                sandbox,
                source,
                code,
            } => sandbox.run_with(source, stdin, limits, Some(code)),
            Kind::Compiled(ready) => ready.run(stdin, limits),
        }
    }

    /// As [`Sandbox::call`]. Each call is isolated from all others.
    ///
    /// # Errors
    /// A fault says nothing about the program. [`Fault::Call`] if it is not a Python program.
    pub fn call(&self, function: &str, arguments: &str, limits: &Limits) -> Result<Called, Fault> {
        match &self.program {
            Kind::Python {
                sandbox,
                source,
                code,
            } => sandbox.call_with(source, function, arguments, limits, Some(code)),
            Kind::Compiled(ready) => Err(Fault::Call {
                what: format!(
                    "functions can be called in Python programs only, and this one is in {}",
                    ready.language()
                ),
            }),
        }
    }
}

/// The compiled program, once there is one.
#[derive(Debug, Default)]
pub(crate) struct CodeCache {
    code: Mutex<Option<File>>,
}

/// What a run does about compiled code.
pub(crate) enum Code {
    None,
    /// Writes it here.
    Save(File),
    /// Reads it from here.
    Load(File),
}

impl Code {
    pub(crate) fn mode(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Save(_) => order::SAVE_CODE,
            Self::Load(_) => order::LOAD_CODE,
        }
    }

    pub(crate) fn file(&self) -> Option<&File> {
        match self {
            Self::None => None,
            Self::Save(file) | Self::Load(file) => Some(file),
        }
    }
}

/// Longest code that is kept. No limit of a run is one on memory files as such, so there must be a bound.
const LONGEST: u64 = 16 << 20;
/// The first byte of a file that has been written to its end; a run may be ended while it writes.
const WHOLE: u8 = 1;

impl CodeCache {
    pub(crate) fn take_up(&self) -> io::Result<Code> {
        let known = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*known {
            // Opened anew: copies of one descriptor would share the place where they read.
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
            return Ok(Code::Load(File::open(path)?));
        }
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        Ok(Code::Save(File::from(memfd_create("code", flags)?)))
    }

    /// Keeps what a run has written, if it is whole. A run that could not compile has written nothing.
    pub(crate) fn keep(&self, file: File) {
        let length = file.metadata().map_or(0, |m| m.len());
        let mut first = [0];
        let whole = file.read_at(&mut first, 0).is_ok() && first == [WHOLE];
        if whole && length <= LONGEST && seal(&file).is_ok() {
            *self.code.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        }
    }
}
