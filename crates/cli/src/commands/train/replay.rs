//! `rlef train --replay RUN@STEP`: the updates of one iteration once more, from its recorded rollouts.
//!
//! The weights are those of the last checkpoint before it; what iterations lie between are redone from their rollouts as
//! well. Nothing is sampled and no program runs, so what differs then is the arithmetic.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use rlef_model::device;
use rlef_problems::ProblemSet;
use rlef_rl::{Load, Metrics, TrainConfig, Trainer};

use super::folder::{Line, METRICS};
use super::resume::{Point, listed};
use super::trajectories;
use crate::settings::resolve;
use crate::{models, parts};

/// Redoes an iteration and compares. Exit code 1 if any number differs.
pub fn run(point: &Point) -> Result<ExitCode> {
    let run = &point.run;
    let config: TrainConfig = resolve(Some(&point.config()), &[])?;
    config.check()?;
    let recorded = trajectories::steps(run);
    let Some(step) = point.step.or(recorded.last().copied()) else {
        bail!(
            "{} has no recorded rollouts (`trajectories` was off)",
            run.display()
        );
    };
    if !recorded.contains(&step) {
        bail!(
            "{} has no rollouts of iteration {step}; there are {} to {}",
            run.display(),
            recorded.first().unwrap_or(&0),
            recorded.last().unwrap_or(&0)
        );
    }
    let want = logged(point, step)?;
    let set = ProblemSet::open(&config.problems)?;
    let problems = parts::problems(&set, &config.train_split, 0)?;
    let folder = models::open(&config.model, &device::open(&config.device)?)?;
    let mut trainer = Trainer::new(&config, folder, problems)?;
    let checkpoints = point.checkpoints();
    if let Some(before) = checkpoints.last_good(step) {
        trainer.load_checkpoint(&checkpoints.path(before), Load::Resume)?;
    }
    let from = trainer.iteration();
    let missing: Vec<usize> = (from + 1..step).filter(|s| !recorded.contains(s)).collect();
    if !missing.is_empty() {
        bail!(
            "the last checkpoint before iteration {step} is of iteration {from}, and {} has no rollouts of {}",
            run.display(),
            listed(&missing)
        );
    }
    let mut got = Metrics::new();
    for i in from + 1..=step {
        let path = trajectories::path(run, i);
        let wrong = || format!("in {}", path.display());
        got = trainer
            .replay(&trajectories::read(run, i)?)
            .with_context(wrong)?;
    }
    Ok(compare(step, from, &want, &got))
}

/// The metrics of an iteration.
fn logged(point: &Point, step: usize) -> Result<Metrics> {
    let path = point.run.join(METRICS);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let mut lines = text.lines().filter_map(Line::read);
    lines
        .find(|l| l.step == step && l.metrics.contains_key("reward"))
        .map(|l| l.metrics)
        .with_context(|| format!("{} has no line of iteration {step}", path.display()))
}

fn compare(step: usize, from: usize, want: &Metrics, got: &Metrics) -> ExitCode {
    crate::say!("iteration {step}, from the weights after iteration {from}");
    crate::say!("{:<52} {:>16} {:>16}", "", "recorded", "redone");
    let mut differ = 0;
    // The share of groups without signal is that of all groups, where some were not kept.
    let comparable = |name: &str| name != "frac_reward_zero_std";
    for (name, x) in got
        .iter()
        .filter(|(name, x)| comparable(name) && x.is_finite())
    {
        let known = want.get(name).copied().unwrap_or(f64::NAN);
        let same = known == *x;
        differ += usize::from(!same);
        let mark = if same { "" } else { "  differs" };
        crate::say!("{name:<52} {known:>16.9} {x:>16.9}{mark}");
    }
    if differ == 0 {
        crate::say!("the same to the last bit");
        ExitCode::SUCCESS
    } else {
        crate::say!("{differ} numbers differ");
        ExitCode::FAILURE
    }
}
