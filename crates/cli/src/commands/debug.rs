//! `rlef debug`: one dialog, step by step.
//!
//! It drives the same episode through the same judge as training and evaluation do; what is shown here is what
//! happens there.

mod console;
mod show;
mod table;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use rlef_env::FeedbackMode;
use rlef_model::{Frame, device};
use rlef_policy::{LocalPolicy, Task};
use rlef_problems::{Problem, ProblemSet};
use rlef_rl::TrainConfig;

use crate::args::Debug;
use crate::settings::{feedback, flag, only, resolve, typed};
use crate::{models, parts};

use console::Console;
use show::Style;
use table::Table;

/// The settings that a dialog looks at.
const USED: [&str; 9] = [
    "model",
    "problems",
    "device",
    "seed",
    "episode",
    "judge",
    "eval.temperature",
    "eval.top_p",
    "rollout.max_new_tokens",
];

/// Stands for no model: all answers are typed.
const NO_MODEL: &str = "none";

pub fn run(args: &Debug) -> Result<ExitCode> {
    let config = settings(args)?;
    let sets: Vec<&str> = match &args.settings.problems {
        Some(set) => vec![set],
        None => {
            let bundled = ["basics", "micro"].into_iter();
            let others = bundled.filter(|set| *set != config.problems);
            std::iter::once(&*config.problems).chain(others).collect()
        }
    };
    let (set, problem) = parts::problem(&args.problem, &sets)?;
    let about = format!(
        "{} of {}, {} turns, feedback {}, model {}, temperature {}, seed {}",
        problem.id,
        set.name(),
        config.episode.max_turns,
        show::feedback(config.episode.feedback),
        config.model,
        config.eval.temperature,
        config.seed
    );
    let problem = Arc::new(problem);
    let others = match config.episode.feedback {
        FeedbackMode::Random => split_of(&set, &problem),
        FeedbackMode::Real | FeedbackMode::None => vec![],
    };
    let task = Task::new(&problem, 0, &others, &config.episode, config.seed);
    let episode = task.episode(&config.episode, config.seed)?;
    let judge = match parts::judge(&config.judge) {
        Ok(judge) => judge,
        Err(error) => return Ok(super::fault(&error)),
    };
    let policy = if config.model == NO_MODEL {
        None
    } else {
        Some(policy(&config)?)
    };
    if args.settings.dry_run {
        crate::say!("{about}");
        return Ok(ExitCode::SUCCESS);
    }
    let console = Console::open()?;
    let style = Style::of_this_terminal();
    Table::new(&config, episode, &judge, policy.as_ref(), style).run(console, &about)?;
    Ok(ExitCode::SUCCESS)
}

fn settings(args: &Debug) -> Result<TrainConfig> {
    let s = &args.settings;
    let mut set = typed(s);
    flag(&mut set, "model", args.model.as_ref());
    flag(&mut set, "episode.max_turns", args.max_turns);
    flag(&mut set, "eval.temperature", args.temperature);
    flag(&mut set, "episode.feedback", args.feedback.map(feedback));
    let config: TrainConfig = resolve(s.config.as_deref(), &set)?;
    only("debug", &set, &USED)?;
    config.check()?;
    Ok(config)
}

/// The split that has the problem: where evaluation would choose a donor of random feedback from.
fn split_of(set: &ProblemSet, problem: &Problem) -> Vec<Arc<Problem>> {
    let mut splits = set.splits().filter_map(|name| set.split(name).ok());
    let split = splits.find(|split| split.iter().any(|p| p.id == problem.id));
    split
        .unwrap_or_default()
        .iter()
        .cloned()
        .map(Arc::new)
        .collect()
}

fn policy(config: &TrainConfig) -> Result<LocalPolicy> {
    let device = device::open(&config.device)?;
    let folder = models::open(&config.model, &device)?;
    let frame = Arc::new(Frame::new(&folder.config, &device));
    Ok(LocalPolicy::new(
        folder.model,
        frame,
        Arc::new(folder.tokenizer),
        config.eval_sampling(),
        0,
    ))
}
