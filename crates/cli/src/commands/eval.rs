//! `rlef eval`: n@k with its interval.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use rlef_env::FeedbackMode;
use rlef_eval::{Bootstrap, Budget, Condition, Summary, measure, score};
use rlef_model::{Frame, device};
use rlef_policy::{Drive, LocalPolicy, Outcome};
use rlef_rl::TrainConfig;
use serde_json::json;

use crate::args::{Eval, Feedback};
use crate::progress::Bar;
use crate::settings::{flag, resolve};
use crate::{models, parts};

pub fn run(args: Eval) -> Result<ExitCode> {
    let s = &args.settings;
    let mut set = s.set.clone();
    flag(&mut set, "seed", s.seed);
    flag(&mut set, "workers", s.workers);
    flag(&mut set, "device", s.device.as_ref());
    flag(&mut set, "problems", s.problems.as_ref());
    flag(&mut set, "model", args.model.as_ref());
    flag(&mut set, "episode.max_turns", args.max_turns);
    flag(&mut set, "eval.temperature", args.temperature);
    flag(&mut set, "eval.top_p", args.top_p);
    let mut config: TrainConfig = resolve(s.config.as_deref(), &set)?;
    if let Some(f) = args.feedback {
        config.episode.feedback = match f {
            Feedback::Real => FeedbackMode::Real,
            Feedback::Random => FeedbackMode::Random,
            Feedback::None => FeedbackMode::None,
        };
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
    let problems = parts::problems(&config.problems, &args.split, args.limit.unwrap_or(0))?;
    if s.dry_run {
        println!(
            "{budget} of {} on {} problems of {} ({}), {rollouts} rollouts each of up to {} turns, temperature {}, top-p {}",
            config.model,
            problems.len(),
            config.problems,
            args.split,
            config.episode.max_turns,
            config.eval.temperature,
            config.eval.top_p
        );
        return Ok(ExitCode::SUCCESS);
    }
    let judge = parts::judge(&config.judge)?;
    let device = device::open(&config.device)?;
    let folder = models::open(&config.model, &device)?;
    let frame = Arc::new(Frame::new(&folder.config, &device));
    let policy = LocalPolicy::new(
        folder.model,
        frame,
        Arc::new(folder.tokenizer),
        config.eval_sampling(),
        0,
    );
    let stop = parts::stop_flag()?;
    let drive = Drive {
        episode: config.episode.clone(),
        seed: config.seed,
        workers: config.workers,
        batch: config.rollout.batch,
    };
    let bar = Bar::new("eval", problems.len() as u64 * rollouts);
    let result = measure(&policy, &judge, &problems, rollouts, &drive, &stop, &|p| {
        bar.set(p.done as u64, &format!("{} tokens", p.sampled));
    });
    bar.finish();
    if stop.load(Ordering::Relaxed) {
        bail!(
            "stopped before the evaluation was complete; nothing is reported, as a part would be biased"
        );
    }
    let (pool, outcomes) = result?;
    if let Some(path) = &args.dialogs {
        write_dialogs(path, &outcomes)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let score = score(
        &pool,
        &budget,
        &Bootstrap {
            seed: config.seed,
            ..Bootstrap::default()
        },
    )?;
    if args.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&json!({ "score": score, "config": config }))?
        );
    } else {
        let name = format!("{} on {}/{}", config.model, config.problems, args.split);
        let summary = Summary {
            conditions: vec![Condition {
                name,
                scores: vec![score],
            }],
            differences: vec![],
        };
        print!("{}", summary.table());
    }
    Ok(ExitCode::SUCCESS)
}

/// One line a dialog: problem, messages, turns, tokens with their log-probabilities.
pub fn write_dialogs(path: &std::path::Path, outcomes: &[Outcome]) -> Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for outcome in outcomes {
        let line = match outcome {
            Outcome::Done(r) => json!({
                "problem": r.problem.id,
                "sample": r.sample,
                "solved": r.solved(),
                "reward": r.reward(),
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
        writeln!(file, "{line}")?;
    }
    Ok(file.flush()?)
}
