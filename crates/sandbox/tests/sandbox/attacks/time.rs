//! Programs that do not end: rows 1 to 12 of the catalogue and more of their kind.

use std::time::Duration;

use rlef_sandbox::{Ending, Fault};

use super::{Arena, Attack, TOO_SLOW, attack, stage_all, stage_group};

#[test]
fn endless_programs_end_at_a_limit() {
    stage_group("time");
}

const CPU: &[Ending] = &[Ending::CpuLimit];
const WALL: &[Ending] = &[Ending::WallLimit];

const IGNORE_ALL: &str = "import signal, time\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n";

pub(super) fn all(arena: &Arena) {
    for attack in busy() {
        let outcome = arena.stage(&attack);
        let limit = attack.limits.cpu;
        arena.expect(
            outcome.cpu >= limit * 9 / 10 && outcome.cpu < Duration::from_secs(2),
            || format!("{}: {:?}", attack.name, outcome.cpu),
        );
    }
    for attack in idle() {
        let outcome = arena.stage(&attack);
        arena.expect(outcome.wall >= attack.limits.wall, || {
            format!("{}: {:?}", attack.name, outcome.wall)
        });
    }
    stage_all(arena, many_processes());
    children_that_nobody_counts(arena);
}

/// Those that one process alone keeps going.
fn busy() -> impl Iterator<Item = Attack> {
    let ignoring = format!("{IGNORE_ALL}while True: pass");
    [
        ("1 busy loop", "while True: pass"),
        (
            "3 loop under a bare except",
            "while True:\n    try:\n        while True: pass\n    except: pass",
        ),
        ("4 ignores every signal", ignoring.as_str()),
        (
            "5 cancels timers",
            "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0); signal.alarm(0)\nwhile True: pass",
        ),
        ("6 power", "7 ** (10 ** 8)"),
        ("6 regex", "import re; re.match('(a+)+$', 'a' * 60 + 'b')"),
        (
            "7 loop in atexit",
            "import atexit\ndef f():\n    while True: pass\natexit.register(f)",
        ),
        (
            "8 loop in __del__",
            "class A:\n    def __del__(self):\n        while True: pass\nx = A()",
        ),
        (
            "9 the right answer, then a loop",
            "print('right', flush=True)\nwhile True: pass",
        ),
        (
            "a shower of timer signals",
            "import signal\nsignal.signal(signal.SIGALRM, lambda *a: None)\nsignal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)\nwhile True: pass",
        ),
        (
            "a shower of signals to itself, unhandled until the end",
            "import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: os.kill(os.getpid(), 34)",
        ),
        (
            "gives its CPU away all the time",
            "import os\nwhile True: os.sched_yield()",
        ),
        (
            "starts itself again and again",
            "import os, sys\nos.execv(sys.executable, [sys.executable, '-I', '-S', '/tmp/main.py'])",
        ),
        (
            "a first thread that has ended while another runs",
            "import ctypes, threading\ndef f():\n    while True: pass\nthreading.Thread(target=f).start()\nctypes.CDLL(None).syscall(60, 0)",
        ),
        (
            "limits that it has set itself",
            "import resource as r\nr.setrlimit(r.RLIMIT_CPU, (1000, r.getrlimit(r.RLIMIT_CPU)[1])) if r.getrlimit(r.RLIMIT_CPU)[1] >= 1000 else 0\nwhile True: pass",
        ),
        (
            "stopping the collector and the thread switch",
            "import sys, gc\nsys.setswitchinterval(1e6); gc.disable()\nwhile True: pass",
        ),
    ]
    .into_iter()
    .map(|(name, source)| attack(name, source, CPU).cpu(200))
    .collect::<Vec<_>>()
    .into_iter()
}

