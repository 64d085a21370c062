//! Memory in every form: rows 13 to 17 of the catalogue and more of their kind.

use rlef_sandbox::Ending;

use super::{Arena, Attack, attack, harmless, stage_all, stage_group};

#[test]
fn memory_in_every_form_is_bounded() {
    stage_group("memory");
}

const MEMORY: &[Ending] = &[Ending::MemoryLimit];
/// A program that is refused memory, whatever it makes of that.
const REFUSED: &[Ending] = &[Ending::MemoryLimit, Ending::Exited(0), Ending::Exited(1)];

/// Six children that hold 40 MiB each until `done`, which is the parent's last line. `hide` comes first.
fn family(hide: &str, in_child: &str) -> String {
    format!(
        "import os, time, ctypes, threading\nc = ctypes.CDLL(None)\n{hide}\nr, w = os.pipe()\n\
         def hold():\n    x = bytearray(b'x') * (40 << 20)\n    os.write(w, b'.')\n    time.sleep(100)\n\
         for _ in range(6):\n    if os.fork() == 0:\n        {in_child}\n        hold()\n\
         n = 0\nwhile n < 6: n += len(os.read(r, 6))\ntime.sleep(1)\nprint('got away with it')\nos._exit(0)"
    )
}

pub(super) fn all(arena: &Arena) {
    let small = 96 << 20;
    let zombies = "for _ in range(3): os.fork() or os._exit(0)";
    let name = "c.prctl(15, b'\\xff\\xfe)\\n', 0, 0, 0)";
    let thread = "threading.Thread(target=hold).start(); c.syscall(60, 0)";
    // One at a time: more would meet the limit of processes on a busy machine, and the attack with them.
    let churn = "if os.fork() == 0:\n    while True:\n        if os.fork() == 0: time.sleep(0.002); os._exit(0)\n        os.wait()";
    let families = [
        ("16 children together, and a parent that exits 0", "", ""),
        ("children together, beside zombies", zombies, ""),
        ("children together, with names that are no text", name, ""),
        (
            "children together, each without its first thread",
            "",
            thread,
        ),
        (
            "children together, beside others that come and go",
            churn,
            "",
        ),
        (
            "children together, in sessions of their own",
            "",
            "os.setsid()",
        ),
    ];
    for (name, hide, in_child) in families {
        let in_child = if in_child.is_empty() {
            "pass"
        } else {
            in_child
        };
        arena.stage(&attack(name, family(hide, in_child), MEMORY).memory(small));
    }
    stage_all(arena, alone().map(|a| a.memory(small)));
}

