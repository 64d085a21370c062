//! What each command does.

mod eval;
mod sft;
mod train;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::{Args, Command};

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.command {
        Command::Train(a) => train::run(a),
        Command::Sft(a) => sft::run(a),
        Command::Eval(a) => eval::run(a),
    }
}
