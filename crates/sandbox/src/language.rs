//! Programs in other languages than Python: compiled in a sandbox, then run in sandboxes of another kind.
//!
//! What there is to know about a language stands in a file (`assets/languages/`, embedded; more by path). From it come
//! two kinds of slots: those that compile see the tools and little else, those that run see what a finished program
//! needs. Neither sees a host file besides, and both have every wall that Python programs have; a compiler is trusted
//! no more than the text it reads.
//!
//! What tells a wrong program from broken tools: before anything else, a known program from the language's file has to
//! compile and run in these very slots, and it has to do so again whenever a compiler ends in an odd way.

mod file;
mod kit;
mod main_class;
mod message;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

pub(crate) use kit::Ready;

use crate::artifact::Artifact;
use crate::pool::{Pool, Shared};
use crate::{Candidate, Ending, Fault};
use file::LanguageFile;
use kit::Kit;

/// The name of the language that needs no compiling.
pub const PYTHON: &str = "python";
/// The name of its file in the private /tmp.
pub(crate) const PYTHON_FILE: &str = "main.py";
/// Other names of it.
const PYTHON_TOO: [&str; 2] = ["python3", "py"];

/// The files that come with the crate.
const FILES: [(&str, &str); 6] = [
    ("c.toml", include_str!("../assets/languages/c.toml")),
    ("cpp.toml", include_str!("../assets/languages/cpp.toml")),
    ("rust.toml", include_str!("../assets/languages/rust.toml")),
    ("java.toml", include_str!("../assets/languages/java.toml")),
    ("go.toml", include_str!("../assets/languages/go.toml")),
    (
        "javascript.toml",
        include_str!("../assets/languages/javascript.toml"),
    ),
];

/// A program and the language it is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program<'a> {
    /// The language's name or one of its other names, as in its file: `python`, `c`, `cpp` …
    pub language: &'a str,
    /// The source text, in one file.
    pub source: &'a str,
}

impl<'a> Program<'a> {
    /// A Python program.
    pub fn python(source: &'a str) -> Self {
        Self {
            language: PYTHON,
            source,
        }
    }

    /// Whether it is in Python, under any of the language's names.
    pub fn is_python(&self) -> bool {
        self.language == PYTHON || PYTHON_TOO.contains(&self.language)
    }
}

/// What came of compiling a program.
pub enum Compiled<'s> {
    /// It is ready to be run.
    Program(Candidate<'s>),
    /// The compiler has something against it; that is the program's own doing.
    Error(CompileError),
}

/// Why a program does not compile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompileError {
    /// What the compiler said, without paths of this machine and of bounded length; or which of its limits it reached.
    pub message: String,
    /// How the compiler ended.
    pub ending: Ending,
}

/// A language and whether its programs can be run here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LanguageStatus {
    /// Its name, as in [`Program::language`].
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// What its tools say of themselves, if they are here; else what was looked for.
    pub tools: Result<String, String>,
}

/// All languages but Python.
pub(crate) struct Languages {
    kits: Vec<Kit>,
}

/// The files, before there is anything to run them on.
pub(crate) struct Files(Vec<LanguageFile>);

impl Languages {
    /// Reads the files that come with the crate and `more`, of which a later one replaces an earlier one.
    pub(crate) fn read(more: &[PathBuf]) -> Result<Files, Fault> {
        let mut files = Vec::new();
        for (name, text) in FILES {
            files.push(LanguageFile::parse(name, text)?);
        }
        for path in more {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|error| Fault::LanguageFile {
                file: name.clone(),
                reason: error.to_string(),
            })?;
            let file = LanguageFile::parse(&name, &text)?;
            if file.name == PYTHON {
                return Err(Fault::LanguageFile {
                    file: name,
                    reason: "Python is built in; choose its interpreter with Config::interpreter"
                        .into(),
                });
            }
            files.retain(|f: &LanguageFile| f.name != file.name);
            files.push(file);
        }
        Ok(Files(files))
    }

    fn kit(&self, language: &str) -> Result<&Kit, Fault> {
        let named = |kit: &&Kit| {
            let file = kit.file();
            file.name == language || file.aliases.iter().any(|a| a == language)
        };
        self.kits.iter().find(named).ok_or_else(|| {
            let names = self.kits.iter().map(|k| k.file().name.clone());
            Fault::UnknownLanguage {
                wanted: language.into(),
                known: std::iter::once(PYTHON.to_owned()).chain(names).collect(),
            }
        })
    }

    /// The language's first name.
    pub(crate) fn name(&self, language: &str) -> Result<&str, Fault> {
        let source = "";
        if (Program { language, source }).is_python() {
            return Ok(PYTHON);
        }
        Ok(&self.kit(language)?.file().name)
    }

    pub(crate) fn can_run(&self, language: &str) -> bool {
        match self.name(language) {
            Ok(PYTHON) => true,
            Ok(name) => self.kit(name).is_ok_and(|kit| kit.version().is_ok()),
            Err(_) => false,
        }
    }

    pub(crate) fn time_factor(&self, language: &str) -> Result<f64, Fault> {
        match self.name(language)? {
            PYTHON => Ok(1.0),
            name => Ok(self.kit(name)?.file().run.time_factor),
        }
    }

    /// A compiled program by itself, of a source that has others beside it.
    pub(crate) fn artifact(
        &self,
        language: &str,
        source: &str,
        others: &[(&str, &str)],
    ) -> Result<Result<Artifact, CompileError>, Fault> {
        self.kit(language)?.artifact(source, others)
    }

    /// Where programs in the language are run.
    pub(crate) fn pool(&self, language: &str) -> Result<&Pool, Fault> {
        self.kit(language)?.pool()
    }

    /// The name under which the program's first file is put into /tmp.
    pub(crate) fn source_file(&self, language: &str) -> Result<&str, Fault> {
        match self.name(language)? {
            PYTHON => Ok(PYTHON_FILE),
            name => Ok(&self.kit(name)?.file().source),
        }
    }

    /// See [`Kit::is_whole`].
    pub(crate) fn is_whole(&self, language: &str) -> Result<bool, Fault> {
        Ok(self.kit(language)?.is_whole())
    }

    pub(crate) fn compile(&self, language: &str, source: &str) -> Result<Compiled<'_>, Fault> {
        self.kit(language)?.compile(source)
    }

    pub(crate) fn list(&self, python: &str) -> Vec<LanguageStatus> {
        let first = LanguageStatus {
            name: PYTHON.into(),
            title: "Python".into(),
            tools: Ok(format!("Python {python}")),
        };
        let others = self.kits.iter().map(|kit| LanguageStatus {
            name: kit.file().name.clone(),
            title: kit.file().title.clone(),
            tools: kit.version(),
        });
        std::iter::once(first).chain(others).collect()
    }
}

impl Files {
    pub(crate) fn on(self, shared: Arc<Shared>) -> Languages {
        let kit = |file| Kit::new(file, shared.clone());
        Languages {
            kits: self.0.into_iter().map(kit).collect(),
        }
    }
}
