//! Long tests, not part of a usual run:
//! `cargo test --release -p rlef-sandbox --test sandbox -- --ignored --nocapture soak` (a quarter of an hour on two cores).

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rlef_sandbox::{Ending, Fault, Limits};

use crate::{alone, passes, sandbox, text};

/// How often each program is run.
const TIMES: usize = 100;

/// A program, what it has to end with, and where it matters what it has to print.
struct Known {
    source: String,
    ending: Ending,
    stdout: Option<String>,
    limits: Limits,
}

/// A hundred of them.
fn programs() -> Vec<Known> {
    let limits = || Limits {
        wall: Duration::from_secs(60),
        memory_bytes: 128 << 20,
        output_bytes: 1 << 20,
        ..Limits::with_cpu(Duration::from_secs(5))
    };
    let mut all = vec![];
    let mut add = |source: String, ending, stdout: Option<&str>, limits| {
        let stdout = stdout.map(String::from);
        all.push(Known {
            source,
            ending,
            stdout,
            limits,
        });
    };
    for n in 0..20 {
        let sum: usize = (0..=n * 100).sum();
        let source = format!("print(sum(range({} + 1)))", n * 100);
        add(
            source,
            Ending::Exited(0),
            Some(&format!("{sum}\n")),
            limits(),
        );
        let source = format!("import sys\nprint({n})\nsys.exit({})", n + 1);
        let ending = Ending::Exited(n as i32 + 1);
        add(source, ending, Some(&format!("{n}\n")), limits());
    }
    for n in 0..10 {
        let source = format!(
            "import collections, heapq\nc = collections.Counter('abc' * {n} + 'd')\nprint(heapq.nlargest(1, c.values())[0])"
        );
        let most = format!("{}\n", n.max(1));
        add(source, Ending::Exited(0), Some(&most), limits());
        let source = format!("print(input())\nint('x' * {})", n + 1);
        add(source, Ending::Exited(1), Some("line\n"), limits());
    }
    for signal in [1, 2, 3, 4, 6, 8, 9, 11, 13, 15] {
        let source = format!(
            "import os, signal\nsignal.signal({signal}, signal.SIG_DFL) if {signal} != 9 else None\nos.kill(os.getpid(), {signal})"
        );
        add(source, Ending::Signalled(signal), Some(""), limits());
    }
    for n in 1..=6 {
        let source = format!("x = bytearray({n} << 28)");
        add(source, Ending::MemoryLimit, Some(""), limits());
        let source = format!("while True: print('x' * {n}000)");
        add(source, Ending::OutputLimit, None, limits());
        let source = format!(
            "import os, sys\nfor i in range({n}):\n    if os.fork() == 0: os._exit(i)\nprint(sorted(os.waitstatus_to_exitcode(os.wait()[1]) for i in range({n})))"
        );
        let codes: Vec<usize> = (0..n).collect();
        add(
            source,
            Ending::Exited(0),
            Some(&format!("{codes:?}\n")),
            limits(),
        );
        let source = format!("print('x' * {n}00000)");
        let long = format!("{}\n", "x".repeat(n * 100_000));
        add(source, Ending::Exited(0), Some(&long), limits());
    }
    // At four fifths of the limit on CPU time, and at six fifths.
    let spend = |seconds: f64| {
        format!("import time\nwhile time.process_time() < {seconds}: pass\nprint('spent')")
    };
    for limit in [0.2, 0.25, 0.3] {
        let limits = Limits {
            wall: Duration::from_secs(60),
            ..Limits::with_cpu(Duration::from_secs_f64(limit))
        };
        add(
            spend(limit * 0.8),
            Ending::Exited(0),
            Some("spent\n"),
            limits,
        );
        add(spend(limit * 1.2), Ending::CpuLimit, Some(""), limits);
    }
    assert_eq!(all.len(), 100);
    all
}

/// Keeps a CPU busy until it is dropped.
struct Busy(Child);

impl Busy {
    fn start() -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        Self(command.stdin(Stdio::null()).spawn().expect("a shell"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "takes a quarter of an hour"]
fn verdicts_are_the_same_under_load() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let busy: Vec<Busy> = (0..4 * cores).map(|_| Busy::start()).collect();
    let programs = programs();
    let total = programs.len() * TIMES;
    let (next, faults) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let wrong = Mutex::new(BTreeMap::<String, usize>::new());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= total {
                return;
            }
            if at % 1000 == 999 {
                eprintln!("{} of {total} runs", at + 1);
            }
            let known = &programs[at % programs.len()];
            let outcome = loop {
                match sandbox().run(&known.source, b"line\n", &known.limits) {
                    // Not a verdict: the machine says that it cannot tell, and is asked again.
                    Err(Fault::Overloaded { .. }) => faults.fetch_add(1, Ordering::Relaxed),
                    other => break other.expect("the sandbox works"),
                };
            };
            let printed = text(&outcome.stdout);
            let right = outcome.ending == known.ending
                && known.stdout.as_ref().is_none_or(|s| *s == printed);
            if !right {
                let mut source = known.source.clone();
                source.truncate(120);
                let finding = format!("{source}: {:?}, not {:?}", outcome.ending, known.ending);
                *wrong.lock().expect("whole").entry(finding).or_default() += 1;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    drop(busy);
    let wrong = wrong.into_inner().expect("whole");
    eprintln!("{total} runs, {} asked again", faults.into_inner());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
#[ignore = "takes some minutes"]
fn ten_thousand_runs_leave_nothing() {
    passes(alone("leftovers::many_runs_in_one_slot").env("MANY", "10000"));
}
