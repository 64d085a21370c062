//! The interpreter is found and confined wherever and however it is installed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rlef_sandbox::{Config, Ending, Fault, Outcome, Sandbox};

use crate::{config, limits, text};

/// The real interpreter behind `python3`.
fn real() -> PathBuf {
    let output = Command::new("python3")
        .args([
            "-I",
            "-c",
            "import os, sys; print(os.path.realpath(sys.executable))",
        ])
        .output()
        .expect("python3 runs");
    PathBuf::from(text(&output.stdout).trim())
}

fn prefix() -> PathBuf {
    let output = Command::new("python3")
        .args(["-I", "-c", "import sys; print(sys.base_prefix)"])
        .output()
        .expect("python3 runs");
    PathBuf::from(text(&output.stdout).trim())
}

fn with(interpreter: &Path, source: &str) -> Outcome {
    let config = Config {
        interpreter: Some(interpreter.into()),
        ..config()
    };
    let sandbox =
        Sandbox::new(config).unwrap_or_else(|fault| panic!("{}: {fault}", interpreter.display()));
    assert!(sandbox.python_version().starts_with("3."));
    sandbox.run(source, b"", &limits()).expect("ran")
}

const LOOK: &str = "import sys, os, json, math, hashlib, decimal\nprint(sys.version_info[0], os.path.exists('/etc/passwd'))";

fn fine(interpreter: &Path) {
    let outcome = with(interpreter, LOOK);
    assert_eq!(
        (outcome.ending, text(&outcome.stdout)),
        (Ending::Exited(0), "3 False\n".into()),
        "{}",
        text(&outcome.stderr)
    );
}

#[test]
fn a_link_to_a_link() {
    let place = tempfile::tempdir().expect("a folder");
    symlink(real(), place.path().join("one")).expect("made");
    symlink("one", place.path().join("python3")).expect("made");
    fine(&place.path().join("python3"));
}

#[test]
fn a_shell_script_in_front() {
    let place = tempfile::tempdir().expect("a folder");
    let shim = place.path().join("python3");
    fs::write(
        &shim,
        format!(
            "#!/bin/sh\necho choosing a version\nexec '{}' \"$@\"\n",
            real().display()
        ),
    )
    .expect("made");
    fs::set_permissions(&shim, fs::Permissions::from_mode(0o755)).expect("made");
    fine(&shim);
}

/// The interpreter of a new virtual environment in `place`, without pip. Not there where this Python has no venv module.
pub fn virtual_environment(place: &Path) -> Option<PathBuf> {
    let made = Command::new("python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(place.join("venv"))
        .output();
    if !made.is_ok_and(|m| m.status.success()) {
        println!("skipped: this Python has no venv module");
        return None;
    }
    Some(place.join("venv/bin/python3"))
}

#[test]
fn a_virtual_environment_and_its_packages_are_not_seen() {
    let place = tempfile::tempdir().expect("a folder");
    let Some(python) = virtual_environment(place.path()) else {
        return;
    };
    let packages = glob(&place.path().join("venv/lib"), "site-packages").expect("there");
    fs::write(packages.join("mine.py"), "").expect("made");
    let outcome = with(&python, "import mine");
    assert!(
        text(&outcome.stderr).ends_with("ModuleNotFoundError: No module named 'mine'\n"),
        "{}",
        text(&outcome.stderr)
    );
    fine(&python);
}

fn glob(under: &Path, name: &str) -> Option<PathBuf> {
    fs::read_dir(under)
        .ok()?
        .flatten()
        .map(|e| e.path().join(name))
        .find(|p| p.exists())
}

#[test]
fn a_copy_in_a_home_folder_shows_nothing_else_of_it() {
    // In /tmp, too, which inside is another folder: both must be there.
    let Some(copy) = Copy::make("/tmp", &[]) else {
        return;
    };
    let home = &copy.home;
    let look = format!(
        "import os, sys, json, hashlib\nh = {:?}\nassert sys.executable.startswith(h) and json.__file__.startswith(h), (sys.executable, json.__file__)\n\
        seen = [os.path.join(d, f) for d, ds, fs in os.walk(h) for f in fs + ds]\n\
        print([p for p in seen if 'hidden-answer' in p], os.listdir(h), sorted(os.listdir('/tmp')) if not h.startswith('/tmp') else '')\n\
        try: open(os.path.join(os.path.dirname(json.__file__), 'x'), 'w'); print('written')\nexcept OSError: pass",
        home.path()
    );
    let outcome = with(&copy.interpreter(), &look);
    assert_eq!(
        outcome.ending,
        Ending::Exited(0),
        "{}",
        text(&outcome.stderr)
    );
    assert!(
        text(&outcome.stdout).starts_with("[] ['.local'"),
        "{}",
        text(&outcome.stdout)
    );
    assert!(!text(&outcome.stdout).contains("written"));
}

/// A copy of the interpreter in a home folder.
pub(crate) struct Copy {
    home: tempfile::TempDir,
}

impl Copy {
    /// Leaves out modules of these names; `None` where the standard library is not where it usually is.
    pub(crate) fn make(place: &str, without: &[&str]) -> Option<Self> {
        let home = tempfile::tempdir_in(place).expect("a folder");
        fs::write(home.path().join("hidden-answer"), "answer").expect("made");
        let own = home.path().join(".local/share/py");
        fs::create_dir_all(&own).expect("made");
        let real = real();
        let version = real.file_name()?.to_string_lossy().into_owned();
        let library = prefix().join("lib").join(&version);
        if !library.is_dir() {
            println!("skipped: {} is not the standard library", library.display());
            return None;
        }
        let packages = own.join("lib").join(&version).join("site-packages");
        fs::create_dir_all(own.join("bin")).expect("made");
        fs::copy(&real, own.join("bin").join(&version)).expect("copied");
        copy(&library, &own.join("lib").join(&version), without);
        fs::create_dir_all(&packages).expect("made");
        fs::write(packages.join("hidden-answer.py"), "").expect("made");
        symlink(own.join("bin").join(&version), home.path().join("python3")).expect("made");
        Some(Self { home })
    }

    pub(crate) fn interpreter(&self) -> PathBuf {
        self.home.path().join("python3")
    }
}

/// Copies a folder without other people's packages and its own tests.
fn copy(from: &Path, to: &Path, without: &[&str]) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("readable").flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let skipped = [
            "site-packages",
            "dist-packages",
            "test",
            "idlelib",
            "ensurepip",
            "lib2to3",
        ];
        let mut names = skipped.iter().chain(without);
        if path.is_dir() && !names.any(|s| entry.file_name() == **s) {
            copy(&path, &target, without);
        } else if path.is_file() {
            fs::copy(&path, &target).expect("copied");
        }
    }
}