fn alone() -> impl Iterator<Item = Attack> {
    [
        attack("13 a mebibyte at a time", "x = []\nwhile True: x.append(bytearray(1 << 20))", MEMORY),
        attack("14 all at once", "x = bytearray(16 << 30)", MEMORY),
        attack("15 swallows every MemoryError", "x = []\nwhile True:\n    try: x.append(bytearray(1 << 20))\n    except MemoryError: pass", &[Ending::CpuLimit, Ending::MemoryLimit]).cpu(300),
        attack("numbers that grow", "x = 3\nwhile True: x = x * x", &[Ending::MemoryLimit, Ending::CpuLimit]).cpu(500),
        attack("text that grows", "x = 'x'\nwhile True: x += x", MEMORY),
        attack("a generator into a list", "list(iter(int, 1))", &[Ending::MemoryLimit]),
        attack("threads with large stacks", "import threading, time\nthreading.stack_size(32 << 20)\nfor _ in range(100): threading.Thread(target=time.sleep, args=(100,), daemon=True).start()", REFUSED),
        harmless(
            "17 memory files and shared segments",
            "import ctypes, os, mmap\nc = ctypes.CDLL(None)\nprint(c.memfd_create(b'x', 0), c.shmget(0, 1 << 20, 0o1600), c.syscall(447, 0))\ntry: mmap.mmap(-1, 1 << 44)\nexcept (OSError, MemoryError): print('no')",
            "-1 -1 -1\nno\n",
        ),
        attack("17 files", "import os\nd = b'x' * (1 << 20)\nfor i in range(1000): open('/dev/shm/%d' % i, 'wb', 0).write(d)", &[Ending::Exited(1)]),
        attack("17 pipes", "import os\nwhile True:\n    r, w = os.pipe()\n    os.set_blocking(w, False)\n    try:\n        while True: os.write(w, bytes(65536))\n    except BlockingIOError: pass", &[Ending::Exited(1)]),
        attack("17 sockets", "import socket\nx = []\nwhile True:\n    p = socket.socketpair()\n    x.append(p)\n    for s in p:\n        s.setblocking(False)\n        try:\n            while True: s.send(bytes(65536))\n        except BlockingIOError: pass", &[Ending::Exited(1)]),
        harmless(
            "larger buffers",
            "import socket, fcntl, os\na, b = socket.socketpair()\nfor n in (7, 8, 32, 33):\n    try: a.setsockopt(1, n, 1 << 30); print('set', n)\n    except OSError: pass\n\
             r, w = os.pipe()\ntry: print('set', fcntl.fcntl(w, 1031, 1 << 20))\nexcept OSError: pass",
            "",
        ),
        harmless(
            "locked memory",
            "import ctypes, mmap\nc = ctypes.CDLL(None)\nprint(c.mlock(id(c), 4096), c.mlockall(3), c.mlock2(id(c), 4096, 0))\ntry: mmap.mmap(-1, 1 << 20, flags=0x2022); print('locked')\nexcept (OSError, MemoryError): pass",
            "-1 -1 -1\n",
        ),
        attack("huge pages", "import mmap\nmmap.mmap(-1, 2 << 20, flags=0x40022)[0] = 1", &[Ending::Exited(1), Ending::Exited(0), Ending::Signalled(7)]),
        attack("a stack that grows downwards", "import ctypes\nc = ctypes.CDLL(None)\nc.mmap.restype = ctypes.c_void_p\nc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]\np = c.mmap(0, 4096, 3, 0x122, -1, 0)\nwhile True:\n    p -= 4096\n    ctypes.memset(p, 1, 1)", &[Ending::Signalled(11), Ending::MemoryLimit]),
        attack("the stack, raised as far as it goes", "import resource as r, sys, threading\nr.setrlimit(r.RLIMIT_STACK, (r.getrlimit(r.RLIMIT_STACK)[1],) * 2)\nsys.setrecursionlimit(10 ** 9)\nclass A:\n    def __eq__(self, o): return [self] == [o]\nA() == A()", &[Ending::Signalled(11), Ending::MemoryLimit, Ending::Exited(1)]),
        harmless(
            "holes of a tebibyte and growing maps",
            "import mmap, resource\ntry: mmap.mmap(-1, 1 << 40); print('mapped')\nexcept (OSError, MemoryError): pass\nm = mmap.mmap(-1, 4096, flags=0x22)\ntry: m.resize(1 << 40); print('grown')\nexcept (OSError, ValueError, SystemError, MemoryError): pass",
            "",
        ),
        harmless(
            "as many maps as there may be",
            "import ctypes\nc = ctypes.CDLL(None)\nc.mmap.restype = ctypes.c_void_p\nc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]\nn = 0\nwhile n < 70000 and c.mmap(0, 4096, 1 + n % 2 * 2, 0x22, -1, 0) not in (2 ** 64 - 1, None): n += 1\nprint(n < 70000)",
            "True\n",
        ),
        attack("a hole in a file, touched", "import mmap, os\nf = os.open('/tmp/f', os.O_RDWR | os.O_CREAT)\nos.ftruncate(f, 60 << 20)\nos.close(os.open('/tmp/x', os.O_CREAT))\nopen('/tmp/y', 'wb', 0).write(bytes(50 << 20))\nm = mmap.mmap(f, 60 << 20)\nfor i in range(0, 60 << 20, 4096): m[i] = 1", &[Ending::Signalled(7)]),
        harmless(
            "advice of every kind",
            "import ctypes, mmap\nm = mmap.mmap(-1, 1 << 20)\na = ctypes.addressof(ctypes.c_char.from_buffer(m))\nc = ctypes.CDLL(None)\nc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]\nfor n in (100, 101): print(c.madvise(a, 4096, n))\nfor n in range(1, 30):\n    if n not in (9, ): c.madvise(a, 1 << 20, n)\nfor n in range(512): c.syscall(324, n, 0, 0)",
            "-1\n-1\n",
        ),
    ]
    .into_iter()
}
