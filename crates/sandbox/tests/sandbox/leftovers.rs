//! When a call returns, or the supervisor dies, nothing is left: processes, descriptors, mounts.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rlef_sandbox::{Ending, External, Limits, Sandbox};

use crate::{alone, config, limits, passes, run, run_with, text};

/// Processes of the host whose environment or command line can be seen to be a sandboxed program of this test: they
/// carry `marker` in their source's first argument to `exec`.
fn alive(marker: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir("/proc")
        .expect("proc")
        .flatten()
        .map(|e| e.path());
    entries
        .filter(|p| fs::read(p.join("cmdline")).is_ok_and(|c| text(&c).contains(marker)))
        .collect()
}

/// A program that first starts itself again with `marker` on its command line, so that the host can see it.
fn marked(marker: &str, source: &str) -> String {
    format!(
        "import os, sys\nif len(sys.argv) == 1 and not os.environ.get('M'):\n    os.environ['M'] = '1'\n    os.execv(sys.executable, [sys.executable, '-S', '/tmp/main.py', '{marker}'])\n{source}"
    )
}

fn marker(name: &str) -> String {
    format!("marker-{name}-{}", std::process::id())
}

#[test]
fn fork_bombs_leave_nothing() {
    let limits = Limits {
        wall: Duration::from_secs(3),
        ..Limits::with_cpu(Duration::from_millis(500))
    };
    for (name, source) in [
        (
            "fork",
            "while True:\n    try: os.fork()\n    except OSError: pass",
        ),
        (
            "setsid",
            "while True:\n    try:\n        if os.fork() == 0: os.setsid()\n    except OSError: pass",
        ),
        (
            "quiet",
            "import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True:\n    try:\n        if os.fork() == 0: os._exit(0)\n    except OSError: pass",
        ),
        (
            "threads",
            "import threading\ndef f():\n    while True:\n        try: threading.Thread(target=f).start()\n        except RuntimeError: pass\nf()",
        ),
    ] {
        let marker = marker(name);
        let outcome = run_with(&marked(&marker, source), b"", &limits);
        assert_eq!(alive(&marker), Vec::<PathBuf>::new(), "{name}");
        assert!(
            matches!(outcome.ending, Ending::CpuLimit | Ending::WallLimit),
            "{name}: {:?} {}",
            outcome.ending,
            text(&outcome.stderr)
        );
    }
}

#[test]
fn daemons_are_dead_and_nobody_waits_for_them() {
    let marker = marker("daemon");
    let source = marked(
        &marker,
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        import time, signal\n        signal.signal(15, signal.SIG_IGN)\n        time.sleep(1000)\n    os._exit(0)\nprint('done')",
    );
    let start = Instant::now();
    let outcome = run_with(
        &source,
        b"",
        &Limits {
            wall: Duration::from_secs(60),
            ..limits()
        },
    );
    assert_eq!(alive(&marker), Vec::<PathBuf>::new());
    assert_eq!(
        (outcome.ending, text(&outcome.stdout)),
        (Ending::Exited(0), "done\n".into()),
        "{}",
        text(&outcome.stderr)
    );
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn the_marker_can_be_seen_while_a_program_runs() {
    // Without this, the tests above could pass by looking in the wrong place.
    let marker = marker("seen");
    let source = marked(&marker, "import time; time.sleep(1.5)");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&source));
        let start = Instant::now();
        while alive(&marker).is_empty()
            && start.elapsed() < Duration::from_secs(10)
            && !running.is_finished()
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(alive(&marker).len(), 1);
        running.join().expect("ran");
    });
    assert!(alive(&marker).is_empty());
}

#[test]
fn a_killed_supervisor_takes_everything_with_it() {
    all_die_with_the_supervisor("bomb", |marker, _| alive(marker).len() >= 5);
}

#[test]
fn what_has_stopped_itself_dies_with_the_supervisor() {
    all_die_with_the_supervisor("stopped", |marker, _| stopped(&alive(marker)) >= 5);
}

