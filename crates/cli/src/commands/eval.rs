//! `rlef eval`: n@k with its interval.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Result, anyhow, bail};
use rlef_env::FeedbackMode;
use rlef_eval::{Bootstrap, Budget, Condition, Summary, measure, score};
use rlef_judge::Judge;
use rlef_model::{Frame, device};
use rlef_policy::{Drive, LocalPolicy, Outcome, Policy, Script, ScriptedPolicy};
use rlef_problems::{Problem, ProblemSet};
use rlef_rl::TrainConfig;
use serde_json::{Value, json};

use crate::args::Eval;
use crate::output::Draft;
use crate::progress::Bar;
use crate::settings::{feedback, flag, only, resolve, typed};
use crate::{models, parts};

/// The settings that an evaluation looks at.
const USED: [&str; 11] = [
    "problems",
    "seed",
    "workers",
    "episode",
    "judge",
    "rollout.batch",
    "model",
    "device",
    "eval.temperature",
    "eval.top_p",
    "rollout.max_new_tokens",
];
/// Those that it looks at where no model answers.
const SCRIPTED: &[&str] = USED.split_at(6).0;

pub fn run(args: Eval) -> Result<ExitCode> {
    let s = &args.settings;
    let mut set = typed(s);
    flag(&mut set, "model", args.model.as_ref());
    flag(&mut set, "episode.max_turns", args.max_turns);
    flag(&mut set, "eval.temperature", args.temperature);
    flag(&mut set, "eval.top_p", args.top_p);
    flag(&mut set, "episode.feedback", args.feedback.map(feedback));
    let config: TrainConfig = resolve(s.config.as_deref(), &set)?;
    match &args.script {
        Some(_) => only("eval --script", &set, SCRIPTED)?,
        None => only("eval", &set, &USED)?,
    }
    config.check()?;
    let budget = Budget::new(args.n, args.k, config.episode.max_turns)?;
    let rollouts = args.rollouts.unwrap_or(budget.needed() as u64);
    if (rollouts as usize) < budget.needed() {
        bail!(
            "{budget} needs {} rollouts of each problem, not {rollouts}",
            budget.needed()
        );
    }
    /// More episodes than any machine runs in a lifetime: a slip of the finger, not a plan.
    const MOST: u64 = 100_000_000;
    let set = ProblemSet::open(&config.problems)?;
    let split = args.split.unwrap_or_else(|| parts::held_out(&set));
    let limit = args.limit.unwrap_or(0) as usize;
    let problems = parts::problems(&set, &split, limit)?;
    if rollouts.saturating_mul(problems.len() as u64) > MOST {
        bail!(
            "{rollouts} rollouts of {} problems are more than {MOST} episodes; ask for fewer",
            problems.len()
        );
    }
    let judge = parts::judge(&config.judge)?;
    let policy = policy(&config, args.script.as_deref(), &judge, &problems)?;
    let who = match &args.script {
        Some(script) => format!("script {script}"),
        None => config.model.clone(),
    };
    if let Some(path) = &args.dialogs {
        Draft::check(path)?;
    }
    if s.dry_run {
        crate::say!(
            "{budget} of {who} on {} problems of {} ({split}){}, {rollouts} rollouts each of up to {} turns{}",
            problems.len(),
            config.problems,
            condition(&config),
            config.episode.max_turns,
            match args.script {
                Some(_) => String::new(),
                None => format!(
                    ", temperature {}, top-p {}",
                    config.eval.temperature, config.eval.top_p
                ),
            }
        );
        return Ok(ExitCode::SUCCESS);
    }
    // Opened before the work, so that a path that cannot be written costs nothing.
    let dialogs = args.dialogs.as_deref().map(Draft::open).transpose()?;
    let stop = parts::stop_flag()?;
    let drive = Drive {
        episode: config.episode.clone(),
        seed: config.seed,
        workers: config.workers,
        batch: config.rollout.batch,
    };
    let bar = Bar::new("eval", problems.len() as u64 * rollouts);
    let result = measure(
        policy.as_ref(),
        &judge,
        &problems,
        rollouts,
        &drive,
        &stop,
        &|p| {
            bar.set(p.done as u64, &format!("{} tokens", p.sampled));
        },
    );
    bar.finish();
    if stop.load(Ordering::Relaxed) {
        crate::say_err!(
            "stopped before the evaluation was complete; nothing is reported, as a part would be biased"
        );
        return Ok(ExitCode::from(130));
    }
    let (pool, outcomes) = result?;
    // A failed write is reported after the score, which must not be lost with it.
    let written = dialogs.map_or(Ok(()), |draft| write_dialogs(draft, &outcomes));
    let score = score(
        &pool,
        &budget,
        &Bootstrap {
            seed: config.seed,
            ..Bootstrap::default()
        },
    )?;
    if args.json {
        let json = json!({
            "score": score,
            "split": split,
            "limit": args.limit,
            "rollouts": rollouts,
            "script": args.script,
            "config": used(&config, args.script.is_some())?,
        });
        crate::text::print(&(serde_json::to_string_pretty(&json)? + "\n"))?;
    } else {
        let name = format!("{who} on {}/{split}{}", config.problems, condition(&config));
        let summary = Summary {
            conditions: vec![Condition {
                name,
                scores: vec![score],
            }],
            differences: vec![],
        };
        crate::text::print(&summary.table())?;
    }
    written?;
    Ok(ExitCode::SUCCESS)
}

