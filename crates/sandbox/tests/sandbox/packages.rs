//! Packages besides the standard library: those that are named, with what they need, and nothing else beside them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rlef_sandbox::{Config, Ending, Fault, Sandbox};

use crate::{config, limits, text};

/// A virtual environment with a package `greeting`, which needs another one, and with things that nobody asked for.
/// Not there where this Python has no venv module.
struct Environment {
    _place: tempfile::TempDir,
    python: PathBuf,
    packages: PathBuf,
}

fn environment() -> Option<Environment> {
    let place = tempfile::tempdir().expect("a folder");
    let made = Command::new("python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(place.path().join("venv"))
        .output();
    if !made.is_ok_and(|m| m.status.success()) {
        println!("skipped: this Python has no venv module");
        return None;
    }
    let python = place.path().join("venv/bin/python3");
    let asked = Command::new(&python)
        .args([
            "-c",
            "import sysconfig; print(sysconfig.get_path('purelib'))",
        ])
        .output()
        .expect("runs");
    let packages = PathBuf::from(text(&asked.stdout).trim());
    let environment = Environment {
        _place: place,
        python,
        packages,
    };
    environment.install(
        "greeting",
        "from helping import word\ndef hello():\n    return word + ' there'\n",
        &[
            "Helping_Hand>=1; python_version >= '3'",
            "absent; extra == 'more'",
        ],
    );
    environment.install("helping", "word = 'hello'\n", &[]);
    let info = environment.packages.join("helping-1.0.dist-info");
    let renamed = environment.packages.join("helping_hand-1.0.dist-info");
    fs::rename(&info, &renamed).expect("renamed");
    let text = "Metadata-Version: 2.1\nName: helping-hand\nVersion: 1.0\n";
    fs::write(renamed.join("METADATA"), text).expect("written");
    let record =
        "helping/__init__.py,,\nhelping_hand-1.0.dist-info/METADATA,,\n../../../bin/helping,,\n";
    fs::write(renamed.join("RECORD"), record).expect("written");
    environment.install("secret", "key = 42\n", &[]);
    fs::write(environment.packages.join("mine.py"), "").expect("written");
    Some(environment)
}

impl Environment {
    /// As pip leaves it.
    fn install(&self, name: &str, source: &str, needs: &[&str]) {
        fs::create_dir_all(self.packages.join(name)).expect("made");
        fs::write(self.packages.join(name).join("__init__.py"), source).expect("written");
        let info = self.packages.join(format!("{name}-1.0.dist-info"));
        fs::create_dir_all(&info).expect("made");
        let mut text = format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n");
        for need in needs {
            text += &format!("Requires-Dist: {need}\n");
        }
        fs::write(info.join("METADATA"), text).expect("written");
        let record = format!("{name}/__init__.py,,\n{name}-1.0.dist-info/METADATA,,\n");
        fs::write(info.join("RECORD"), record).expect("written");
    }

    fn config(&self, packages: &[&str]) -> Config {
        Config {
            interpreter: Some(self.python.clone()),
            packages: packages.iter().map(|p| (*p).to_owned()).collect(),
            ..config()
        }
    }

    fn refusal(&self, packages: &[&str]) -> String {
        match Sandbox::new(self.config(packages)) {
            Err(fault @ Fault::Packages { .. }) => fault.to_string(),
            Err(other) => panic!("another fault: {other}"),
            Ok(_) => panic!("{packages:?} were found"),
        }
    }
}

fn said(sandbox: &Sandbox, source: &str) -> String {
    let outcome = sandbox.run(source, b"", &limits()).expect("ran");
    assert_eq!(
        outcome.ending,
        Ending::Exited(0),
        "{}",
        text(&outcome.stderr)
    );
    text(&outcome.stdout)
}

#[test]
fn those_that_are_named_are_there_with_what_they_need() {
    let Some(environment) = environment() else {
        return;
    };
    for warm in [true, false] {
        let warm = warm && config().warm;
        let sandbox = Sandbox::new(Config {
            warm,
            ..environment.config(&["greeting"])
        })
        .expect("made");
        let source = "import sys\nready = 'greeting' in sys.modules\nimport greeting\nprint(ready, greeting.hello())";
        let wanted = if warm {
            "True hello there\n"
        } else {
            "False hello there\n"
        };
        assert_eq!(said(&sandbox, source), wanted);
    }
}

#[test]
fn nothing_else_of_the_folder_is_seen_and_nothing_can_be_written() {
    let Some(environment) = environment() else {
        return;
    };
    let sandbox = Sandbox::new(environment.config(&["greeting"])).expect("made");
    let look = "import os\nprint(*sorted(os.listdir('/packages')))";
    assert_eq!(
        said(&sandbox, look),
        "greeting greeting-1.0.dist-info helping helping_hand-1.0.dist-info\n"
    );
    let absent = format!(
        "import importlib.util, os\n\
         print(*(importlib.util.find_spec(n) for n in ('secret', 'mine', 'absent')), os.path.exists({:?}))",
        environment.packages
    );
    assert_eq!(said(&sandbox, &absent), "None None None False\n");
    let write = "import os\n\
        for name in '/packages/x', '/packages/greeting/x', '/packages/greeting/__init__.py':\n    \
            try:\n        open(name, 'a').close()\n        print('open', name)\n    \
            except OSError as e:\n        print(e.errno in (1, 13, 30))";
    assert_eq!(said(&sandbox, write), "True\n".repeat(3),);
}

#[test]
fn a_module_of_the_standard_library_is_not_replaced() {
    let Some(environment) = environment() else {
        return;
    };
    environment.install("bisect", "raise SystemExit('mine')\n", &[]);
    environment.install("colorsys", "raise SystemExit('mine')\n", &[]);
    environment.install("greeting", "", &["bisect", "colorsys"]);
    for warm in [true, false] {
        let config = Config {
            warm,
            ..environment.config(&["greeting"])
        };
        let sandbox = Sandbox::new(config).expect("made");
        let source = "import greeting, bisect, colorsys\nprint(bisect.bisect([1], 0), colorsys.rgb_to_hls(0, 0, 0)[0])";
        assert_eq!(said(&sandbox, source), "0 0.0\n");
    }
}

#[test]
fn what_cannot_be_given_is_a_fault_that_says_so() {
    let Some(environment) = environment() else {
        return;
    };
    let absent = environment.refusal(&["greeting", "nowhere"]);
    assert!(
        absent.contains("it has no nowhere;") && absent.contains("pip install"),
        "{absent}"
    );
    for odd in ["", "a.b", "a b", "-c", "numpy==2", "../x", "1a"] {
        let refusal = environment.refusal(&[odd]);
        assert!(
            refusal.contains("is not the name of one"),
            "{odd}: {refusal}"
        );
    }
    environment.install("broken", "open('/etc/hostname')\n", &[]);
    let broken = environment.refusal(&["broken"]);
    assert!(
        broken.contains("No such file or directory: '/etc/hostname'"),
        "{broken}"
    );
}

#[test]
fn one_that_starts_a_thread_is_there_without_a_warm_interpreter() {
    let Some(environment) = environment() else {
        return;
    };
    let source = "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n";
    environment.install("busy", source, &[]);
    let sandbox = Sandbox::new(environment.config(&["busy"])).expect("made");
    assert_eq!(
        said(
            &sandbox,
            "import threading, busy\nprint(threading.active_count())"
        ),
        "2\n"
    );
    let protections = sandbox.protections();
    assert!(
        protections
            .iter()
            .any(|p| p.detail.contains("started a thread"))
            || !config().warm,
        "{protections:?}"
    );
}

/// Where it is installed: the folder of an environment in RLEF_NUMPY.
#[test]
fn numpy_computes_and_repeats() {
    let Some(python) = std::env::var_os("RLEF_NUMPY") else {
        println!("skipped: RLEF_NUMPY does not name a Python with numpy");
        return;
    };
    let config = Config {
        interpreter: Some(Path::new(&python).into()),
        packages: vec!["numpy".into()],
        ..config()
    };
    let source = "import numpy as np\na = np.arange(6.0).reshape(2, 3)\nprint((a @ a.T).tolist(), np.linalg.det(a @ a.T))\n\
        print(np.random.rand(), np.random.randint(1000))";
    let mut seen = Vec::new();
    for warm in [true, false] {
        let sandbox = Sandbox::new(Config {
            warm,
            ..config.clone()
        })
        .expect("made");
        seen.extend((0..3).map(|_| said(&sandbox, source)));
    }
    assert!(
        seen[0].starts_with("[[5.0, 14.0], [14.0, 50.0]] 5"),
        "{seen:?}"
    );
    assert!(seen.iter().all(|s| *s == seen[0]), "{seen:?}");
}
