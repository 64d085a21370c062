//! What control groups give where the system lends some. Where it does not, most of these tests have nothing to test and
//! say so; `lent::an_ordinary_user_may_be_lent_groups` makes the difference when run by root.

use std::fs;
use std::time::Duration;

use rlef_sandbox::{Config, Ending, Fault, Limits, Sandbox};

use crate::leftovers::children;
use crate::lent::{Around, groups_of};
use crate::{alone, config, limits, passes, run_with, sandbox, text};

pub(crate) const MEMORY: &str = "memory of all processes bounded together";
pub(crate) const CPU: &str = "CPU time of all processes counted together";
pub(crate) const TASKS: &str = "second bound on processes";
pub(crate) const KILL: &str = "all processes ended in one step";

/// Whether the system lends it to these tests.
pub(crate) fn lent(name: &str) -> bool {
    let all = sandbox().protections();
    let one = all.iter().find(|p| p.name == name).expect("listed");
    if !one.in_force {
        println!("skipped: {}", one.detail);
    }
    one.in_force
}

pub(crate) fn memory_is_bounded() -> bool {
    lent(MEMORY)
}

pub(crate) fn memory(mib: u64) -> Limits {
    Limits {
        memory_bytes: mib << 20,
        ..Limits::with_cpu(Duration::from_secs(5))
    }
}

#[test]
fn memory_of_children_counts_whatever_the_parent_says() {
    if !memory_is_bounded() {
        return;
    }
    // Without children that hold it all at once the limit is not passed.
    let source = |children: u32, wait: &str| {
        format!(
            "import os, time\nfor _ in range({children}):\n    if os.fork() == 0:\n        x = bytearray(b'x') * (60 << 20)\n        time.sleep(0.5)\n        os._exit(0)\n    {wait}\n\
            try:\n    while True: os.wait()\nexcept ChildProcessError: pass\nprint('fine', flush=True)\nos._exit(0)"
        )
    };
    let outcome = run_with(&source(8, ""), b"", &memory(256));
    assert_eq!(outcome.ending, Ending::MemoryLimit);
    let outcome = run_with(&source(2, "os.wait()"), b"", &memory(96));
    assert_eq!(
        outcome.ending,
        Ending::Exited(0),
        "{}",
        text(&outcome.stderr)
    );
    let peak = outcome.peak_memory_bytes.expect("known");
    assert!(peak > 60 << 20 && peak < 96 << 20, "{peak}");
}

#[test]
fn small_memory_limits_hold() {
    if !memory_is_bounded() {
        return;
    }
    // What the slot needs is known the less exactly the older the kernel: some mebibytes lie between.
    for mib in [2, 4, 8, 12, 16, 24] {
        let hold = |bytes: u64| format!("x = b'x' * {bytes}\nprint(len(x))");
        let outcome = run_with(&hold((mib + 4) << 20), b"", &memory(mib));
        assert_eq!(outcome.ending, Ending::MemoryLimit, "{mib} MiB");
        let outcome = run_with(&hold((mib - 1) << 20), b"", &memory(mib));
        assert_eq!(
            outcome.ending,
            Ending::Exited(0),
            "{mib} MiB: {}",
            text(&outcome.stderr)
        );
    }
    // Many small objects, which fit into what the interpreter has free.
    let source = "x = [str(i) for i in range(200000)]";
    assert_eq!(
        run_with(source, b"", &memory(6)).ending,
        Ending::MemoryLimit
    );
}

#[test]
fn mapping_is_not_holding() {
    if !memory_is_bounded() {
        return;
    }
    let source = "import mmap, threading, time\nm = mmap.mmap(-1, 3 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)\n\
        m[0] = 1; m[2 << 30] = 1\n\
        for _ in range(14): threading.Thread(target=time.sleep, args=(0.05,)).start()\nprint('fine')";
    let outcome = run_with(source, b"", &memory(64));
    assert_eq!(
        (outcome.ending, text(&outcome.stdout).as_str()),
        (Ending::Exited(0), "fine\n"),
        "{}",
        text(&outcome.stderr)
    );
    // Touched, it counts; and what nobody could have is refused at once, with a message.
    let source = "x = b'x' * (3 << 30)";
    assert_eq!(
        run_with(source, b"", &memory(64)).ending,
        Ending::MemoryLimit
    );
    let outcome = run_with("x = bytearray(1 << 40)", b"", &memory(64));
    assert_eq!(outcome.ending, Ending::MemoryLimit);
    assert!(
        text(&outcome.stderr).contains("MemoryError"),
        "{}",
        text(&outcome.stderr)
    );
}

