//! Runs a Python file in the sandbox: `cargo run --release -p rlef-sandbox --example run -- FILE < INPUT`.

use std::io::{Read, Write};
use std::time::Duration;

use rlef_sandbox::{Config, Limits, Sandbox};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: run FILE < INPUT")?;
    let source = std::fs::read_to_string(file)?;
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;

    let sandbox = Sandbox::new(Config::default())?;
    for protection in sandbox.protections() {
        let mark = if protection.in_force { "on " } else { "OFF" };
        eprintln!("{mark} {}: {}", protection.name, protection.detail);
    }
    let outcome = sandbox.run(&source, &input, &Limits::with_cpu(Duration::from_secs(2)))?;

    std::io::stdout().write_all(&outcome.stdout)?;
    std::io::stderr().write_all(&outcome.stderr)?;
    eprintln!(
        "{}; CPU {:?}, wall {:?}, memory {:?}",
        outcome.ending, outcome.cpu, outcome.wall, outcome.peak_memory_bytes
    );
    Ok(())
}
