//! What each command does.

mod debug;
mod eval;
mod judge;
mod model;
mod plan;
mod problems;
mod run;
mod sandbox;
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
        Command::Judge(a) => judge::run(&a),
        Command::Run(a) => run::run(&a),
        Command::Debug(a) => debug::run(&a),
        Command::Model(a) => model::run(a),
        Command::Plan(a) => plan::run(&a),
        Command::Problems(a) => problems::run(a),
        Command::Sandbox(a) => sandbox::run(&a),
    }
}

/// Says that the machinery failed, which is nobody's verdict, and gives the exit code for it.
fn fault(error: &anyhow::Error) -> ExitCode {
    crate::say_err!(
        "fault: {}",
        crate::text::visible(&crate::text::error(error))
    );
    ExitCode::from(3)
}