/// Those that use no CPU time.
fn idle() -> impl Iterator<Item = Attack> {
    let ignoring = format!("{IGNORE_ALL}while True: time.sleep(100)");
    [
        ("2 sleep", "import time; time.sleep(1000)"),
        ("4 sleep, ignoring every signal", ignoring.as_str()),
        ("a lock that nobody frees", "import threading; threading.Event().wait()"),
        ("a pipe that nobody fills", "import os; r, w = os.pipe(); os.read(r, 1)"),
        ("9 the right answer, then sleep", "import time\nprint('right', flush=True)\ntime.sleep(1000)"),
        ("11 stops itself", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"),
        (
            "stops its whole process group",
            "import os, signal, time\nos.kill(0, signal.SIGSTOP)\ntime.sleep(1000)",
        ),
        (
            "a fifo without a writer",
            "import os\nos.mkfifo('/tmp/f')\nopen('/tmp/f')",
        ),
        (
            "sleep until the end of time",
            "import ctypes\nc = ctypes.CDLL(None)\nc.clock_nanosleep(1, 1, (ctypes.c_long * 2)(2 ** 62, 0), None)",
        ),
        (
            "parent and child wait for each other",
            "import os\nr, w = os.pipe()\nif os.fork(): os.wait()\nelse: os.read(r, 1)",
        ),
        (
            "a suspended parent (vfork)",
            "import ctypes\nctypes.CDLL(None).syscall(56, 0x4111, 0, 0, 0, 0) or ctypes.CDLL(None).pause()",
        ),
        (
            "closed outputs",
            "import os, time\nfor n in range(3): os.close(n)\ntime.sleep(1000)",
        ),
        (
            "waiting for a signal in many threads",
            "import threading, signal\nfor _ in range(10): threading.Thread(target=signal.pause).start()",
        ),
    ]
    .into_iter()
    .map(|(name, source)| attack(name, source, WALL).wall(300))
    .collect::<Vec<_>>()
    .into_iter()
}

fn many_processes() -> impl Iterator<Item = Attack> {
    [
        (
            "10 many processes, each below the limit",
            "import os, time\nfor _ in range(12):\n    if os.fork() == 0:\n        while time.process_time() < 0.1: pass\n        time.sleep(60)\ntime.sleep(60)",
        ),
        (
            "a chain of processes, each the last one's child",
            "import os, time\nif os.fork(): time.sleep(60)\nwhile True:\n    if os.fork(): os._exit(0)",
        ),
        (
            "sixteen threads",
            "import threading\ndef f():\n    while True: pass\nfor _ in range(15): threading.Thread(target=f).start()\nf()",
        ),
        (
            "the first process drowned in SIGTERM",
            "import ctypes, os\nkill = ctypes.CDLL(None).kill\nfor _ in range(3): os.fork() or None\nwhile True:\n    for _ in range(1000): kill(1, 15)",
        ),
        (
            "the first process drowned in SIGCHLD",
            "import ctypes, os\nkill = ctypes.CDLL(None).kill\nfor _ in range(3): os.fork() or None\nwhile True:\n    for _ in range(1000): kill(1, 17)",
        ),
        (
            "the first process drowned in every signal",
            "import ctypes, os\nkill = ctypes.CDLL(None).kill\nos.fork()\nwhile True:\n    for n in range(1, 65): kill(1, n)",
        ),
        (
            "the first process drowned in orphans",
            "import os\nfor _ in range(2): os.fork()\nwhile True:\n    try:\n        pid = os.fork()\n        if pid == 0:\n            os.fork()\n            os._exit(0)\n        os.waitpid(pid, 0)\n    except OSError: pass",
        ),
    ]
    .into_iter()
    .map(|(name, source)| attack(name, source, &TOO_SLOW).cpu(400))
}

/// Without control groups the time of these cannot be counted, nor told from that of others on a busy machine.
fn children_that_nobody_counts(arena: &Arena) {
    let name = "children that nobody counts";
    let source = "import os, signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True:\n    try:\n        if os.fork() == 0:\n            for _ in range(1000): pass\n            os._exit(0)\n    except OSError: pass";
    let attack = attack(name, source, &TOO_SLOW).cpu(400).wall(1500);
    let run = || arena.sandbox.run(&attack.source, b"", &attack.limits);
    let ending = match run().or_else(|_| run()) {
        Ok(outcome) => outcome.ending,
        Err(Fault::Overloaded { .. }) => Ending::WallLimit,
        Err(fault) => panic!("{name}: {fault}"),
    };
    arena.expect(TOO_SLOW.contains(&ending), || {
        format!("{name} ended with {ending:?}")
    });
    arena.nothing_is_left(name);
}
