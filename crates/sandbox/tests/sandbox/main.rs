//! Real programs in real sandboxes. One binary, so that it can be run again as another user (`users.rs`).

mod attacks;
mod calls;
mod documents;
mod escape;
mod external;
mod groups;
mod interference;
mod interpreters;
mod language;
mod languages;
mod leftovers;
mod lent;
mod limits;
mod modes;
mod packages;
mod prepared;
mod refused;
mod soak;
mod users;
mod warm;

use std::sync::OnceLock;
use std::time::Duration;

use rlef_sandbox::{Config, Ending, Fault, Limits, Outcome, Sandbox};

/// The default, or without the warm interpreter when `modes.rs` runs all tests again.
fn config() -> Config {
    Config {
        warm: std::env::var_os("AFRESH").is_none(),
        ..Config::default()
    }
}

/// One sandbox for all tests, used by all their threads at once.
fn sandbox() -> &'static Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| Sandbox::new(config()).expect("a sandbox on this machine"))
}

fn limits() -> Limits {
    Limits::with_cpu(Duration::from_secs(2))
}

fn run(source: &str) -> Outcome {
    run_with(source, b"", &limits())
}

/// A machine too busy to judge is not what these tests are about: such runs are repeated.
fn run_with(source: &str, stdin: &[u8], limits: &Limits) -> Outcome {
    for _ in 0..20 {
        match sandbox().run(source, stdin, limits) {
            Err(Fault::Overloaded { .. }) => {}
            other => return other.expect("the sandbox works"),
        }
    }
    panic!("the machine is too busy for this test");
}

/// What a program prints that has to end well.
fn printed(source: &str) -> String {
    let outcome = run(source);
    assert_eq!(
        outcome.ending,
        Ending::Exited(0),
        "{}",
        text(&outcome.stderr)
    );
    text(&outcome.stdout)
}

/// The last line of the traceback of a program that has to fail by itself.
fn raised(source: &str) -> String {
    let outcome = run(source);
    assert_eq!(
        outcome.ending,
        Ending::Exited(1),
        "{}",
        text(&outcome.stderr)
    );
    text(&outcome.stderr)
        .lines()
        .last()
        .unwrap_or_default()
        .to_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs one (ignored) test of this binary in a process of its own and returns what it printed.
fn alone(test: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().expect("known"));
    command.args([
        "--ignored",
        "--exact",
        "--nocapture",
        "--test-threads=1",
        test,
    ]);
    command
}

/// Has a test of this binary run alone (see [`alone`]) and pass; what it printed.
fn passes(command: &mut std::process::Command) -> String {
    let output = command.output().expect("started");
    let said = text(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{command:?}: {said}\n{}",
        text(&output.stderr)
    );
    said
}
