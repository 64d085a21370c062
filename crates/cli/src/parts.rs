//! The parts that several commands build.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use rlef_judge::{Judge, JudgeConfig};
use rlef_model::ModelFolder;
use rlef_policy::{LocalPolicy, Task};
use rlef_problems::{Problem, ProblemSet, SetError};
use rlef_rl::TrainConfig;
use rlef_sandbox::{Config, External, Sandbox};

/// A judge on a fresh sandbox, or on the command that is to take its place. Made before anything large is in memory.
pub fn judge(config: &JudgeConfig) -> Result<Judge> {
    if !config.command.is_empty() {
        let external =
            External::new(config.command.clone()).context("the command in place of the sandbox")?;
        return Judge::new(external, config.clone()).context("the judge cannot be set up");
    }
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

/// Checks what would otherwise be found out in the middle of the work: that every problem can be judged and that the
/// model has room for its prompt.
pub fn fits(
    config: &TrainConfig,
    judge: &Judge,
    folder: &ModelFolder,
    problems: &[Arc<Problem>],
) -> Result<()> {
    let positions = folder.config.max_position_embeddings;
    for problem in problems {
        judge.check(problem)?;
        let task = Task::new(problem, 0, problems, &config.episode, config.seed);
        let episode = task.episode(&config.episode, config.seed)?;
        let full = LocalPolicy::full(
            episode.messages(),
            &folder.tokenizer,
            positions,
            config.rollout.max_new_tokens,
        )?;
        if let Some(full) = full {
            bail!(
                "the prompt of problem {} does not fit {}: {full}; leave the problem out, or allow shorter answers",
                problem.id,
                config.model
            );
        }
    }
    Ok(())
}

/// Most of a file that is read as one text. Beyond it something else was meant, such as a device that never ends.
const LONGEST_TEXT: u64 = 16 << 20;

/// The text of a file.
pub fn text(path: &Path) -> Result<String> {
    let file =
        std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    read_text(file, &path.display().to_string())
}

/// The text of a program: a file, or `-` for stdin.
pub fn program(path: &Path) -> Result<String> {
    if path == Path::new("-") {
        read_text(std::io::stdin(), "stdin")
    } else {
        text(path)
    }
    .context("the program")
}

fn read_text(from: impl Read, name: &str) -> Result<String> {
    let mut bytes = Vec::new();
    from.take(LONGEST_TEXT + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > LONGEST_TEXT {
        bail!("{name} is longer than {} MiB", LONGEST_TEXT >> 20);
    }
    String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8 text"))
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
