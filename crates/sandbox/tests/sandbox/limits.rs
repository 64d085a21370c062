//! Time, memory, output, processes and files are bounded, and passing a bound is told apart from everything else.

use std::time::Duration;

use rlef_sandbox::{Config, Ending, Fault, Limits, Outcome, Sandbox};

use crate::groups::memory_is_bounded;
use crate::{limits, run, run_with, sandbox, text};

fn one_second() -> Limits {
    Limits {
        wall: Duration::from_secs(20),
        ..Limits::with_cpu(Duration::from_secs(1))
    }
}

#[test]
fn a_program_below_its_cpu_limit_passes_and_one_above_never_does() {
    let burn = |seconds: f64| {
        format!("import time\nwhile time.process_time() < {seconds}: pass\nprint('done')")
    };
    let (below, above) = (burn(0.8), burn(1.2));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let outcome = run_with(&below, b"", &one_second());
                assert_eq!(outcome.ending, Ending::Exited(0), "after {:?}", outcome.cpu);
                let outcome = run_with(&above, b"", &one_second());
                assert_eq!(outcome.ending, Ending::CpuLimit, "after {:?}", outcome.cpu);
            });
        }
    });
}

#[test]
fn the_kernels_cpu_limit_is_far_above_ours_and_means_the_same() {
    let source = "import resource; print(resource.getrlimit(resource.RLIMIT_CPU))";
    assert_eq!(text(&run(source).stdout), "(6, 7)\n");
    let signal = "import os; os.kill(os.getpid(), 24)";
    assert_eq!(run(signal).ending, Ending::CpuLimit);
}

#[test]
fn cpu_time_of_all_processes_counts_together() {
    let source = "import os\nfor _ in range(5):\n    if os.fork() == 0:\n        while True: pass\nfor _ in range(5): os.wait()";
    let outcome = run_with(source, b"", &one_second());
    assert_eq!(outcome.ending, Ending::CpuLimit);
    assert!(
        outcome.cpu >= Duration::from_secs(1) && outcome.cpu < Duration::from_secs(3),
        "{:?}",
        outcome.cpu
    );
}

#[test]
fn cpu_time_of_abandoned_children_counts() {
    // The parent leaves at once; what the children burned before it did is still in the account.
    // It waits until they have burned it, which on a busy machine takes longer.
    let source = "import os, time\ndone, told = os.pipe()\nfor _ in range(2):\n    if os.fork() == 0:\n        while time.process_time() < 0.05: pass\n        os.write(told, b'x')\n        while True: pass\n\
        for _ in range(2): os.read(done, 1)\nos._exit(0)";
    let outcome = run(source);
    assert_eq!(outcome.ending, Ending::Exited(0));
    assert!(outcome.cpu > Duration::from_millis(90), "{:?}", outcome.cpu);
}

#[test]
fn memory_hogs_end_at_the_memory_limit() {
    let limits = Limits {
        memory_bytes: 128 << 20,
        ..Limits::with_cpu(Duration::from_secs(5))
    };
    for source in [
        "x = []\nwhile True: x.append(bytearray(1 << 20))",
        "x = bytearray(16 << 30)",
        "x = [0]\nwhile True: x += x",
        "x = {}\nfor i in range(10 ** 9): x[i] = str(i)",
    ] {
        let outcome = run_with(source, b"", &limits);
        assert_eq!(
            outcome.ending,
            Ending::MemoryLimit,
            "{source}: {}",
            text(&outcome.stderr)
        );
        assert!(
            outcome.peak_memory_bytes.is_some_and(|b| b < 256 << 20),
            "{:?}",
            outcome.peak_memory_bytes
        );
    }
    let outcome = run_with("x = bytearray(100 << 20)\nprint(len(x))", b"", &limits);
    assert_eq!(
        outcome.ending,
        Ending::Exited(0),
        "{}",
        text(&outcome.stderr)
    );
}

#[test]
fn memory_of_several_processes_counts_together() {
    let limits = Limits {
        memory_bytes: 96 << 20,
        ..Limits::with_cpu(Duration::from_secs(5))
    };
    let source = "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n        x = bytearray(b'x') * (60 << 20)\n        time.sleep(100)\ntime.sleep(100)";
    assert_eq!(run_with(source, b"", &limits).ending, Ending::MemoryLimit);
}

