//! `rlef sft`: dialogs, tokeniser, model.

use std::process::ExitCode;

use anyhow::Result;
use rlef_rl::{SftConfig, sft};

use crate::args::Sft;
use crate::parts;
use crate::progress::Bar;
use crate::settings::{flag, resolve};

pub fn run(args: Sft) -> Result<ExitCode> {
    let s = args.settings;
    let mut set = s.set.clone();
    flag(&mut set, "seed", s.seed);
    flag(&mut set, "workers", s.workers);
    flag(&mut set, "device", s.device.as_ref());
    flag(&mut set, "problems", s.problems.as_ref());
    let config: SftConfig = resolve(s.config.as_deref(), &set)?;
    if s.dry_run {
        print!("{}", toml::to_string(&config)?);
        return Ok(ExitCode::SUCCESS);
    }
    let judge = parts::judge(&config.judge)?;
    let problems = parts::problems(&config.problems, &config.train_split, 0)?;
    let stop = parts::stop_flag()?;
    eprintln!("making dialogs on {} problems", problems.len());
    let bar = Bar::new("sft", 1);
    let loss = sft(&config, &problems, &judge, &args.out, &stop, &|p| {
        bar.resize(p.updates as u64);
        bar.set(p.update as u64, &format!("loss {:.4}", p.loss));
    })?;
    bar.finish();
    println!("{}: last loss {loss:.4} nats a token", args.out.display());
    Ok(ExitCode::SUCCESS)
}
