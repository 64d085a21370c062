//! The `rlef` command: reads what was typed, builds the parts, shows progress.
#![recursion_limit = "256"]

mod args;
mod commands;
mod models;
mod output;
mod parts;
mod plot;
mod progress;
mod say;
mod settings;
mod text;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    let args = args::Args::parse();
    // Where a limit on the size of files is met, a write that fails can be said and gone on from; a signal kills.
    // SAFETY: ignoring a signal runs none of our code, and nothing else has been started yet. What is started later in
    // the sandbox sets its signals anew.
    let _ = unsafe {
        nix::sys::signal::signal(
            nix::sys::signal::Signal::SIGXFSZ,
            nix::sys::signal::SigHandler::SigIgn,
        )
    };
    // Work is split over the cores by our own threads; a pool that splits each matrix product once more only makes
    // them wait for each other (measured: updates a quarter slower with it).
    if std::env::var_os("RAYON_NUM_THREADS").is_none() {
        // It fails only if a pool is there already, which then is used as it is.
        let _ = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build_global();
    }
    match commands::run(args) {
        Ok(code) => code,
        Err(error) => {
            crate::say_err!("error: {}", text::visible(&text::error(&error)));
            std::process::ExitCode::from(2)
        }
    }
}