/// Whether by a control group or by address space and looks from outside, with the warm interpreter or without: its own
/// memory is never the program's.
#[test]
fn a_memory_limit_means_the_same_in_every_way() {
    let one = |bytes: u64| format!("x = b'x' * {bytes}\nprint(len(x))");
    let four = |bytes: u64| {
        format!(
            "import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n        x = b'x' * {}\n        time.sleep(1)\n        os._exit(0)\n\
             try:\n    while True: os.wait()\nexcept ChildProcessError: pass",
            bytes / 4
        )
    };
    // Each process copies up to a mebibyte of the interpreter, which a control group counts.
    let (margin_of_one, margin_of_four) = (2 << 20, 6 << 20);
    for (warm, groups) in [(true, true), (true, false), (false, true), (false, false)] {
        let own = Sandbox::new(Config {
            warm,
            groups,
            ..Config::default()
        });
        let own = own.expect("a sandbox");
        for memory_bytes in [32 << 20, 128 << 20] {
            let limits = Limits {
                memory_bytes,
                wall: Duration::from_secs(60),
                ..limits()
            };
            let ending = |source: &str| {
                let mut results = (0..20).map(|_| own.run(source, b"", &limits));
                let one = results.find(|r| !matches!(r, Err(Fault::Overloaded { .. })));
                one.expect("a machine with time").expect("ran").ending
            };
            let case = format!("warm {warm}, groups {groups}, {memory_bytes}");
            for (below, above) in [
                (
                    one(memory_bytes - margin_of_one),
                    one(memory_bytes + margin_of_one),
                ),
                (
                    four(memory_bytes - margin_of_four),
                    four(memory_bytes + margin_of_four),
                ),
            ] {
                assert_eq!(ending(&below), Ending::Exited(0), "{case}: {below}");
                assert_eq!(ending(&above), Ending::MemoryLimit, "{case}: {above}");
            }
        }
    }
}

#[test]
fn swallowed_memory_errors_end_somewhere() {
    let limits = Limits {
        memory_bytes: 64 << 20,
        ..Limits::with_cpu(Duration::from_millis(500))
    };
    let source =
        "x = []\nwhile True:\n    try: x.append(bytearray(1 << 20))\n    except MemoryError: pass";
    // Where memory itself is bounded, what swallows the error has no room to go on.
    let wanted = if memory_is_bounded() {
        Ending::MemoryLimit
    } else {
        Ending::CpuLimit
    };
    assert_eq!(run_with(source, b"", &limits).ending, wanted);
}

#[test]
fn memory_cannot_be_hidden_outside_the_address_space() {
    let source = "import os\ntry:\n    os.memfd_create('x'); print('memfd')\nexcept OSError: pass\n\
        data = b'x' * (1 << 20)\nwritten = 0\n\
        try:\n    for i in range(1000):\n        with open('/dev/shm/%d' % i, 'wb', buffering=0) as f: written += f.write(data)\nexcept OSError as e: print(e.errno)\n\
        print(written >> 20 <= 65)";
    let outcome = run(source);
    assert_eq!(
        text(&outcome.stdout),
        format!("{}\nTrue\n", libc::ENOSPC),
        "{}",
        text(&outcome.stderr)
    );
}

#[test]
fn output_up_to_the_cap_is_no_flood() {
    let limits = Limits {
        output_bytes: 100_000,
        ..limits()
    };
    let outcome = run_with("import sys; sys.stdout.write('x' * 100_000)", b"", &limits);
    assert_eq!(
        (outcome.ending, outcome.stdout.len()),
        (Ending::Exited(0), 100_000)
    );
    let outcome = run_with("import sys; sys.stdout.write('x' * 100_001)", b"", &limits);
    assert_eq!(
        (outcome.ending, outcome.stdout.len()),
        (Ending::OutputLimit, 100_000)
    );
}

#[test]
fn processes_are_counted_for_each_run_alone() {
    let source = "import os, time\nn = 1\ntry:\n    while n < 100:\n        if os.fork() == 0: time.sleep(100)\n        n += 1\nexcept BlockingIOError: print(n)";
    for wanted in [1, 4, 9] {
        let limits = Limits {
            processes: wanted,
            ..limits()
        };
        std::thread::scope(|scope| {
            let both = [
                scope.spawn(|| run_with(source, b"", &limits)),
                scope.spawn(|| run_with(source, b"", &limits)),
            ];
            for outcome in both.map(|t| t.join().expect("ran")) {
                assert_eq!(
                    text(&outcome.stdout),
                    format!("{wanted}\n"),
                    "{}",
                    text(&outcome.stderr)
                );
            }
        });
    }
}

#[test]
fn threads_are_counted_too() {
    let source = "import threading, time\nn = 1\ntry:\n    while n < 100:\n        threading.Thread(target=time.sleep, args=(100,), daemon=True).start()\n        n += 1\nexcept RuntimeError: print(n, flush=True)\nimport os; os._exit(0)";
    assert_eq!(text(&run(source).stdout), "16\n");
}

