//! `rlef sft --from-run RUN` and `rlef sft --dialogs FILE`: a model that is there is tuned.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use rlef_model::{ModelFolder, device};
use rlef_rl::batch::Sample;
use rlef_rl::{SftProgress, TrainConfig, TuneConfig, successes, tokenise, tune};
use serde::Deserialize;

use super::{said, vacant};
use crate::args::Sft;
use crate::commands::train::{Point, trajectories};
use crate::output::{memory, room};
use crate::progress::Bar;
use crate::settings::{resolve, typed};
use crate::{models, parts};

pub fn run(args: &Sft) -> Result<ExitCode> {
    let s = &args.settings;
    let config: TuneConfig = resolve(s.config.as_deref(), &typed(s))?;
    config.check()?;
    if s.dry_run {
        crate::text::print(&toml::to_string(&config)?)?;
    }
    if !args.force {
        vacant(&args.out)?;
    }
    let (base, samples, of) = match (&args.from_run, &args.dialogs) {
        (Some(run), _) => from_run(&Point::read(run)?, args.model.as_deref(), &config)?,
        (None, Some(file)) => from_dialogs(file, args.model.as_deref(), &config)?,
        (None, None) => bail!("give --from-run or --dialogs"),
    };
    let bytes = 4 * base.config.num_params() as u64;
    memory(4 * bytes, "tuning this model")?;
    room(&args.out, bytes).context("the folder for the model")?;
    crate::say!(
        "{} dialogs of {of}, {} epochs; to {}",
        samples.len(),
        config.epochs,
        args.out.display()
    );
    if s.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let stop = parts::stop_flag()?;
    let bar = Bar::new("updates", 1);
    let result = tune(&config, &base, &samples, &args.out, &stop, &|p| {
        if let SftProgress::Updates { done, total, loss } = p {
            bar.resize(total as u64);
            bar.set(done as u64, &format!("loss {loss:.4}"));
        }
    });
    bar.finish();
    said(result?, &args.out)
}

/// The model, the dialogs, and whose they are.
type Tuned = (ModelFolder, Vec<Sample>, String);

/// The successes of a run. Their tokens are those of the run's model, so the model to tune must have the same tokeniser.
fn from_run(point: &Point, model: Option<&str>, config: &TuneConfig) -> Result<Tuned> {
    let run: TrainConfig = resolve(Some(&point.config()), &[])?;
    let steps = trajectories::steps(&point.run);
    let upto = point.step.unwrap_or(usize::MAX);
    let mut records = vec![];
    for &step in steps.iter().filter(|&&s| s <= upto) {
        records.extend(trajectories::read(&point.run, step)?);
    }
    if records.is_empty() {
        bail!(
            "{} has no recorded rollouts (setting `trajectories` of the run)",
            point.run.display()
        );
    }
    let all = records.len();
    let kept = successes(records, config.max_per_problem);
    if kept.is_empty() {
        bail!(
            "none of the {all} episodes of {} ended solved",
            point.run.display()
        );
    }
    let samples = kept.iter().map(|r| r.sample());
    let samples: Result<Vec<Sample>, String> = samples.collect();
    let samples = samples.map_err(|why| anyhow::anyhow!("the record {why}"))?;
    let device = device::open(&config.device)?;
    let base = models::open(model.unwrap_or(&run.model), &device)?;
    if let Some(model) = model
        && model != run.model
    {
        let theirs = models::open(&run.model, &device)
            .context("the model that the run started from, whose tokeniser its tokens are of")?;
        let tokenizer = |f: &ModelFolder| {
            let mut files = f.files.iter();
            files
                .find(|(name, _)| name == "tokenizer.json")
                .map(|(_, bytes)| bytes.clone())
        };
        if tokenizer(&theirs) != tokenizer(&base) {
            bail!(
                "{model} has another tokeniser than {}, whose tokens the run recorded",
                run.model
            );
        }
    }
    let of = format!("{} ({all} episodes)", point.run.display());
    Ok((base, samples, of))
}

/// One line of a file of dialogs.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    solved: Option<bool>,
    #[serde(default)]
    problem: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: String,
}

fn from_dialogs(file: &Path, model: Option<&str>, config: &TuneConfig) -> Result<Tuned> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let base = models::open(model.unwrap_or("tiny"), &device::open(&config.device)?)?;
    let mut samples = vec![];
    let mut taken: std::collections::HashMap<String, usize> = Default::default();
    for (i, line) in (1..)
        .zip(text.lines())
        .filter(|(_, l)| !l.trim().is_empty())
    {
        let place = || format!("line {i} of {name}");
        let line: Line =
            serde_json::from_str(line).with_context(|| format!("{} is no dialog", place()))?;
        if line.messages.is_empty() || line.solved == Some(false) {
            continue;
        }
        if let Some(problem) = line.problem {
            let n = taken.entry(problem).or_default();
            if config.max_per_problem > 0 && *n >= config.max_per_problem {
                continue;
            }
            *n += 1;
        }
        let messages: Vec<(String, String)> = line
            .messages
            .into_iter()
            .map(|m| (m.role, m.content))
            .collect();
        if messages.last().is_none_or(|(role, _)| role != "assistant") {
            bail!(
                "{} does not end with an answer (role \"assistant\")",
                place()
            );
        }
        samples.push(tokenise(&messages, &base).with_context(place)?);
    }
    if samples.is_empty() {
        bail!(
            "{name} has no dialogs to learn from: no line with `messages` that is not `\"solved\": false`"
        );
    }
    Ok((base, samples, name))
}
