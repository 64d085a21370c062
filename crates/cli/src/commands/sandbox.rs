//! `rlef sandbox`: what protects this machine, and what it costs on it.

mod bench;
mod doctor;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::{Sandbox, SandboxCommand};

pub fn run(args: &Sandbox) -> Result<ExitCode> {
    match &args.command {
        SandboxCommand::Doctor(args) => doctor::run(args),
        SandboxCommand::Bench(args) => bench::run(args),
    }
}