#[test]
fn files_and_descriptors_run_out() {
    for (source, number) in [
        (
            "f = open('big', 'wb', buffering=0)\nwhile True: f.write(b'x' * (1 << 20))",
            None,
        ),
        (
            "for i in range(10 ** 6): open(str(i), 'w').close()",
            Some("No space left"),
        ),
        (
            "x = [open('/dev/null') for _ in range(10 ** 6)]",
            Some("Too many open files"),
        ),
    ] {
        let outcome = run(source);
        assert_eq!(outcome.ending, Ending::Exited(1), "{source}");
        let said = text(&outcome.stderr);
        assert!(
            said.contains("OSError") && number.is_none_or(|n| said.contains(n)),
            "{said}"
        );
    }
}

#[test]
fn deep_recursion_is_the_programs_failure() {
    let outcome = run("def f(n): return f(n + 1)\nf(0)");
    assert_eq!(outcome.ending, Ending::Exited(1));
    assert!(text(&outcome.stderr).contains("RecursionError"));
    let outcome = run(
        "import sys\nsys.setrecursionlimit(10 ** 9)\nclass A:\n    def __eq__(self, other): return [self] == [other]\nA() == A()",
    );
    assert!(
        matches!(
            outcome.ending,
            Ending::Signalled(libc::SIGSEGV) | Ending::MemoryLimit | Ending::Exited(1)
        ),
        "{:?}",
        outcome.ending
    );
}

#[test]
fn own_limits_cannot_be_raised() {
    let source = "import resource as r\nfor n in ('CPU', 'AS', 'FSIZE', 'NPROC', 'NOFILE', 'STACK', 'CORE'):\n    n = getattr(r, 'RLIMIT_' + n)\n    hard = r.getrlimit(n)[1]\n    for new in (hard + 1, r.RLIM_INFINITY):\n        try: r.setrlimit(n, (new, new)); print('raised', n)\n        except (ValueError, OSError): pass\nprint('done')";
    assert_eq!(text(&run(source).stdout), "done\n");
}

#[test]
fn a_busy_machine_is_no_time_limit() {
    // Four programs for each CPU, and no more wall-clock time than CPU time: none of them can use up either, and
    // that is not their fault.
    let limits = Limits {
        wall: Duration::from_secs(2),
        ..Limits::with_cpu(Duration::from_secs(2))
    };
    let programs = 4 * std::thread::available_parallelism().map_or(1, |n| n.get());
    let endings: Vec<_> = std::thread::scope(|scope| {
        let run = || sandbox().run("while True: pass", b"", &limits);
        let threads: Vec<_> = (0..programs).map(|_| scope.spawn(run)).collect();
        threads
            .into_iter()
            .map(|t| t.join().expect("ran"))
            .collect()
    });
    let starved = |e: &Result<Outcome, Fault>| matches!(e, Err(Fault::Overloaded { waited, .. }) if *waited > limits.wall / 4);
    assert!(endings.iter().any(starved), "{endings:?}");
    assert!(
        !endings
            .iter()
            .any(|e| matches!(e, Ok(o) if o.ending == Ending::WallLimit)),
        "{endings:?}"
    );
}

#[test]
fn extreme_limits_are_no_trouble() {
    let most = Limits {
        cpu: Duration::MAX,
        wall: Duration::MAX,
        memory_bytes: u64::MAX,
        output_bytes: u64::MAX,
        processes: u32::MAX,
        file_bytes: u64::MAX,
    };
    assert_eq!(
        run_with("open('x', 'w').write('y'); print(1)", b"", &most).ending,
        Ending::Exited(0)
    );
    assert_eq!(
        run_with("", b"", &Limits::with_cpu(Duration::MAX)).ending,
        Ending::Exited(0)
    );
    let least = Limits {
        cpu: Duration::ZERO,
        wall: Duration::ZERO,
        memory_bytes: 0,
        output_bytes: 0,
        processes: 0,
        file_bytes: 0,
    };
    let ending = run_with("print(1)", b"", &least).ending;
    assert!(
        matches!(ending, Ending::CpuLimit | Ending::OutputLimit),
        "{ending:?}"
    );
    // Without any time, whose fault it is cannot be told.
    let no_time = Limits {
        wall: Duration::ZERO,
        ..limits()
    };
    let result = sandbox().run("print(1)", b"", &no_time);
    let told = match &result {
        Ok(outcome) => outcome.ending == Ending::WallLimit,
        Err(fault) => matches!(fault, Fault::Overloaded { .. }),
    };
    assert!(told, "{result:?}");
}
