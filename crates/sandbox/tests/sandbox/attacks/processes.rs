//! Processes and threads: odd clones, bombs, programs that die in odd moments. The plain bombs (rows 18 to 21) are in
//! `leftovers.rs`, which also looks for them on the host.

use rlef_sandbox::Ending;

use super::{Arena, TOO_SLOW, attack, harmless, stage_all, stage_group};

#[test]
fn processes_of_every_kind_end_with_the_run() {
    stage_group("processes");
}

/// Forks as often as it may.
const CROWD: &str = "import os, time\ntry:\n    while True:\n        if os.fork() == 0: time.sleep(100)\nexcept BlockingIOError: pass\n";

pub(super) fn all(arena: &Arena) {
    let ends = [
        ("itself", "os.kill(os.getpid(), 9)", Ending::Signalled(9)),
        ("its process group", "os.kill(0, 9)", Ending::Signalled(9)),
        (
            "its process group",
            "os.killpg(0, 15)",
            Ending::Signalled(15),
        ),
        (
            "all but itself",
            "try: os.kill(-1, 9)\nexcept OSError: pass\nos._exit(7)",
            Ending::Exited(7),
        ),
        ("31 abort", "os.abort()", Ending::Signalled(6)),
        (
            "31 segfault",
            "import ctypes; ctypes.string_at(0)",
            Ending::Signalled(11),
        ),
        (
            "a breakpoint",
            "os.kill(os.getpid(), 5)",
            Ending::Signalled(5),
        ),
        (
            "a stack fault",
            "os.kill(os.getpid(), 16)",
            Ending::Signalled(16),
        ),
        (
            "a real-time signal",
            "os.kill(os.getpid(), 40)",
            Ending::Signalled(40),
        ),
        (
            "a forbidden call by signal",
            "os.kill(os.getpid(), 31)",
            Ending::Forbidden(None),
        ),
        (
            "exit of one thread only",
            "import ctypes; ctypes.CDLL(None).syscall(60, 3)",
            Ending::Exited(3),
        ),
    ];
    for (name, end, wanted) in ends {
        arena.stage(&attack(name, format!("import os\n{end}"), &[wanted]));
        // With every place for a process taken, and a shell of orphans around it.
        let crowded = format!("{CROWD}{end}");
        arena.stage(&attack(&format!("{name}, in a crowd"), crowded, &[wanted]));
    }
    stage_all(
        arena,
        [
            harmless(
                "20 thread bomb that stops by itself",
                "import threading, os, time\ntry:\n    while True: threading.Thread(target=time.sleep, args=(100,)).start()\nexcept RuntimeError: print('full', flush=True)\nos._exit(0)",
                "full\n",
            ),
            harmless(
                "a core dump",
                "import os, resource as r\nprint(r.getrlimit(r.RLIMIT_CORE))\nif os.fork() == 0: os.abort()\nprint(os.WCOREDUMP(os.wait()[1]), os.listdir('/tmp'))",
                "(1, 1)\nFalse ['main.py']\n",
            ),
            harmless(
                "a crowd of zombies",
                "import os\ntry:\n    while True: os.fork() or os._exit(0)\nexcept BlockingIOError: print('full')",
                "full\n",
            ),
            harmless("a crowd of stopped processes", format!("{CROWD}import signal\nfor n in range(3, 40):\n    try: os.kill(n, signal.SIGSTOP)\n    except OSError: pass\nprint('stopped')"), "stopped\n"),
            harmless(
                "a new session and process groups",
                "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork(): os.setpgid(0, 0) if os.getpgid(0) != os.getpid() else None\n        time.sleep(100)\nprint('gone')",
                "gone\n",
            ),
            harmless(
                "children of its parent (CLONE_PARENT)",
                "import ctypes, os\nc = ctypes.CDLL(None)\nn = c.syscall(56, 0x8000 | 17, 0, 0, 0, 0)\nif n == 0:\n    c.pause()\nprint(n > 0, os.getppid())",
                "True 1\n",
            ),
            harmless(
                "children without a signal",
                "import ctypes, os\nc = ctypes.CDLL(None)\nfor flags in (0, 9, 34, 0x8000, 0x200000 | 17, 0x800000 | 17, 0x2000 | 17):\n    if c.syscall(56, flags, 0, 0, 0, 0) == 0: c.pause()\nprint('all')",
                "all\n",
            ),
            harmless(
                "children that share descriptors, folders and memory",
                "import ctypes, os\nc = ctypes.CDLL(None)\nfor flags in (0x400 | 17, 0x200 | 17, 0x600 | 17):\n    if c.syscall(56, flags, 0, 0, 0, 0) == 0:\n        os.chdir('/'); os.close(2); c.pause()\nprint('all')",
                "all\n",
            ),
            // A child that shares all memory without a stack of its own ruins both.
            attack(
                "a child on the same stack",
                "import ctypes, os\nctypes.CDLL(None).syscall(56, 0x100 | 17, 0, 0, 0, 0)\nprint('x' * 1000)\nraise SystemExit(1)",
                &[Ending::Exited(1), Ending::Exited(0), Ending::Exited(120), Ending::Signalled(11), Ending::Signalled(6), Ending::CpuLimit, Ending::WallLimit],
            ).wall(2000),
            harmless(
                "limits lowered to nothing",
                "import resource as r\nfor n in range(16):\n    if n not in (r.RLIMIT_CPU, r.RLIMIT_AS, r.RLIMIT_STACK):\n        try: r.setrlimit(n, (0, 0))\n        except (OSError, ValueError): pass\nprint('none')",
                "none\n",
            ),
            attack("no CPU time by its own wish", "import resource as r\nr.setrlimit(r.RLIMIT_CPU, (0, 0))\nwhile True: pass", &[Ending::Signalled(9), Ending::CpuLimit]),
            attack("no address space by its own wish", "import resource as r\nr.setrlimit(r.RLIMIT_AS, (0, 0))\nx = bytearray(1 << 24)", &[Ending::MemoryLimit, Ending::Exited(1)]),
            harmless(
                "every place taken at the end",
                format!("{CROWD}import atexit\natexit.register(os.fork)\nprint('end')"),
                "end\n",
            ).allow(Ending::Exited(0)),
            attack("forks for ever in atexit", "import atexit, os\ndef f():\n    while True:\n        try: os.fork()\n        except OSError: pass\natexit.register(f)", &TOO_SLOW).cpu(300).wall(3000),
            attack("forks in every signal handler", "import os, signal\ndef f(*a):\n    try: os.fork()\n    except OSError: pass\nfor n in range(1, 65):\n    try: signal.signal(n, f)\n    except (OSError, ValueError): pass\nwhile True:\n    for n in range(10, 65):\n        try: os.kill(0, n)\n        except OSError: pass", &[Ending::CpuLimit, Ending::WallLimit, Ending::Signalled(11), Ending::Signalled(19), Ending::Signalled(32), Ending::Signalled(33), Ending::Forbidden(None)]).cpu(300).wall(3000),
            harmless(
                "a process that is being started when the program ends",
                "import os, subprocess, sys, threading\nf = lambda: [subprocess.Popen([sys.executable, '-S', '-c', 'input()']) for _ in range(3)]\nfor _ in range(3): threading.Thread(target=f, daemon=True).start()\nprint('end', flush=True)\nos._exit(0)",
                "end\n",
            ),
            harmless(
                "a suspended parent (vfork) left behind",
                "import ctypes, os\nif os.fork() == 0:\n    ctypes.CDLL(None).syscall(56, 0x4111, 0, 0, 0, 0) or ctypes.CDLL(None).pause()\n    os._exit(0)\nprint('end')",
                "end\n",
            ),
        ],
    );
}
