//! `rlef train`: iterations, measurements between them, a table and a plot at the end.

mod folder;
mod history;
mod measure;
mod origin;
mod replay;
mod resume;
mod run;
mod setup;
mod tensorboard;
mod trackio;
pub mod trajectories;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use rlef_rl::{Load, TrainConfig, Trainer};

use crate::args::Train;
use crate::parts;
use crate::settings::{flag, resolve, typed};

use folder::{Past, RunFolder, lock};
use origin::Origin;
pub use resume::Point;
use run::{Run, fill};
use setup::Parts;

pub fn run(args: Train) -> Result<ExitCode> {
    if let Some(run) = &args.replay {
        only_alone(
            &args,
            "--replay redoes what was done, with the run's own settings",
        )?;
        return replay::run(&Point::read(run)?);
    }
    if let Some(run) = &args.resume {
        only_alone(
            &args,
            "--resume goes on with the run's own settings; --from RUN@STEP begins another run with others",
        )?;
        return resume(&Point::read(run)?, args.settings.dry_run);
    }
    let s = &args.settings;
    let mut set = typed(s);
    flag(&mut set, "model", args.model.as_ref());
    flag(&mut set, "iterations", args.iterations);
    let origin = args.from.as_deref().map(Point::read).transpose()?;
    let file = match &origin {
        Some(point) => Some(point.config()),
        None => s.config.clone(),
    };
    let config: TrainConfig = resolve(file.as_deref(), &set)?;
    config.check()?;
    if s.dry_run {
        // First what was decided, then whether this machine can do it.
        crate::text::print(&toml::to_string(&config)?)?;
    }
    let mut parts = Parts::open(&config)?;
    let origin = origin
        .map(|point| Origin::open(point, &config))
        .transpose()?;
    if s.dry_run {
        let out = RunFolder::name(args.out.as_deref(), parts.bytes(&config))?;
        let from = origin.map_or(String::new(), |o| format!("; from {}", o.name()));
        crate::say!(
            "\n{}{from}; run folder {}",
            parts.plan(&config),
            out.display()
        );
        return Ok(ExitCode::SUCCESS);
    }
    let mut trainer = parts.trainer(&config)?;
    let (mut past, mut name) = (Past::default(), None);
    if let Some(origin) = &origin {
        let load = Load::Fork {
            new_data: origin.new_data(&config),
        };
        past = origin.load(&mut trainer, load)?;
        name = Some(origin.name());
    }
    let bytes = parts.bytes(&config);
    let out = RunFolder::create(args.out.as_deref(), bytes, &config, name.as_deref(), &past)?;
    if origin.is_some() {
        // Killed before its first own checkpoint, it is resumed from here.
        out.checkpoints()
            .write(past.step, |dir| fill(&trainer, &out, dir))
            .context("the first checkpoint")?;
    }
    begin(config, parts, trainer, out)
}

/// Goes on with a run.
fn resume(point: &Point, dry_run: bool) -> Result<ExitCode> {
    let lock = lock(&point.run)?;
    let config: TrainConfig = resolve(Some(&point.config()), &[])?;
    config.check()?;
    let mut parts = Parts::open(&config)?;
    let step = point.to_resume()?;
    if dry_run {
        crate::text::print(&toml::to_string(&config)?)?;
        crate::say!(
            "\n{}; run folder {}, from iteration {}",
            parts.plan(&config),
            point.run.display(),
            step.unwrap_or(0)
        );
        return Ok(ExitCode::SUCCESS);
    }
    let mut trainer = parts.trainer(&config)?;
    let past = match step {
        Some(step) => {
            let origin = Origin {
                point: point.clone(),
                step,
                config: config.clone(),
            };
            origin.load(&mut trainer, Load::Resume)?
        }
        None => Past::default(),
    };
    let all = point.checkpoints();
    all.clear_leftovers();
    for later in all.steps().into_iter().filter(|&s| s > past.step) {
        crate::say_err!(
            "removing the damaged checkpoint {}",
            all.path(later).display()
        );
        all.remove(later)
            .with_context(|| format!("cannot remove {}", all.path(later).display()))?;
    }
    let out = RunFolder::resume(&point.run, lock, &config, &past)?;
    begin(config, parts, trainer, out)
}

/// Refuses what would change a run that is as it is.
fn only_alone(args: &Train, why: &str) -> Result<()> {
    let s = &args.settings;
    let typed = !s.set.is_empty()
        || s.config.is_some()
        || s.seed.is_some()
        || s.workers.is_some()
        || s.device.is_some()
        || s.problems.is_some()
        || args.model.is_some()
        || args.iterations.is_some()
        || args.out.is_some();
    if typed {
        bail!("{why}: leave the other arguments out");
    }
    Ok(())
}

fn begin(config: TrainConfig, parts: Parts, trainer: Trainer, out: RunFolder) -> Result<ExitCode> {
    let stop = parts::stop_flag()?;
    let from = match trainer.iteration() {
        0 => String::new(),
        n => format!(", from iteration {n}"),
    };
    crate::say!(
        "{} ({} parameters) on {} problems of {}/{}; run folder {}{from}",
        config.model,
        parts.params,
        parts.train.len(),
        config.problems,
        config.train_split,
        out.dir().display()
    );
    let mut run = Run::new(config, parts, trainer, out, stop);
    run.train()?;
    run.finish()
}
