//! The same tests with programs started afresh instead of forked from the warm interpreter.

use std::process::Command;

use crate::text;

#[test]
fn everything_again_without_the_warm_interpreter() {
    if ["AFRESH", "AS_USER"]
        .iter()
        .any(|n| std::env::var_os(n).is_some())
    {
        return; // we are that, or another such round
    }
    let output = Command::new(std::env::current_exe().expect("known"))
        .env("AFRESH", "1")
        // Programs in other languages have nothing to do with how Python is started.
        .args(["--test-threads", "2", "--skip", "languages::"])
        .output()
        .expect("started");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", text(&output.stderr));
    let passed = said.lines().find(|l| l.starts_with("test result: ok"));
    println!(
        "started afresh: {}",
        passed.unwrap_or_else(|| panic!("{said}"))
    );
}