#[test]
fn memory_outside_of_processes_counts() {
    if !memory_is_bounded() {
        return;
    }
    let fill = "data = b'x' * (1 << 16)\nn = 0\ntry:\n    while True:\n        with open(str(n // 128), 'ab', buffering=0) as f: f.write(data)\n        n += 1\nexcept OSError as e: print(e.errno, n // 16)";
    for (mib, files, wanted) in [(24, 200, None), (200, 24, Some(libc::ENOSPC))] {
        let limits = Limits {
            file_bytes: files << 20,
            ..memory(mib)
        };
        for _ in 0..5 {
            let outcome = run_with(fill, b"", &limits);
            match wanted {
                None => assert_eq!(outcome.ending, Ending::MemoryLimit),
                Some(number) => assert_eq!(
                    (outcome.ending, text(&outcome.stdout)),
                    (Ending::Exited(0), format!("{number} {files}\n")),
                    "{}",
                    text(&outcome.stderr)
                ),
            }
        }
    }
    // What lies in pipes that nobody reads.
    let source = "import os\nkept = []\nfor _ in range(100):\n    r, w = os.pipe()\n    os.write(w, b'x' * 65536)\n    kept.append((r, w))\nprint(len(kept))";
    assert_eq!(
        run_with(source, b"", &memory(4)).ending,
        Ending::MemoryLimit
    );
    let outcome = run_with(source, b"", &memory(16));
    assert_eq!(text(&outcome.stdout), "100\n", "{}", text(&outcome.stderr));
}

#[test]
fn running_out_of_memory_costs_the_slot_nothing() {
    if !memory_is_bounded() {
        return;
    }
    // Alone, because slots of other tests come and go.
    passes(alone("groups::slot_that_stays").env("STAYS", "1"));
}

#[test]
#[ignore = "started by running_out_of_memory_costs_the_slot_nothing"]
fn slot_that_stays() {
    if std::env::var_os("STAYS").is_none() {
        return;
    }
    // On a busy machine ending a run may take longer than the launcher waits, which costs a slot as well.
    assert!((0..3).any(|_| same_slot_after_running_out_of_memory()));
}

/// Whether twenty programs that run out of memory, each with the right verdict, leave the slot as it was.
fn same_slot_after_running_out_of_memory() -> bool {
    let own = Sandbox::new(config()).expect("a sandbox");
    let below = |pid: &String| children(pid.parse().expect("a number"));
    let launchers = children(std::process::id());
    let warm: Vec<_> = launchers.iter().map(below).collect();
    let sources = [
        "x = []\nwhile True: x.append(b'x' * (1 << 20))",
        // Many small ones, none of them larger than the interpreter that they were forked from.
        "import os, time\nfor i in range(14):\n    if os.fork() == 0: break\nn = 0\nwhile True:\n    open('%d-%d' % (os.getpid(), n), 'wb').write(b'x' * 4096); n += 1\n    if n % 250 == 0: time.sleep(0)",
        "for n in ('-1000', '0'):\n    try: open('/proc/self/oom_score_adj', 'w').write(n); print('lowered')\n    except OSError: pass\nx = []\nwhile True: x.append(b'x' * (1 << 20))",
        "x = []\nwhile True:\n    try: x.append(b'x' * (1 << 20))\n    except MemoryError: pass",
    ];
    let tight = Limits {
        file_bytes: 1 << 30,
        ..memory(12)
    };
    for source in sources.iter().cycle().take(20) {
        let outcome = match own.run(source, b"", &tight) {
            Err(Fault::Overloaded { .. }) => continue,
            other => other.expect("the sandbox works"),
        };
        assert_eq!(
            outcome.ending,
            Ending::MemoryLimit,
            "{source}: {}",
            text(&outcome.stderr)
        );
        assert!(!text(&outcome.stdout).contains("lowered"));
        let next = own.run("print(1)", b"", &limits());
        let passed = match &next {
            Ok(outcome) => outcome.ending == Ending::Exited(0) && outcome.stdout == b"1\n",
            Err(fault) => matches!(fault, Fault::Overloaded { .. }),
        };
        assert!(passed, "{next:?}");
    }
    let after = children(std::process::id());
    after == launchers && after.iter().map(below).collect::<Vec<_>>() == warm
}

#[test]
fn a_machine_out_of_memory_is_no_memory_limit() {
    // A group around the supervisor has less than the program may use: that is not the program's doing.
    let Some(around) = Around::make(&["memory"], "around") else {
        return;
    };
    let limit = around.folders[0].join("memory.limit_in_bytes");
    if fs::write(&limit, (200_u64 << 20).to_string()).is_err() {
        println!("skipped: {} cannot be written", limit.display());
        return;
    }
    passes(&mut around.start(alone("groups::supervisor_with_little_memory").env("LITTLE", "1")));
    passes(&mut around.start(alone("groups::supervisor_without_groups").env("LITTLE", "1")));
}

