//! A program that a problem brings along, such as an output validator: of one or several files, made ready once, and run
//! any number of times with files and arguments that only it is given.
//!
//! It has every wall that other programs have. What it is for is the caller's business; what makes it a thing of its own
//! is that it gets more than stdin, which the programs that are judged must not.

use crate::artifact::Artifact;
use crate::candidate::CodeCache;
use crate::files::Files;
use crate::launcher::order;
use crate::supervise::{Job, Left, Source};
use crate::wire::ProductPlan;
use crate::{CompileError, Fault, Limits, Outcome, PYTHON, Program, Sandbox};

/// Bytes of all arguments of a run together.
const LONGEST_ARGUMENTS: usize = 8 << 10;
/// Where the boot file finds the arguments of a Python program.
const ARGUMENTS: &str = ".arguments";

/// A program of one or more files.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// As in [`Program::language`].
    pub language: &'a str,
    /// The file that is run, or compiled with the others; one of `files`.
    pub entry: &'a str,
    /// Paths and texts. Those of the language's own kind are compiled together; the folder of `entry` is where
    /// others are included or imported from.
    pub files: &'a [(&'a str, &'a str)],
}

/// What a run of a [`Prepared`] program is given besides stdin.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given<'a> {
    /// Files and, with a slash at the end, empty folders; paths are relative to the working folder, and the program may
    /// change its own copies.
    pub files: &'a [(&'a str, &'a [u8])],
    /// Arguments of its command line.
    pub arguments: &'a [String],
    /// A file of which the end of the run is to tell the contents, however it ends, and how many bytes it may have.
    pub keep: Option<(&'a str, u64)>,
}

/// A program made ready by [`Sandbox::prepare`]. It belongs to no sandbox in particular, but its language must be known to
/// the one that runs it.
#[derive(Debug)]
pub struct Prepared {
    language: String,
    program: Kind,
    /// Its other files, where a run needs them.
    files: Vec<(String, String)>,
}

#[derive(Debug)]
enum Kind {
    Python { source: String, code: CodeCache },
    Compiled(Artifact),
}

/// A path and a text.
type Named<'a> = (&'a str, &'a str);

/// Of the paths, those in the entry's folder become relative to it.
fn beside<'a>(sources: &Sources<'a>) -> Result<(&'a str, Vec<Named<'a>>), Fault> {
    let folder = sources
        .entry
        .rsplit_once('/')
        .map_or("", |(folder, _)| folder);
    let inner = |path: &'a str| match path.strip_prefix(folder).and_then(|p| p.strip_prefix('/')) {
        Some(inner) if !folder.is_empty() => inner,
        _ => path,
    };
    let mut text = None;
    let mut others = Vec::new();
    for (path, contents) in sources.files {
        if *path == sources.entry {
            text = Some(*contents);
        } else {
            others.push((inner(path), *contents));
        }
    }
    match text {
        Some(text) => Ok((text, others)),
        None => Err(Fault::Files {
            what: format!("`{}` is none of the program's files", sources.entry),
        }),
    }
}

impl Sandbox {
    /// Makes a program of one or more files ready to be run by [`Sandbox::run_prepared`], compiling it in a sandbox if it
    /// has to be. What is wrong with a Python program shows when it is run.
    ///
    /// # Errors
    /// As [`Sandbox::compile`], and [`Fault::Files`] for paths that cannot be used. What the compiler has against the
    /// program is the inner error.
    pub fn prepare(&self, sources: &Sources) -> Result<Result<Prepared, CompileError>, Fault> {
        let (text, others) = beside(sources)?;
        let language = self.languages.name(sources.language)?.to_owned();
        let first = self.languages.source_file(&language)?;
        if let Some((path, _)) = others.iter().find(|(path, _)| *path == first) {
            let what = format!(
                "`{path}` is the name under which `{}` is run",
                sources.entry
            );
            return Err(Fault::Files { what });
        }
        // Tells of paths that cannot be used.
        Files::new(others.iter().map(|(path, text)| (*path, text.as_bytes())))?;
        let python = language == PYTHON;
        let program = if python {
            Kind::Python {
                source: text.to_owned(),
                code: CodeCache::default(),
            }
        } else {
            match self.languages.artifact(&language, text, &others)? {
                Ok(artifact) => Kind::Compiled(artifact),
                Err(error) => return Ok(Err(error)),
            }
        };
        let files = match python || !self.languages.is_whole(&language)? {
            true => others
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                .collect(),
            false => Vec::new(),
        };
        Ok(Ok(Prepared {
            language,
            program,
            files,
        }))
    }

    /// Runs a prepared program with `stdin` and what it is given. When this returns, all of its processes are dead and
    /// all that it has written is gone, but for the outcome and the file that was to be kept (none if it is not there, is
    /// no plain file, or is too large).
    ///
    /// # Errors
    /// A fault says nothing about the program. [`Fault::Files`] for paths or arguments that cannot be used.
    pub fn run_prepared(
        &self,
        prepared: &Prepared,
        stdin: &[u8],
        given: &Given,
        limits: &Limits,
    ) -> Result<(Outcome, Option<Vec<u8>>), Fault> {
        let length: usize = given.arguments.iter().map(|a| a.len() + 1).sum();
        if length > LONGEST_ARGUMENTS || given.arguments.iter().any(|a| a.contains('\0')) {
            return Err(Fault::Files {
                what: format!(
                    "the arguments have {length} bytes or a NUL in them; up to {LONGEST_ARGUMENTS} can be given"
                ),
            });
        }
        let product = given.keep.map(|(path, most_bytes)| ProductPlan {
            path: path.to_owned(),
            folder: false,
            most_bytes,
            always: true,
        });
        let own = prepared.files.iter();
        let own = own.map(|(path, text)| (path.as_str(), text.as_bytes()));
        let files = own.chain(given.files.iter().copied());
        let done = match &prepared.program {
            Kind::Compiled(artifact) => {
                let pool = self.languages.pool(&prepared.language)?;
                pool.run(&Job {
                    files: Some(&Files::new(files)?),
                    arguments: given.arguments,
                    product: product.as_ref(),
                    ..Job::new(Source::Compiled(artifact), stdin, limits, &pool.terms)
                })?
            }
            Kind::Python { source, code } => {
                let ended = |argument: &String| format!("{argument}\0");
                let text: String = given.arguments.iter().map(ended).collect();
                let files = files.chain([(ARGUMENTS, text.as_bytes())]);
                self.python.run(&Job {
                    mode: order::RUN | order::ARGUMENTS,
                    code: Some(code),
                    files: Some(&Files::new(files)?),
                    product: product.as_ref(),
                    ..Job::new(Source::Text(source), stdin, limits, &self.python.terms)
                })?
            }
        };
        let kept = match done.product {
            Left::Artifact(artifact) => Some(
                std::fs::read(artifact.path())
                    .map_err(Fault::system("reading what a program has left"))?,
            ),
            Left::Nothing | Left::TooLarge => None,
        };
        Ok((done.outcome, kept))
    }
}

impl Sources<'_> {
    /// Whether it is in Python, under any of the language's names.
    pub fn is_python(&self) -> bool {
        let (language, source) = (self.language, "");
        (Program { language, source }).is_python()
    }
}