/// Whoever answers, once it is known that there is an answer to every problem and that each can be judged.
fn policy(
    config: &TrainConfig,
    script: Option<&str>,
    judge: &Judge,
    problems: &[Arc<Problem>],
) -> Result<Box<dyn Policy>> {
    let Some(script) = script else {
        let device = device::open(&config.device)?;
        let folder = models::open(&config.model, &device)?;
        parts::fits(config, judge, &folder, problems)?;
        let frame = Arc::new(Frame::new(&folder.config, &device));
        let tokenizer = Arc::new(folder.tokenizer);
        let sampling = config.eval_sampling();
        let policy = LocalPolicy::new(folder.model, frame, tokenizer, sampling, 0);
        return Ok(Box::new(policy));
    };
    let script = match script {
        "accepted" => Script::Accepted,
        "incorrect" => Script::Incorrect,
        "memorised" => Script::Memorised,
        file => Script::read(&parts::text(Path::new(file))?).map_err(|what| {
            anyhow!("{file}: {what}; give such a file, or `accepted`, `incorrect` or `memorised`")
        })?,
    };
    for problem in problems {
        judge.check(problem)?;
        script.answer(problem, 0, [0; 32])?;
    }
    Ok(Box::new(ScriptedPolicy(script)))
}

/// What sets an evaluation apart from dialogs with the failures of their own programs.
fn condition(config: &TrainConfig) -> &'static str {
    match (config.episode.max_turns, config.episode.feedback) {
        (1, _) => ", independent tries",
        (_, FeedbackMode::Real) => "",
        (_, FeedbackMode::Random) => ", random feedback",
        (_, FeedbackMode::None) => ", no feedback",
    }
}

/// The settings that an evaluation looks at, and only those.
fn used(config: &TrainConfig, scripted: bool) -> Result<Value> {
    let names = if scripted { SCRIPTED } else { &USED };
    let mut all = serde_json::to_value(config)?;
    if let Some(all) = all.as_object_mut() {
        all.retain(|group, settings| {
            let whole = names.contains(&group.as_str());
            if let (false, Some(settings)) = (whole, settings.as_object_mut()) {
                settings.retain(|key, _| names.contains(&format!("{group}.{key}").as_str()));
                return !settings.is_empty();
            }
            whole
        });
    }
    Ok(all)
}

/// One line a dialog: problem, messages, turns, tokens with their log-probabilities.
fn write_dialogs(mut file: Draft, outcomes: &[Outcome]) -> Result<()> {
    for outcome in outcomes {
        let line = match outcome {
            Outcome::Done(r) => json!({
                "problem": r.problem.id,
                "sample": r.sample,
                "solved": r.solved(),
                "reward": r.reward(),
                "full": r.full,
                "messages": r.messages,
                "turns": r.turns,
                "tokens": r.tokens,
            }),
            Outcome::Lost {
                problem,
                sample,
                why,
            } => json!({ "problem": problem, "sample": sample, "lost": why }),
        };
        file.line(line)?;
    }
    file.finish()
}
