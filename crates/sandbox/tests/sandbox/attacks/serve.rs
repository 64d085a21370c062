//! Attacks on what starts and watches the program: the first process of the run, the warm interpreter and its helper,
//! the boot file. All of them may be ruined in a run, which then ends somehow; none of it is there in the next.

use rlef_sandbox::Ending;

use super::{Arena, attack, harmless, stage_all, stage_group};

#[test]
fn what_starts_programs_cannot_be_turned() {
    stage_group("serve");
}

/// However it ends: but by itself.
const SOMEHOW: &[Ending] = &[
    Ending::Exited(0),
    Ending::Exited(1),
    Ending::Exited(120),
    Ending::Signalled(11),
    Ending::Signalled(7),
    Ending::Signalled(6),
    Ending::Signalled(4),
    Ending::Forbidden(None),
    Ending::CpuLimit,
    Ending::MemoryLimit,
];

/// Packets of the shapes that the first process, the warm interpreter and the launcher understand.
const FORGE: &str = r#"
import os, socket, struct, array
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
packets = [struct.pack("QqQq", n, 2, 0, 0) for n in range(4)] + [struct.pack("51Q", *range(51)), b'"Setup"', b'"Kill"', b'{"Ended":{"NotStarted":{"step":"","errno":0}}}', b""]
for n in range(3, 300):
    for packet in packets:
        for send in (lambda: os.write(n, packet), lambda: socket.socket(fileno=os.dup(n)).sendmsg([packet], [(1, 1, array.array("i", [0, 1, 2, 0, 0]))])):
            if n in (a.fileno(), b.fileno()): continue
            try: send(); print("sent to", n)
            except OSError: pass
print("done")
"#;

/// The helper itself, asked to serve the program.
const HELPER: &str = r#"
import ctypes, os, socket, struct
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
a.send(b"\x06\0\0\0\0\0\xff\x7f")  # a filter that allows everything
order = struct.pack("3Q48Q", 1, 0, 0, *[0] * 48)
a.send(order)
print(ctypes.PyDLL("/fork.so").serve(b.fileno()))
"#;

