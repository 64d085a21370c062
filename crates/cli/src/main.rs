//! The `rlef` command: reads what was typed, builds the parts, shows progress.
#![recursion_limit = "256"]

mod args;
mod commands;
mod models;
mod parts;
mod plot;
mod progress;
mod settings;
mod text;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    let args = args::Args::parse();
    match commands::run(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            std::process::ExitCode::from(2)
        }
    }
}
