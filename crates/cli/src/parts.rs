//! The parts that several commands build.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use rlef_judge::{Judge, JudgeConfig};
use rlef_problems::{Problem, ProblemSet, SetError};
use rlef_sandbox::{Config, Sandbox};

/// A judge on a fresh sandbox. Made before anything large is in memory.
pub fn judge(config: &JudgeConfig) -> Result<Judge> {
    let sandbox = Sandbox::new(Config::default()).context("the sandbox cannot be set up")?;
    Judge::new(sandbox, config.clone()).context("the judge cannot be set up")
}

/// The problems of a split; at most `limit`, 0 for all.
pub fn problems(set: &str, split: &str, limit: usize) -> Result<Vec<Arc<Problem>>> {
    let set = ProblemSet::open(set)?;
    let all = set.split(split)?;
    let n = if limit == 0 {
        all.len()
    } else {
        limit.min(all.len())
    };
    if n == 0 {
        bail!("split {split} of {} has no problems", set.name());
    }
    Ok(all[..n].iter().cloned().map(Arc::new).collect())
}

/// The problem of that id in the first of `sets` that has it, and that set.
pub fn problem(id: &str, sets: &[&str]) -> Result<(ProblemSet, Problem)> {
    let mut missing = Vec::new();
    for name in sets {
        let set = ProblemSet::open(name)?;
        match set.get(id) {
            Ok(problem) => {
                let problem = problem.clone();
                return Ok((set, problem));
            }
            Err(error @ SetError::UnknownId { .. }) => missing.push(error.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
    bail!("{}", missing.join("\n       "))
}

/// The text of a program: a file, or `-` for stdin.
pub fn program(path: &Path) -> Result<String> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .context("cannot read the program from stdin")?;
        bytes
    } else {
        std::fs::read(path)
            .with_context(|| format!("cannot read the program {}", path.display()))?
    };
    String::from_utf8(bytes)
        .with_context(|| format!("the program {} is not UTF-8 text", path.display()))
}

/// A flag that ctrl-C (or SIGTERM) raises; a second one ends the process at once.
pub fn stop_flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let raised = stop.clone();
    ctrlc::set_handler(move || {
        if raised.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        crate::say_err!("\nstopping (once more: at once)");
    })
    .context("cannot listen for ctrl-C")?;
    Ok(stop)
}
