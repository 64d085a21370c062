//! `rlef sft`: dialogs, tokeniser, model; or dialogs and a model that is there.

mod tune;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use rlef_model::device;
use rlef_model::folder::{FILES, INDEX, WEIGHTS};
use rlef_policy::DriveError;
use rlef_problems::ProblemSet;
use rlef_rl::{Made, SftConfig, SftProgress, TrainError, sft};

use crate::args::Sft;
use crate::output::{memory, room};
use crate::parts;
use crate::progress::Bar;
use crate::settings::{resolve, typed};

pub fn run(args: Sft) -> Result<ExitCode> {
    if args.from_run.is_some() || args.dialogs.is_some() {
        return tune::run(&args);
    }
    if args.model.is_some() {
        bail!(
            "--model is the model to tune, with --from-run or --dialogs; without them one is made anew"
        );
    }
    let s = args.settings;
    let set = typed(&s);
    let config: SftConfig = resolve(s.config.as_deref(), &set)?;
    config.check()?;
    if s.dry_run {
        crate::text::print(&toml::to_string(&config)?)?;
    }
    let shape = config.shape()?;
    let bytes = 4 * shape.num_params() as u64;
    // Weights, gradients and two averages, and the copies that the shards work on.
    memory(5 * bytes, "this shape of model")?;
    room(&args.out, bytes).context("the folder for the model")?;
    if !args.force {
        vacant(&args.out)?;
    }
    let judge = parts::judge(&config.judge)?;
    let problems = parts::problems(&ProblemSet::open(&config.problems)?, &config.train_split, 0)?;
    config.check_problems(&problems)?;
    for problem in &problems {
        judge.check(problem)?;
    }
    device::open(&config.device)?;
    if s.dry_run {
        crate::say!(
            "\n# {} parameters, from {} dialogs of {} problems; to {}",
            shape.num_params(),
            config.dialogs_per_problem * problems.len() as u64,
            problems.len(),
            args.out.display()
        );
        return Ok(ExitCode::SUCCESS);
    }
    let stop = parts::stop_flag()?;
    let making = Bar::new("dialogs", 1);
    // Begun when the first update is done, so that its estimate does not count the making of the dialogs.
    let updating = std::sync::OnceLock::new();
    let result = sft(&config, &problems, &judge, &args.out, &stop, &|p| match p {
        SftProgress::Dialogs { done, total } => {
            making.resize(total as u64);
            making.set(done as u64, "");
        }
        SftProgress::Updates { done, total, loss } => {
            let bar = updating.get_or_init(|| {
                making.finish();
                Bar::new("updates", total as u64)
            });
            bar.set(done as u64, &format!("loss {loss:.4}"));
        }
    });
    making.finish();
    if let Some(bar) = updating.get() {
        bar.finish();
    }
    match result {
        Err(TrainError::Drive(DriveError::Stopped)) => {
            crate::say_err!("stopped while dialogs were made; there is no model yet");
            Ok(ExitCode::from(130))
        }
        other => said(other?, &args.out),
    }
}

/// Says what was made.
fn said(made: Made, out: &Path) -> Result<ExitCode> {
    if made.updates == 0 {
        crate::say_err!("stopped before the first update; there is no model yet");
        return Ok(ExitCode::from(130));
    }
    crate::say!("{}: last loss {:.4} nats a token", out.display(), made.loss);
    if made.updates < made.planned {
        crate::say_err!(
            "stopped after {} of {} updates: the model is usable but not what its recipe makes",
            made.updates,
            made.planned
        );
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses a folder that has a model, which would be replaced.
fn vacant(out: &Path) -> Result<()> {
    let files = FILES.iter().copied().chain([WEIGHTS, INDEX]);
    for name in files {
        let path = out.join(name);
        if path.exists() {
            bail!(
                "{} is there already; --force replaces the model, or give another --out",
                path.display()
            );
        }
    }
    Ok(())
}