/// Somebody stops everything: the launcher, which then cannot notice anything, and all below it.
#[test]
fn what_others_have_stopped_dies_with_the_supervisor() {
    all_die_with_the_supervisor("bomb", |marker, launchers| {
        let there = alive(marker).len() >= 5;
        if there {
            for launcher in launchers {
                let below = children(launcher.parse().expect("a number"));
                for pid in std::iter::once(launcher).chain(&below) {
                    let pid = pid.parse().expect("a number");
                    // SAFETY: signals processes that this test has started.
                    unsafe { libc::kill(pid, libc::SIGSTOP) };
                }
            }
        }
        there
    });
}

#[test]
fn what_an_external_command_runs_dies_with_the_supervisor() {
    for program in ["stopped outside", "sleeping outside"] {
        let wanted = if program.starts_with("stopped") { 5 } else { 0 };
        all_die_with_the_supervisor(program, |marker, _| {
            let all = alive(marker);
            all.len() >= 6 && stopped(&all) >= wanted
        });
    }
}

/// Kills the supervisor of a program when it is `time` to; it is shown the marker and the supervisor's children.
fn all_die_with_the_supervisor(program: &str, time: impl Fn(&str, &[String]) -> bool) {
    let marker = marker(&program.replace(' ', "-"));
    let mut supervisor = alone("leftovers::supervisor_to_be_killed")
        .env("MARKER", &marker)
        .env("PROGRAM", program)
        .stdout(Stdio::null())
        .spawn()
        .expect("started");
    let start = Instant::now();
    while !time(&marker, &children(supervisor.id())) {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{program}: the time does not come"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let launchers = children(supervisor.id());
    assert!(!launchers.is_empty());
    supervisor.kill().expect("killed");
    supervisor.wait().expect("waited");
    let start = Instant::now();
    let gone = || {
        alive(&marker).is_empty()
            && launchers
                .iter()
                .all(|l| !fs::exists(format!("/proc/{l}")).unwrap_or(true) || state(l) == Some('Z'))
    };
    while !gone() && start.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let left = alive(&marker);
    let all_gone = gone();
    for pid in left
        .iter()
        .filter_map(|p| p.file_name()?.to_str()?.parse().ok())
    {
        // SAFETY: signals processes that carry this test's own marker.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
    assert!(
        all_gone,
        "{program}: {left:?} {launchers:?} after {:?}",
        start.elapsed()
    );
}

/// How many of them have been stopped.
fn stopped(all: &[PathBuf]) -> usize {
    let names = all.iter().filter_map(|p| p.file_name()?.to_str());
    names.filter(|pid| state(pid) == Some('T')).count()
}

/// The letter for a process's state, as in proc(5).
fn state(pid: &str) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

pub(crate) fn children(pid: u32) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .expect("there")
        .flatten();
    let each = threads.filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
    each.flat_map(|c| c.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

#[test]
#[ignore = "started by all_die_with_the_supervisor"]
fn supervisor_to_be_killed() {
    let (Ok(marker), Ok(program)) = (std::env::var("MARKER"), std::env::var("PROGRAM")) else {
        return;
    };
    let limits = Limits {
        wall: Duration::from_secs(60),
        ..Limits::with_cpu(Duration::from_secs(60))
    };
    let source = match program.split(' ').next() {
        Some("bomb") => {
            "while True:\n    try:\n        if os.fork() == 0: os.setsid()\n    except OSError: pass"
        }
        Some("stopped") => {
            "import signal, time\nfor _ in range(6):\n    if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)\n\
             time.sleep(60)"
        }
        _ => "import time\nfor _ in range(6):\n    if os.fork() == 0: break\ntime.sleep(60)",
    };
    if program.ends_with("outside") {
        let command = ["python3", "{file}", &marker].map(String::from);
        let external = External::new(command.into()).expect("a Python");
        let _ = external.run(&format!("import os\n{source}"), b"", &limits);
    } else {
        run_with(&marked(&marker, source), b"", &limits);
    }
}

#[test]
fn many_runs_leak_nothing() {
    passes(alone("leftovers::many_runs_in_one_slot").env("MANY", "300"));
}

#[test]
#[ignore = "started by many_runs_leak_nothing, in a process of its own; MANY=10000 makes it long"]
fn many_runs_in_one_slot() {
    let Some(rounds) = std::env::var("MANY").ok().and_then(|n| n.parse().ok()) else {
        return;
    };
    let own = Sandbox::new(config()).expect("a sandbox");
    let launchers = children(std::process::id());
    assert_eq!(
        launchers.len(),
        1,
        "one slot is enough for one call at a time"
    );
    let count = |path: String| fs::read_dir(path).map(|d| d.count()).ok();
    let lines = |path: String| fs::read_to_string(path).map(|t| t.lines().count()).ok();
    let memory = |pid: &str| {
        fs::read_to_string(format!("/proc/{pid}/statm"))
            .ok()?
            .split(' ')
            .nth(1)?
            .parse::<u64>()
            .ok()
    };
    // The last two are closed to an ordinary user.
    let state = || {
        (
            count("/proc/self/fd".into()),
            lines("/proc/self/mountinfo".into()),
            count(format!("/proc/{}/fd", launchers[0])),
            lines(format!("/proc/{}/mountinfo", launchers[0])),
        )
    };
    let tight = Limits {
        wall: Duration::from_millis(700),
        output_bytes: 1 << 16,
        memory_bytes: 64 << 20,
        ..Limits::with_cpu(Duration::from_millis(300))
    };
    let sources = [
        "print(1)",
        "1 / 0",
        "import os\nos.fork()",
        "while True: print('x' * 1000)",
        "x = bytearray(1 << 30)",
        "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)",
        "import os; os.kill(os.getpid(), 9)",
        "x =",
        "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: os.kill(os.getpid(), 19)",
        "import os\nfor n in range(100): os.close(n) if n > 2 else os.dup(n)",
        "for n in range(99): open(f'/tmp/{n}', 'w').write('x' * 9999)",
        "import gc, sys\nfor o in gc.get_objects():\n    if isinstance(o, dict): o.clear()",
        "import os, signal\nsignal.signal(15, signal.SIG_IGN); os.kill(0, 15); os.kill(1, 9); print(1)",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
        "import os\na, b = os.pipe()\nos.dup2(b, 1); os.dup2(b, 2); print('x' * 9999)",
    ];
    let rare = ["while True: pass", "import time; time.sleep(10)"];
    let mut before = None;
    for round in 0..rounds {
        let source = if round % 30 == 29 {
            rare[round / 30 % 2]
        } else {
            sources[round % sources.len()]
        };
        // A busy machine may make a fault of any of these; it must not leak either.
        let _ = own.run(source, b"in", &tight);
        if round == 30 {
            let warm = children(launchers[0].parse().expect("a number"));
            before = Some((state(), memory(&launchers[0]), warm));
        }
    }
    let (before, memory_before, warm_before) = before.expect("taken");
    assert_eq!(state(), before);
    assert_eq!(
        children(std::process::id()),
        launchers,
        "launchers were replaced or left"
    );
    if let (Some(then), Some(now)) = (memory_before, memory(&launchers[0])) {
        assert!(
            now <= then + 64,
            "the launcher grew from {then} to {now} pages"
        );
    }
    // The warm interpreter, where there is one, and nobody else, dead or alive.
    let below = |pid: &str| children(pid.parse().expect("a number"));
    let warm = below(&launchers[0]);
    assert_eq!(warm.len(), usize::from(config().warm), "{warm:?}");
    assert_eq!(warm, warm_before, "it was replaced");
    for pid in &warm {
        assert!(below(pid).is_empty(), "the warm interpreter has children");
    }
    drop(own);
    assert!(
        children(std::process::id()).is_empty(),
        "a launcher is left"
    );
}
