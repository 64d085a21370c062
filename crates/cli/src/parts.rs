//! The parts that several commands build.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{SigHandler, Signal};
use rlef_judge::{Judge, JudgeConfig};
use rlef_model::ModelFolder;
use rlef_policy::{LocalPolicy, Task};
use rlef_problems::{Problem, ProblemSet, SetError};
use rlef_rl::TrainConfig;
use rlef_sandbox::{Config, External, PYTHON, Sandbox};

/// A judge on a fresh sandbox, or on the command that is to take its place. Made before anything large is in memory.
pub fn judge(config: &JudgeConfig) -> Result<Judge> {
    let python = (config.python != JudgeConfig::default().python).then_some(&config.python);
    if !config.command.is_empty() {
        let without = [
            ("python", python.is_some()),
            ("packages", !config.packages.is_empty()),
        ];
        if let Some((name, _)) = without.iter().find(|(_, given)| *given) {
            bail!("setting `judge.{name}` has no effect with `judge.command`: leave it out");
        }
        let external =
            External::new(config.command.clone()).context("the command in place of the sandbox")?;
        return Judge::new(external, config.clone()).context("the judge cannot be set up");
    }
    let sandbox =
        sandbox(python.map(Path::new), &config.packages).context("the sandbox cannot be set up")?;
    Judge::new(sandbox, config.clone()).context("the judge cannot be set up")
}

/// A sandbox on this interpreter, or on the `python3` of the PATH, with these packages of it.
pub fn sandbox(python: Option<&Path>, packages: &[String]) -> Result<Sandbox, rlef_sandbox::Fault> {
    Sandbox::new(Config {
        interpreter: python.map(Path::to_owned),
        packages: packages.to_vec(),
        ..Config::default()
    })
}

/// The problems of a split; at most `limit`, 0 for all.
pub fn problems(set: &ProblemSet, split: &str, limit: usize) -> Result<Vec<Arc<Problem>>> {
    let all = set.split(split).map_err(|error| {
        let error = anyhow::Error::from(error);
        if set.splits().eq(["all"]) {
            error.context(
                "these problems are in no splits: to train on them give a folder with train.jsonl, valid.jsonl and \
                 test.jsonl, or --set train_split=all --set eval.valid_split=all --set eval.test_split=all",
            )
        } else {
            error
        }
    })?;
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

/// The split of a set that evaluations are about: `test`, or all problems where there are no splits.
pub fn held_out(set: &ProblemSet) -> String {
    let whole = set.splits().eq(["all"]);
    if whole { "all" } else { "test" }.to_owned()
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

/// What a program is written in: what was typed, or what its file's ending stands for.
pub fn language(typed: Option<&str>, file: &Path) -> String {
    if let Some(typed) = typed {
        return typed.to_owned();
    }
    let ending = file.extension().and_then(|e| e.to_str()).unwrap_or("py");
    match ending {
        "c" => "c",
        "cpp" | "cc" | "cxx" | "C" => "cpp",
        "rs" => "rust",
        "java" => "java",
        "go" => "go",
        "js" | "mjs" | "cjs" => "javascript",
        _ => PYTHON,
    }
    .to_owned()
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

/// A flag that ctrl-C, SIGTERM and SIGHUP raise; a second one ends the process at once. A signal that was ignored when
/// the command began (`nohup`) stays so.
pub fn stop_flag() -> Result<Arc<AtomicBool>> {
    let ignored: Vec<Signal> = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]
        .into_iter()
        .filter(|signal| is_ignored(*signal))
        .collect();
    let stop = Arc::new(AtomicBool::new(false));
    let raised = stop.clone();
    ctrlc::set_handler(move || {
        if raised.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        crate::say_err!("\nstopping (once more: at once)");
    })
    .context("cannot listen for ctrl-C")?;
    for signal in ignored {
        // SAFETY: ignoring a signal runs none of our code.
        unsafe { nix::sys::signal::signal(signal, SigHandler::SigIgn) }
            .context("cannot ignore a signal")?;
    }
    Ok(stop)
}

fn is_ignored(signal: Signal) -> bool {
    let path = "/proc/self/status";
    let status = std::fs::read_to_string(path).unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal as u64 - 1) & 1 == 1)
}