#[test]
#[ignore = "started by a_machine_out_of_memory_is_no_memory_limit"]
fn supervisor_without_groups() {
    if std::env::var_os("LITTLE").is_none() {
        return;
    }
    let sandbox = Sandbox::new(Config {
        groups: false,
        ..config()
    });
    let sandbox = sandbox.expect("a sandbox");
    let source = "x = []\nwhile True: x.append(b'x' * (1 << 20))";
    let result = sandbox.run(source, b"", &memory(4096));
    assert!(
        matches!(&result, Err(Fault::Broken { reason, .. }) if reason.contains("ran out of memory")),
        "{result:?}"
    );
    // What a program does to itself is its own doing.
    let itself = "import os\nos.kill(os.getpid(), 9)";
    let outcome = sandbox.run(itself, b"", &limits()).expect("ran");
    assert_eq!(outcome.ending, Ending::Signalled(libc::SIGKILL));
}

#[test]
#[ignore = "started by a_machine_out_of_memory_is_no_memory_limit"]
fn supervisor_with_little_memory() {
    if std::env::var_os("LITTLE").is_none() {
        return;
    }
    let source = "x = []\nwhile True: x.append(b'x' * (1 << 20))";
    let result = sandbox().run(source, b"", &memory(4096));
    assert!(
        matches!(&result, Err(Fault::Broken { reason, .. }) if reason.contains("ran out of memory")),
        "{result:?}"
    );
    assert_eq!(
        run_with(source, b"", &memory(20)).ending,
        Ending::MemoryLimit
    );
}

/// Each child works for a while and is never waited for.
const UNCOUNTED: &str = "import os, signal, sys, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nn = int(input())\n\
    for _ in range(n):\n    if os.fork() == 0:\n        t = time.process_time()\n        while time.process_time() < t + 0.03: pass\n        os._exit(0)\n    try: os.wait()\n    except ChildProcessError: pass\n\
    os._exit(0)";

#[test]
fn cpu_time_of_children_that_nobody_waits_for_counts() {
    if !lent(CPU) {
        return;
    }
    let limits = Limits {
        wall: Duration::from_secs(60),
        ..Limits::with_cpu(Duration::from_millis(500))
    };
    let outcome = run_with(UNCOUNTED, b"8", &limits);
    assert_eq!(outcome.ending, Ending::Exited(0));
    let ms = Duration::from_millis;
    assert!(
        outcome.cpu > ms(230) && outcome.cpu < ms(500),
        "{:?}",
        outcome.cpu
    );
    let outcome = run_with(UNCOUNTED, b"1000", &limits);
    assert_eq!(outcome.ending, Ending::CpuLimit);
    assert!(
        outcome.cpu >= ms(500) && outcome.cpu < ms(1500),
        "{:?}",
        outcome.cpu
    );
}

#[test]
fn the_slots_own_work_is_not_charged() {
    if !lent(CPU) {
        return;
    }
    let without = Sandbox::new(Config {
        groups: false,
        ..config()
    });
    let without = without.expect("a sandbox");
    let median = |sandbox: &Sandbox| {
        let mut all: Vec<_> = (0..40)
            .filter_map(|_| Some(sandbox.run("pass", b"", &limits()).ok()?.cpu))
            .collect();
        all.sort();
        all[all.len() / 2]
    };
    let (with, without) = (median(sandbox()), median(&without));
    assert!(
        with < without * 3 / 2,
        "{with:?} with groups, {without:?} without"
    );
}

#[test]
fn processes_are_bounded_twice() {
    if !lent(TASKS) {
        return;
    }
    let found = |name: &str| -> Vec<u64> {
        let groups = groups_of(std::process::id());
        let files = groups
            .iter()
            .filter_map(|g| fs::read_to_string(g.join(name)).ok());
        files.filter_map(|t| t.trim().parse().ok()).collect()
    };
    // Room for the limit and what is the sandbox's, and for little else.
    let limits = Limits {
        processes: 5,
        ..limits()
    };
    run_with("print(1)", b"", &limits);
    assert!(
        found("pids.max").iter().any(|n| (8..=20).contains(n)),
        "{:?}",
        found("pids.max")
    );
}

#[test]
fn groups_can_be_switched_off() {
    let own = Sandbox::new(Config {
        groups: false,
        ..config()
    });
    let own = own.expect("a sandbox");
    for name in [MEMORY, CPU, TASKS, KILL] {
        let all = own.protections();
        let one = all.iter().find(|p| p.name == name).expect("listed");
        assert!(!one.in_force && !one.required);
        assert!(
            one.detail.contains("switched off") && one.detail.contains("Delegate"),
            "{}",
            one.detail
        );
    }
    let outcome = own.run(
        "print(open('/proc/self/oom_score_adj').read())",
        b"",
        &limits(),
    );
    if let Ok(outcome) = outcome {
        assert_eq!(
            (outcome.ending, text(&outcome.stdout).trim()),
            (Ending::Exited(0), "1000")
        );
    }
}
