//! End-to-end tests of the built rlef command: where it is, and how tests start it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The `rlef` command, ready for arguments; stdin is empty unless it is set.
pub fn rlef() -> Command {
    let mut command = Command::new(binary());
    command
        .stdin(std::process::Stdio::null())
        .env_remove("NO_COLOR")
        .current_dir(root());
    command
}

/// Runs `rlef` with these arguments to its end: exit code, stdout and stderr.
pub fn ran(arguments: &[&str]) -> (i32, String, String) {
    let output = rlef().args(arguments).output().expect("rlef starts");
    (
        output.status.code().expect("an exit code"),
        String::from_utf8(output.stdout).expect("text"),
        String::from_utf8(output.stderr).expect("text"),
    )
}

/// A path as an argument.
pub fn name(path: &Path) -> &str {
    path.to_str().expect("a path of plain text")
}

/// The repository's root.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The built command: next to the tests themselves, and brought up to date first, since a test run of this package
/// alone does not build it. `RLEF_BIN` names another one.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("RLEF_BIN") {
        Some(path) => path.into(),
        None => build(),
    })
}

fn build() -> PathBuf {
    let tests = std::env::current_exe().expect("the path of this test");
    // target/PROFILE/deps/TEST
    let profile = tests.ancestors().nth(2).expect("a folder for the profile");
    let target = profile.parent().expect("a target folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.arg("build").current_dir(root());
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let built = cargo
        .arg("--target-dir")
        .arg(target)
        .output()
        .expect("cargo starts");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "cargo build failed:\n{said}");
    profile.join("rlef")
}
