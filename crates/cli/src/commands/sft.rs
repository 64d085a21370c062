//! `rlef sft`: dialogs, tokeniser, model.

use std::process::ExitCode;

use anyhow::Result;
use rlef_model::device;
use rlef_policy::DriveError;
use rlef_rl::{SftConfig, SftProgress, TrainError, sft};

use crate::args::Sft;
use crate::parts;
use crate::progress::Bar;
use crate::settings::{resolve, typed};

pub fn run(args: Sft) -> Result<ExitCode> {
    let s = args.settings;
    let set = typed(&s);
    let config: SftConfig = resolve(s.config.as_deref(), &set)?;
    config.check()?;
    if s.dry_run {
        crate::text::print(&toml::to_string(&config)?)?;
    }
    let judge = parts::judge(&config.judge)?;
    let problems = parts::problems(&config.problems, &config.train_split, 0)?;
    for problem in &problems {
        judge.check(problem)?;
    }
    device::open(&config.device)?;
    if s.dry_run {
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
    let loss = match result {
        Err(TrainError::Drive(DriveError::Stopped)) => {
            crate::say_err!("stopped while dialogs were made; there is no model yet");
            return Ok(ExitCode::from(130));
        }
        other => other?,
    };
    crate::say!("{}: last loss {loss:.4} nats a token", args.out.display());
    Ok(ExitCode::SUCCESS)
}
