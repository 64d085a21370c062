//! `rlef problems export`: a set in the format of another tool.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use rlef_problems::{
    CodeContestsWriter, ExportError, Problem, ProblemStream, jsonl, write_harbor_task,
};

use crate::args::{Export, ExportFormat};
use crate::output;
use crate::parts;
use crate::progress::Bar;
use crate::text;

/// Lines about what was lost or left out that are shown.
const SHOWN: usize = 10;
/// Longest of them, in characters.
const LINE: usize = 300;

/// Where the problems go.
enum Target {
    Jsonl(jsonl::Writer),
    CodeContests(Box<CodeContestsWriter>),
    Harbor(PathBuf),
}

impl Target {
    fn open(args: &Export) -> Result<Self> {
        let path = &args.out;
        if args.format == ExportFormat::Harbor {
            output::room(path, 1)?;
            std::fs::create_dir_all(path)
                .with_context(|| format!("cannot make the folder {}", path.display()))?;
            return Ok(Self::Harbor(path.clone()));
        }
        if path.is_dir() {
            bail!("{} is a folder; give the name of a file", path.display());
        }
        if path.exists() && !args.force {
            bail!(
                "{} is there already; --force replaces it, or give another --out",
                path.display()
            );
        }
        Ok(match args.format {
            ExportFormat::Jsonl => Self::Jsonl(jsonl::Writer::create(path)?),
            _ => Self::CodeContests(Box::new(CodeContestsWriter::create(path)?)),
        })
    }

    /// What the format could not hold of the problem.
    fn write(&mut self, problem: &Problem) -> Result<Vec<String>, ExportError> {
        match self {
            Self::Jsonl(writer) => {
                writer
                    .write(problem)
                    .map(|()| vec![])
                    .map_err(|error| ExportError::Io {
                        file: problem.id.clone(),
                        source: std::io::Error::other(error),
                    })
            }
            Self::CodeContests(writer) => writer.write(problem),
            Self::Harbor(folder) => write_harbor_task(folder, problem).map(|_| vec![]),
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Self::Jsonl(writer) => writer.finish()?,
            Self::CodeContests(writer) => writer.finish()?,
            Self::Harbor(_) => {}
        }
        Ok(())
    }
}

pub fn run(args: &Export) -> Result<ExitCode> {
    let problems = ProblemStream::open(&args.set, args.split.as_deref())?;
    let mut target = Target::open(args)?;
    let stop = parts::stop_flag()?;
    let mut written = 0u64;
    let (mut left_out, mut lost) = (Lines::default(), Lines::default());
    let bar = Bar::new("export", 0);
    for read in problems {
        if stop.load(Ordering::SeqCst) {
            bar.finish();
            let tasks = match args.format {
                ExportFormat::Harbor => format!("{written} tasks were written"),
                _ => "nothing was written".to_owned(),
            };
            crate::say_err!("stopped; {tasks}");
            return Ok(ExitCode::from(130));
        }
        let (_, problem) = read?;
        match target.write(&problem) {
            Ok(losses) => {
                written += 1;
                for what in losses {
                    lost.add(format!("{}: {what}", problem.id));
                }
            }
            Err(error @ ExportError::Unfit { .. }) => left_out.add(error.to_string()),
            Err(error) => return Err(error.into()),
        }
        let seen = written + left_out.count;
        bar.resize(seen);
        bar.set(seen, "problems");
    }
    bar.finish();
    if written == 0 {
        let first = left_out.first.first().map_or("", String::as_str);
        bail!("no problem could be written; the first: {first}");
    }
    target.finish()?;
    let mut said = format!("{}: {written} problems\n", args.out.display());
    for (what, lines) in [("left out", &left_out), ("not kept", &lost)] {
        if lines.count == 0 {
            continue;
        }
        writeln!(said, "{what} ({})", lines.count)?;
        for line in &lines.first {
            writeln!(said, "  {}", text::line(line, LINE))?;
        }
    }
    text::print(&said)?;
    Ok(ExitCode::from(u8::from(left_out.count > 0)))
}

/// Their number, and the first of them.
#[derive(Default)]
struct Lines {
    count: u64,
    first: Vec<String>,
}

impl Lines {
    fn add(&mut self, line: String) {
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(line);
        }
    }
}
