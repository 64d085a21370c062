//! Packages besides the standard library: those that are named, with what they need, and nothing else beside them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rlef_sandbox::{Config, Ending, Fault, Sandbox};

use crate::interpreters::virtual_environment;
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
    let python = virtual_environment(place.path())?;
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
    /// Files below the folder of packages, with what stands in them.
    fn write(&self, files: &[(&str, &str)]) {
        for (path, contents) in files {
            let path = self.packages.join(path);
            fs::create_dir_all(path.parent().expect("inside")).expect("made");
            fs::write(path, contents).expect("written");
        }
    }

    /// A sandbox in which programs have `packages`, and what stands in /packages there.
    fn shown(&self, packages: &[&str]) -> (Sandbox, String) {
        let sandbox = Sandbox::new(self.config(packages)).expect("made");
        let look = "import os\nfor d, _, fs in sorted(os.walk('/packages')):\n  for f in sorted(fs):\n    \
            if 'dist-info' not in d and 'greeting' not in d and 'helping' not in d: print(os.path.relpath(os.path.join(d, f), '/packages'))";
        let seen = said(&sandbox, look);
        (sandbox, seen)
    }

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
        broken.contains("`broken` fails")
            && broken.contains("No such file or directory: '/etc/hostname'"),
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

/// As Debian installs them.
#[test]
fn what_a_package_needs_is_found_without_lists_and_under_other_names() {
    let Some(environment) = environment() else {
        return;
    };
    environment.install(
        "greeting",
        "import _backend, single, helping\n",
        &["backend-of", "helping-hand"],
    );
    environment.write(&[
        ("_backend/__init__.py", ""),
        ("single.py", ""),
        (
            "backend_of-1.0.egg-info/top_level.txt",
            "_backend\nsingle\n",
        ),
        (
            "backend_of-1.0.egg-info/PKG-INFO",
            "Metadata-Version: 2.1\nName: backend-of\nVersion: 1\n",
        ),
    ]);
    for info in ["greeting-1.0", "helping_hand-1.0"] {
        let record = environment
            .packages
            .join(format!("{info}.dist-info/RECORD"));
        fs::remove_file(record).expect("removed");
    }
    environment.write(&[("helping_hand-1.0.dist-info/top_level.txt", "helping\n")]);
    let (sandbox, seen) = environment.shown(&["greeting"]);
    assert_eq!(
        seen,
        "single.py\n_backend/__init__.py\nbackend_of-1.0.egg-info/PKG-INFO\nbackend_of-1.0.egg-info/top_level.txt\n"
    );
    said(&sandbox, "import greeting");
}

#[test]
fn of_a_namespace_only_the_own_part_is_seen() {
    let Some(environment) = environment() else {
        return;
    };
    environment.install("greeting", "import ns.pub, ns.deep.one\n", &["ns-pub"]);
    environment.install("ns-pub", "", &[]);
    environment.install("ns-secret", "", &[]);
    environment.write(&[
        ("ns/pub/__init__.py", ""),
        ("ns/pub/data/x.txt", ""),
        ("ns/deep/one.py", ""),
        ("ns/deep/two.py", ""),
        ("ns/secret/__init__.py", ""),
        ("ns/nobodys.py", ""),
        (
            "ns_pub-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: ns-pub\nVersion: 1\n",
        ),
        (
            "ns_pub-1.0.dist-info/RECORD",
            "ns/pub/__init__.py,,\nns/pub/data/x.txt,,\nns/deep/one.py,,\n",
        ),
        (
            "ns_secret-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: ns-secret\nVersion: 1\n",
        ),
        (
            "ns_secret-1.0.dist-info/RECORD",
            "ns/secret/__init__.py,,\nns/deep/two.py,,\n",
        ),
    ]);
    for name in ["ns-pub", "ns-secret"] {
        fs::remove_dir_all(environment.packages.join(format!("{name}-1.0.dist-info")))
            .expect("removed");
    }
    let (sandbox, seen) = environment.shown(&["greeting"]);
    assert_eq!(
        seen,
        "ns/deep/one.py\nns/pub/__init__.py\nns/pub/data/x.txt\n"
    );
    said(&sandbox, "import greeting, ns.pub");
    // Who asks for the namespace gets all that is installed of it.
    let (_, seen) = environment.shown(&["ns"]);
    assert!(seen.contains("ns/secret/__init__.py"), "{seen}");
}

#[test]
fn links_of_an_installer_are_followed() {
    let Some(environment) = environment() else {
        return;
    };
    let cache = tempfile::tempdir().expect("a folder");
    let file = cache.path().join("archive/value.py");
    fs::create_dir_all(cache.path().join("archive/data")).expect("made");
    fs::write(&file, "n = 5\n").expect("written");
    fs::write(cache.path().join("archive/data/t"), "text").expect("written");
    environment.install(
        "greeting",
        "from .value import n\nfrom .inner.value import n as m\n",
        &[],
    );
    let package = environment.packages.join("greeting");
    fs::create_dir(package.join("inner")).expect("made");
    let link =
        |to: &Path, at: &str| std::os::unix::fs::symlink(to, package.join(at)).expect("made");
    link(&file, "value.py");
    link(&file, "inner/value.py");
    link(&cache.path().join("archive/data"), "data");
    link(Path::new("inner"), "beside");
    link(&package, "inner/round");
    link(Path::new("/no/such"), "dangling");
    let sandbox = Sandbox::new(environment.config(&["greeting"])).expect("made");
    let source =
        "import greeting\nprint(greeting.n, greeting.m, open('/packages/greeting/data/t').read())";
    assert_eq!(said(&sandbox, source), "5 5 text\n");
    for n in 0..1600 {
        link(&file, &format!("inner/v{n}.py"));
    }
    let refusal = environment.refusal(&["greeting"]);
    assert!(
        refusal.contains("greeting has too many files that are links"),
        "{refusal}"
    );
}

