//! Runs a file in the sandbox: `cargo run --release -p rlef-sandbox --example run -- FILE [LANGUAGE] < INPUT`.

use std::io::{Read, Write};
use std::time::Duration;

use rlef_sandbox::{Compiled, Config, Limits, PYTHON, Program, Sandbox};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments
        .next()
        .ok_or("usage: run FILE [LANGUAGE] < INPUT")?;
    let language = arguments.next().unwrap_or(PYTHON.into());
    let source = std::fs::read_to_string(file)?;
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;

    let sandbox = Sandbox::new(Config::default())?;
    for protection in sandbox.protections() {
        let mark = if protection.in_force { "on " } else { "OFF" };
        eprintln!("{mark} {}: {}", protection.name, protection.detail);
    }
    let (language, source) = (language.as_str(), source.as_str());
    let program = match sandbox.compile(&Program { language, source })? {
        Compiled::Program(program) => program,
        Compiled::Error(error) => return Err(error.message.into()),
    };
    let outcome = program.run(&input, &Limits::with_cpu(Duration::from_secs(2)))?;

    std::io::stdout().write_all(&outcome.stdout)?;
    std::io::stderr().write_all(&outcome.stderr)?;
    eprintln!(
        "{}; CPU {:?}, wall {:?}, memory {:?}",
        outcome.ending, outcome.cpu, outcome.wall, outcome.peak_memory_bytes
    );
    Ok(())
}