pub(super) fn all(arena: &Arena) {
    let overwrite = |which: &str| {
        format!(
            "import ctypes\nfor line in open('/proc/self/maps'):\n    a, p = line.split()[:2]\n    if {which}:\n        a, b = (int(x, 16) for x in a.split('-'))\n        ctypes.CDLL(None).mprotect(ctypes.c_void_p(a), ctypes.c_size_t(b - a), 7)\n        ctypes.memset(a, 0, b - a)"
        )
    };
    stage_all(arena, [
        harmless("46 forged packets on every descriptor", FORGE, "done\n"),
        attack("the helper, asked to serve", HELPER, &[Ending::Forbidden(None), Ending::Exited(1), Ending::Exited(0)]),
        harmless("the go-between's number", "import os\nfor n in (299, 298, 300, 1):\n    for s in (9, 19, 18):\n        try: os.kill(n, s); print(n) if n != 1 else None\n        except OSError: pass\nprint('done')", "done\n"),
        harmless("the boot file's own functions", "import sys\nf = sys._getframe(1)\nfor n, v in list(f.f_globals.items()):\n    if n.startswith('_boot'):\n        for k in list(vars(v)): setattr(v, k, lambda *a: 1 / 0 if False else None)\nsys.excepthook = print\nf.f_globals.clear()\nprint('done', flush=True)", "").any_output().allow(Ending::Exited(1)),
        attack("the boot file's ending, called early", "import atexit\natexit._run_exitfuncs()\nprint('still here')", &[Ending::Exited(1), Ending::Exited(0)]),
        harmless("the boot file's ending, taken away", "import atexit\natexit._clear()\nprint('done')", "done\n"),
        attack("a failure, and the ending taken away", "import atexit\natexit._clear()\n1 / 0", &[Ending::Exited(1)]),
        attack("a failure made good in atexit", "import atexit, os\natexit.register(lambda: os._exit(0))\nprint('x', flush=True)\n1 / 0", &[Ending::Exited(0)]).prints("x\n"),
        attack("a failure told as none by frames", "import sys, gc\nf = sys._getframe(1)\nf.f_globals['_boot'].note = lambda e: None\ngc.unfreeze()\nfor o in gc.get_objects():\n    if type(o) is list and o in ([0], [1]): o[0] = 0\n1 / 0", &[Ending::Exited(1), Ending::Exited(0)]).prints(""),
        attack("all text of the program overwritten", overwrite("'x' in p and 'libc' not in line and 'vsyscall' not in line"), SOMEHOW).cpu(500),
        attack("all data overwritten", overwrite("p.startswith('rw')"), SOMEHOW).cpu(500),
        attack("all maps removed", "import ctypes\nc = ctypes.CDLL(None)\nc.munmap(ctypes.c_void_p(0), ctypes.c_size_t(2 ** 47 - 4096))", SOMEHOW),
        attack("objects of the interpreter overwritten", "import ctypes\nfor x in (None, True, 1, '', (), print, type, int):\n    ctypes.memset(id(x), 255, 64)", SOMEHOW).cpu(500),
        harmless("modules replaced", "import sys\nfor n in list(sys.modules): sys.modules[n] = sys\nprint('done')", "done\n").any_output().allow(Ending::Exited(1)).allow(Ending::Exited(120)),
        attack("tracing and profiling everything to the end", "import sys, threading\ndef f(*a):\n    raise ValueError\nsys.setprofile(f)\nlen('x')", &[Ending::Exited(1), Ending::Exited(0), Ending::Exited(120)]),
        harmless("an audit hook that refuses everything", "import sys\nprint('done', flush=True)\ndef f(*a): raise ValueError\nsys.addaudithook(f)", "done\n").allow(Ending::Exited(1)).allow(Ending::Exited(120)),
        attack("died in a thread while the first thread ends", "import os, threading, time\nfor n in range(8): threading.Thread(target=lambda: (time.sleep(0.01), os.kill(os.getpid(), 9))).start()\ntime.sleep(0.0095)", &[Ending::Signalled(9), Ending::Exited(0)]),
        attack("died by a timer, anywhere", "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_DFL)\nsignal.setitimer(signal.ITIMER_REAL, 0.005)\nwhile True: pass", &[Ending::Signalled(14)]),
        attack("died with the parent's wish (PR_SET_PDEATHSIG)", "import ctypes, os\nc = ctypes.CDLL(None)\nc.prctl(1, 9, 0, 0, 0)\nif os.fork() == 0:\n    c.prctl(1, 9, 0, 0, 0)\n    c.pause()\nos.kill(os.getpid(), 11)", &[Ending::Signalled(11)]),
        harmless("modules beside the program that shadow the library's", "import os, subprocess, sys\nfor n in ('os', 're', 'random', 'encodings', 'site', 'sitecustomize', '_sitebuiltins', 'codecs', 'io'):\n    open('/tmp/%s.py' % n, 'w').write('print(\"mine\")')\nimport random\nprint(subprocess.run([sys.executable, '-S', '-c', '1']).returncode is not None)", "True\n").any_output(),
        harmless("environment for its children", "import os, subprocess, sys\ne = dict(os.environ, PYTHONSTARTUP='/tmp/x', LD_PRELOAD='/fork.so', LD_LIBRARY_PATH='/tmp', PYTHONINSPECT='1', LD_AUDIT='/fork.so')\nprint(subprocess.run([sys.executable, '-S', '-c', 'print(1)'], env=e, stdin=subprocess.DEVNULL).returncode is not None)", "True\n").any_output(),
        harmless("nothing opened in the place of stdin, stdout and stderr", "import os\nprint('a', flush=True)\nos.closerange(0, 3)\nfor _ in range(250): os.open('/dev/null', 2)", "a\n"),
    ]);
    // As many programs as it takes to see a fork that goes wrong because of the one before.
    for round in 0..30 {
        let source =
            format!("import os\nfor _ in range({round}): os.fork()\nos.kill(os.getpid(), 9)");
        arena.run(&attack("killed while forking", source, &[]).wall(1000));
    }
    arena.nothing_is_left("thirty programs killed while forking");
}