#[test]
fn every_other_python_of_this_machine() {
    let candidates =
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
    let names = [
        "python3.8",
        "python3.9",
        "python3.10",
        "python3.11",
        "python3.12",
        "python3.13",
        "python3.14",
        "python3",
    ];
    let mut found: Vec<PathBuf> = candidates
        .iter()
        .flat_map(|c| names.map(|n| c.join(n)))
        .filter(|p| p.exists())
        .collect();
    found.extend(
        fs::read_dir(std::env::var("HOME").unwrap_or_default() + "/.pyenv/versions")
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path().join("bin/python3")),
    );
    let mut tried = 0;
    for interpreter in found.iter().filter(|p| p.exists()) {
        match Sandbox::new(Config {
            interpreter: Some(interpreter.clone()),
            ..config()
        }) {
            Ok(sandbox) => {
                let (warm, detail) = crate::warm::told(&sandbox);
                assert_eq!(warm, config().warm, "{}: {detail}", interpreter.display());
                let outcome = sandbox.run(LOOK, b"", &limits()).expect("ran");
                assert_eq!(
                    text(&outcome.stdout),
                    "3 False\n",
                    "{}: {}",
                    interpreter.display(),
                    text(&outcome.stderr)
                );
                let outcome = sandbox
                    .run("def f():\n    1 / 0\nf()", b"", &limits())
                    .expect("ran");
                let said = text(&outcome.stderr);
                assert!(
                    said.contains("File \"main.py\", line 2, in f\n    1 / 0\n")
                        && !said.contains("boot"),
                    "{}: {said}",
                    interpreter.display()
                );
                assert!(
                    sandbox
                        .syntax_check("x = ", &limits())
                        .expect("checked")
                        .is_some()
                );
                tried += 1;
            }
            // Too old, or a version manager's name for a version that is not chosen.
            Err(Fault::NoInterpreter { .. }) => {}
            Err(fault) => panic!("{}: {fault}", interpreter.display()),
        }
    }
    println!("{tried} interpreters tried");
    assert!(tried > 0);
}

#[test]
fn a_missing_interpreter_says_what_to_do() {
    let fault = Sandbox::new(Config {
        interpreter: Some("no-such-python".into()),
        ..config()
    })
    .err()
    .map(|f| f.to_string())
    .unwrap_or_default();
    assert!(
        fault.contains("no-such-python") && fault.contains("install"),
        "{fault}"
    );
}
