//! Programs in other languages than Python. Where a language's tools are not installed its part says so and is left
//! out; those of C are needed.

mod attacks;
mod compile;
mod files;
mod programs;
mod sources;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use rlef_sandbox::{Candidate, Compiled, Ending, Fault, Limits, Outcome, Program, Sandbox};

use crate::{sandbox, text};

/// What a program compiles to; nothing if the language is absent here (which is told once).
fn try_compile(language: &str, source: &str) -> Option<Compiled<'static>> {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if std::env::var_os("AFRESH").is_some() {
        return None; // programs in these languages are always started afresh
    }
    for _ in 0..20 {
        match sandbox().compile(&Program { language, source }) {
            Err(Fault::Overloaded { .. }) => {}
            // Its tools have not answered in time.
            Err(Fault::NoTools { sought, .. }) if !sought.contains("on the PATH") => {}
            Err(fault @ Fault::NoTools { .. }) if language != "c" => {
                if TOLD.lock().expect("no panic").insert(language.to_owned()) {
                    println!("skipped {language}: {fault}");
                }
                return None;
            }
            other => return Some(other.expect("the sandbox works")),
        }
    }
    panic!("the machine is too busy for this test");
}

/// A program that has to compile.
fn compile(language: &str, source: &str) -> Option<Candidate<'static>> {
    match try_compile(language, source)? {
        Compiled::Program(program) => Some(program),
        Compiled::Error(error) => panic!("{language}: {}\n{source}", error.message),
    }
}

/// Runs it; a machine too busy to judge is not what these tests are about.
fn run(program: &Candidate, stdin: &str, limits: &Limits) -> Outcome {
    for _ in 0..20 {
        match program.run(stdin.as_bytes(), limits) {
            Err(Fault::Overloaded { .. }) => {}
            other => return other.expect("the sandbox works"),
        }
    }
    panic!("the machine is too busy for this test");
}

/// Enough for a JVM.
fn limits() -> Limits {
    Limits {
        memory_bytes: 128 << 20,
        wall: Duration::from_secs(60),
        ..Limits::with_cpu(Duration::from_secs(5))
    }
}

/// What a C program prints that has to end well.
fn printed(source: &str) -> Option<String> {
    let outcome = run(&compile("c", source)?, "", &limits());
    let said = text(&outcome.stderr);
    assert_eq!(outcome.ending, Ending::Exited(0), "{said}\n{source}");
    Some(text(&outcome.stdout))
}

/// A sandbox that knows the languages of these files too.
fn with_files(tomls: &[String]) -> Result<Sandbox, Fault> {
    let place = tempfile::tempdir().expect("a folder");
    let write = |(number, toml): (usize, &String)| {
        let path = place.path().join(format!("{number}.toml"));
        std::fs::write(&path, toml).expect("written");
        path
    };
    Sandbox::new(rlef_sandbox::Config {
        languages: tomls.iter().enumerate().map(write).collect(),
        ..crate::config()
    })
}