/// Lists of installers may say anything.
#[test]
fn no_list_shows_more_than_packages() {
    let Some(environment) = environment() else {
        return;
    };
    let info = environment.packages.join("greeting-1.0.dist-info");
    let secret = environment
        .packages
        .parent()
        .expect("inside")
        .join("beside.txt");
    fs::write(&secret, "secret").expect("written");
    let record = "greeting/__init__.py,,\n/,,\n/etc/passwd,,\n../beside.txt,,\n..,,\n,,\n\
        greeting/../secret/__init__.py,,\n//usr,,\n";
    fs::write(info.join("RECORD"), record).expect("written");
    fs::write(info.join("top_level.txt"), "../beside\n/etc/passwd\n..\n").expect("written");
    let (sandbox, seen) = environment.shown(&["greeting"]);
    assert_eq!(seen, "");
    let look = "import os\nprint(*sorted(os.listdir('/packages')), *(os.path.exists(p) for p in ('/etc/passwd', '/packages/etc', '/beside.txt')))";
    assert_eq!(
        said(&sandbox, look),
        "greeting greeting-1.0.dist-info helping helping_hand-1.0.dist-info False False False\n"
    );
    // A link to everything.
    std::os::unix::fs::symlink("/", environment.packages.join("all")).expect("made");
    fs::write(info.join("RECORD"), "greeting/__init__.py,,\nall,,\n").expect("written");
    let refusal = environment.refusal(&["greeting"]);
    assert!(
        refusal.contains("`all` leads to /") || refusal.contains("links"),
        "{refusal}"
    );
}

#[test]
fn a_broken_distribution_keeps_back_nobody_elses_package() {
    let Some(environment) = environment() else {
        return;
    };
    environment.install("broken", "", &[]);
    environment.write(&[("empty-1.0.dist-info/x", ""), ("loose.egg-info", "\0")]);
    let info = environment.packages.join("broken-1.0.dist-info");
    for (file, bytes) in [
        ("METADATA", &b"\xff\xfe\0Name"[..]),
        ("RECORD", b"\xff\xff,\"\n\0,,,,,\n"),
    ] {
        fs::write(info.join(file), bytes).expect("written");
        let (sandbox, _) = environment.shown(&["greeting"]);
        said(&sandbox, "import greeting");
    }
    let (sandbox, _) = environment.shown(&["broken"]);
    said(&sandbox, "import broken");
}

#[test]
fn one_that_hangs_is_named() {
    let Some(environment) = environment() else {
        return;
    };
    environment.install("hanging", "import time\ntime.sleep(1000)\n", &[]);
    let refusal = environment.refusal(&["greeting", "hanging"]);
    assert!(refusal.contains("`hanging` fails"), "{refusal}");
}

/// Programs that do not import a package find everything as if there were none, and those that do find what it did.
#[test]
fn what_a_package_changes_is_changed_for_who_imports_it() {
    let Some(environment) = environment() else {
        return;
    };
    for (change, look, without, with) in [
        (
            "import sys; sys.setrecursionlimit(5000)",
            "import sys; print(sys.getrecursionlimit())",
            "1000",
            "5000",
        ),
        (
            "import decimal; decimal.getcontext().prec = 5",
            "import decimal; print(decimal.Decimal(1) / 3)",
            "0.3333333333333333333333333333",
            "0.33333",
        ),
        (
            "import signal; signal.signal(10, signal.SIG_IGN)",
            "import signal; print(int(signal.getsignal(10)))",
            "0",
            "1",
        ),
        (
            "import os; os.environ['MINE'] = '1'",
            "import os; print(os.environ.get('MINE'))",
            "None",
            "1",
        ),
        (
            "import sys; sys.excepthook = print",
            "import sys; print(sys.excepthook is print)",
            "False",
            "True",
        ),
        ("print('hello')", "print('x')", "x", "hello\nx"),
        (
            "import os; os.write(1, b'raw\\n')",
            "print('x')",
            "x",
            "raw\nx",
        ),
    ] {
        environment.install("changing", &format!("{change}\n"), &[]);
        let sandbox = Sandbox::new(environment.config(&["changing"])).expect("made");
        assert_eq!(said(&sandbox, look), format!("{without}\n"), "{change}");
        let importing = format!("import changing\n{look}");
        assert_eq!(said(&sandbox, &importing), format!("{with}\n"), "{change}");
        let told = |p: &rlef_sandbox::Protection| p.detail.contains("importing `changing` changes");
        assert!(
            sandbox.protections().iter().any(told) || !config().warm,
            "{change}"
        );
    }
    // What it draws is not missing afterwards, and costs it not the warm interpreter.
    environment.install("drawing", "import random\nrandom.random()\n", &[]);
    let sandbox = Sandbox::new(environment.config(&["drawing"])).expect("made");
    let draw = "import random; print(random.random())";
    assert_eq!(said(&sandbox, draw), crate::printed(draw));
    assert!(
        !sandbox
            .protections()
            .iter()
            .any(|p| p.detail.contains("drawing"))
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
