//! The warm interpreter: nobody can tell it from one started afresh, no run sees or changes it, and losing it costs
//! nobody a verdict.

use std::sync::OnceLock;
use std::time::Duration;

use rlef_sandbox::{Config, Ending, Limits, Outcome, Sandbox};

use crate::{alone, config, interpreters, leftovers, limits, passes, text};

/// A sandbox of its own with one slot, so that runs follow each other in the very same place.
fn own() -> Sandbox {
    Sandbox::new(config()).expect("a sandbox")
}

/// Whether it is in force, and what is said about it.
pub(crate) fn told(sandbox: &Sandbox) -> (bool, String) {
    let all = sandbox.protections();
    let found = all.into_iter().find(|p| p.name == "warm interpreter");
    let found = found.expect("listed");
    assert!(!found.required);
    (found.in_force, found.detail)
}

#[test]
fn it_is_in_force_where_it_is_asked_for() {
    let (on, detail) = told(&own());
    assert_eq!(on, config().warm, "{detail}");
    let off = Sandbox::new(Config {
        warm: false,
        ..Config::default()
    });
    let (on, detail) = told(&off.expect("a sandbox"));
    assert!(!on && detail.starts_with("switched off"), "{detail}");
}

/// Runs in a sandbox of each kind.
fn two_ways(source: &str) -> [Outcome; 2] {
    static BOTH: OnceLock<[Sandbox; 2]> = OnceLock::new();
    let both = BOTH.get_or_init(|| {
        [true, false].map(|warm| {
            let config = Config {
                warm,
                ..Config::default()
            };
            Sandbox::new(config).expect("a sandbox")
        })
    });
    [0, 1].map(|i| {
        let run = || both[i].run(source, b"first\nsecond\n", &limits());
        run().or_else(|_| run()).expect("ran")
    })
}

fn assert_same(source: &str) -> Outcome {
    let [warm, afresh] = two_ways(source);
    let said = |o: &Outcome| {
        let [out, error] = [text(&o.stdout), text(&o.stderr)];
        let all = format!("{:?}\n{out}---\n{error}", o.ending);
        // Where objects lie is the one thing that differs.
        let mut parts = all.split(" at 0x");
        let mut masked = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            masked.push_str(" at ");
            masked.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
        }
        masked
    };
    assert_eq!(said(&warm), said(&afresh), "{source}");
    afresh
}

#[test]
fn programs_end_alike() {
    for source in [
        "",
        "exit()",
        "exit(3)",
        "exit(-1)",
        "exit(256)",
        "exit(2 ** 31 + 5)",
        "exit(2 ** 70)",
        "exit(-2 ** 63)",
        "exit(True)",
        "exit('why')",
        "exit(1.5)",
        "exit([1, 2])",
        "raise SystemExit",
        "raise SystemExit(None)",
        "class E(SystemExit): pass\nraise E(7)",
        "e = SystemExit(); e.code = 9\nraise e",
        "import os; print('lost'); os._exit(4)",
        "raise KeyboardInterrupt",
        "def f():\n    raise KeyboardInterrupt('x')\nf()",
        "import os; os.abort()",
        "print('out'); raise ValueError('ž')",
        "raise BaseException('x')",
        "raise ValueError('x') from KeyError('y')",
        "try: 1 / 0\nexcept ZeroDivisionError: [][1]",
        "try: 1 / 0\nfinally: print('finally')",
        "def f(n): return f(n + 1)\nf(0)",
        "n = 0\ndef f():\n    global n\n    n += 1\n    f()\ntry: f()\nexcept RecursionError: print(n)",
        "x = ",
        "def f():\n  x\n y",
        "print('ž', '\\ud800')",
        "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])",
        "import sys; sys.stdin.close(); sys.stdout.close(); sys.stderr.close()",
        "import os; print('x'); os.close(1)",
        "import os; print('x'); os.close(2)",
        "import os, sys; os.close(1); sys.exit(3)",
        "import sys; sys.stdout = None; sys.stderr = None; 1 / 0",
        "import sys; del sys.stdout; print(1)",
        "import json; json.loads('{')",
        "import re; re.compile('(')",
        "import decimal; decimal.Decimal('x')",
        "import statistics; statistics.mean([])",
        "assert 1 == 2, 'not'",
        "import warnings; warnings.warn('careful')",
    ] {
        assert_same(source);
    }
}

#[test]
fn what_happens_at_the_end_happens_alike() {
    for source in [
        "import atexit\natexit.register(print, 1); atexit.register(print, 2)\nprint(0)",
        "import atexit\natexit.register(lambda: 1 / 0)\natexit.register(print, 'still')",
        "import atexit, sys\natexit.register(sys.exit, 5)",
        "import atexit, os\natexit.register(os._exit, 5)",
        "import atexit\natexit.register(print, 'after')\n1 / 0",
        "import atexit, sys\natexit.register(print, 'after')\nsys.exit(6)",
        "class A:\n    def __del__(self): print('gone')\nx = A()",
        "class A:\n    def __del__(self): print('gone')\nx = A(); exit(2)",
        "class A:\n    def __del__(self): print('gone')\nx = A(); y = [x]; y.append(y); del x\n1 / 0",
        "class A:\n    def __del__(self): 1 / 0\nx = A()",
        "class A:\n    def __init__(self, n): self.n = n\n    def __del__(self): print(self.n)\na = A(1); _b = A(2); c = A(3); __d = A(4)",
        "class A:\n    def __init__(self, n): self.n = n\n    def __del__(self): print(self.n)\na = A(1); _b = A(2); c = A(3); __d = A(4)\nexit()",
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.05), print('late'))).start()\nprint('main')",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(100,), daemon=True).start()\nprint('main')",
        "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='t')\nt.start(); t.join(); print('main')",
        "out = open(1, 'w', closefd=False); out.write('not flushed')",
        "import sys, os\nsys.stdout = os.fdopen(1, 'w'); print('own stdout')",
        "import sys, io\nsys.stdout = io.TextIOWrapper(open(1, 'wb', 0), write_through=False); print('own wrapper')",
        "import sys, io\nsys.stdout = io.StringIO(); print('nobody sees')",
        "import sys\nsys.stdout.write('no newline')",
        "import sys\nclass W:\n    def write(self, s): return sys.__stdout__.write('<' + s + '>')\n    def flush(self): sys.__stdout__.flush()\nsys.stdout = W(); print('x')",
        "import sys\nclass W:\n    def write(self, s): pass\n    def flush(self): raise ValueError('no')\nsys.stdout = W()",
        "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1 / 0",
        "import sys\ndef hook(*a): raise KeyError\nsys.excepthook = hook\n1 / 0",
        "import weakref\nclass A: pass\na = A(); weakref.finalize(a, print, 'finalized')",
        "import logging; logging.warning('logged')",
        "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0); print('parent')\nelse: print('child')",
        "import os, sys\npid = os.fork()\nif not pid: sys.exit(9)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
        "import sys\ndef gen():\n    try: yield 1\n    finally: print('closed')\ng = gen(); next(g)",
        "import sys; sys.modules['__main__'] = 5",
        "import sys; sys.modules.clear()",
        "import tempfile; f = tempfile.NamedTemporaryFile(); print('x')",
    ] {
        assert_same(source);
    }
}

#[test]
fn programs_find_the_same_surroundings() {
    for source in [
        "print(sorted(globals()), __name__, __file__, __builtins__, __spec__, __doc__, __package__)",
        "import __main__, sys\nprint(__main__.__dict__ is globals(), sys.modules['__main__'] is __main__, __main__)",
        "import sys; print(sys.argv, sys.path, sys.flags, sys.executable, sys.prefix, sys.getrecursionlimit(), sys.getswitchinterval(), sys.gettrace(), sys.getprofile())",
        "import os; print(sorted(os.environ.items()), os.getcwd(), os.getpid(), os.getppid(), os.getpgid(0), os.getsid(0), os.listdir('.'))",
        "import os; print(os.umask(0), os.getresuid(), os.getgroups(), os.getpriority(0, 0), sorted(os.sched_getaffinity(0)) != [])",
        "import sys; print([(s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.isatty(), s.seekable(), s.buffer.raw.fileno()) for s in (sys.stdin, sys.stdout, sys.stderr)])",
        "import sys; print(sys.stdin.tell(), input(), sys.stdin.read()); sys.stdin.seek(0); print(input())",
        "import os; print([(n, os.readlink('/proc/self/fd/%d' % n).split(':')[0].split('(')[0]) for n in range(3)], sorted(os.listdir('/proc/self/fd')))",
        "import signal; print([signal.getsignal(n) for n in range(1, 65) if n not in (32, 33)], signal.pthread_sigmask(0, []), signal.sigpending(), signal.getitimer(0))",
        "import resource as r; print([(n, r.getrlimit(getattr(r, n))) for n in dir(r) if n.startswith('RLIMIT_') and n not in ('RLIMIT_AS', 'RLIMIT_DATA', 'RLIMIT_NPROC')])",
        "s = dict(l.rstrip('\\n').split(':\\t', 1) for l in open('/proc/self/status') if ':\\t' in l)\n\
         for k in ('Umask', 'State', 'Tgid', 'Pid', 'PPid', 'TracerPid', 'Uid', 'Gid', 'FDSize', 'NStgid', 'NSpid', 'NSpgid', 'NSsid', 'Kthread', 'Threads', 'SigPnd', 'ShdPnd', 'SigBlk', 'SigIgn', 'SigCgt', 'CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp', 'Seccomp_filters'): print(k, s.get(k))",
        "print(open('/proc/self/mountinfo').read().count('\\n'), open('/proc/self/oom_score_adj').read(), open('/proc/self/personality').read() if 0 else '')",
        "import os; print(os.readlink('/proc/self/exe'), os.readlink('/proc/self/cwd'), os.readlink('/proc/self/root'), sorted(os.listdir('/')), os.access('/proc/self/mem', os.R_OK))",
        "import locale; print(locale.setlocale(locale.LC_ALL), locale.getpreferredencoding())",
        "import threading as t; m = t.main_thread(); print(m.native_id, m is t.current_thread(), m.ident == t.get_ident(), t.active_count(), t.enumerate(), t.stack_size())",
        "import gc, sys; print(gc.isenabled(), gc.get_threshold(), gc.garbage, gc.callbacks, sys.getdefaultencoding(), sys.dont_write_bytecode)",
        "import warnings, decimal, re; print(warnings.filters, decimal.getcontext(), warnings.showwarning.__name__)",
        "import random; print(random.random(), random.choice(range(1000)), random.sample(range(100), 5), random.gauss(0, 1))",
        "import time; print(time.process_time() < 1, time.get_clock_info('time').implementation)",
        "import sys; print(sys._getframe(1).f_code.co_name, sys._getframe(1).f_back)",
        "import inspect; print(len(inspect.stack()))",
        "exit; quit; help; print(exit, quit, callable(help))",
        "print({'a', 'b', 'c', 'd'}, hash('x'), hash((1, 'a')), hash(b'y'))",
        "import concurrent, xml, importlib\nfor m, n in ((concurrent, 'futures'), (xml, 'dom'), (importlib, 'resources')): print(hasattr(m, n))",
        "x: int = 1\nprint(__annotations__ if '__annotations__' in globals() else globals().keys())",
        "import multiprocessing as m\nprint(m.current_process().name, m.parent_process(), m.get_context('fork').Pool(2).map(abs, [-1]))",
        "import subprocess, sys\nprint(subprocess.run([sys.executable, '-S', '-c', 'print(open(\"/proc/self/status\").read().split(\"CapEff:\")[1].split()[0])'], capture_output=True, text=True))",
        "try: json\nexcept NameError as e: print(e)\ntry: collections\nexcept NameError as e: print(e)",
    ] {
        let outcome = assert_same(source);
        assert_eq!(
            outcome.ending,
            Ending::Exited(0),
            "{source}: {}",
            text(&outcome.stderr)
        );
    }
}

#[test]
fn syntax_checks_say_the_same() {
    let both = [true, false].map(|warm| {
        let config = Config {
            warm,
            ..Config::default()
        };
        let sandbox = Sandbox::new(config).expect("a sandbox");
        ["1", "x =", "a\0b", "return", "'ž", "def f(:\n pass", "(((("]
            .map(|source| sandbox.syntax_check(source, &limits()).expect("checked"))
    });
    assert_eq!(both[0], both[1]);
    assert!(both[0][0].is_none() && both[0][1].is_some());
}

/// Changes everything that a run can reach of what it shares with the next: or would, were it shared.
const VANDAL: &str = r#"
import sys, os, gc, builtins, json, random, math, collections, threading, signal, atexit, re, io, ctypes, string, heapq
spared = ('sys', 'builtins', 'gc', 'os', 'posix', 'ctypes', 'signal', 'atexit', '_signal', 'io', 'codecs', 'enum', '__main__')
for m in list(sys.modules.values()):
    if type(m) is not type(sys) or m.__name__ in spared: continue
    for n in dir(m):
        if not n.startswith('__'): setattr(m, n, None)
    m.LEFT = 1
sys.setrecursionlimit(77777); sys.setswitchinterval(0.5); sys.LEFT = 1; builtins.LEFT = 1; os.LEFT = 1
gc.disable(); gc.set_threshold(1, 1, 1); os.chdir('/'); os.umask(0); os.environ['LEFT'] = '1'; os.putenv('LEFT', '1')
for n in range(1, 65):
    try: signal.signal(n, signal.SIG_IGN)
    except (OSError, ValueError, TypeError): pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 30)); signal.alarm(1)
sys.path.append('/LEFT'); sys.meta_path.clear(); sys.argv.append('LEFT')
opened = open
for n in ('len', 'print', 'open', 'compile', 'exec', '__import__'): setattr(builtins, n, None)
atexit.register(id, 1); sys.excepthook = None; sys.stdout = None
for o in gc.get_objects():
    if type(o) is list: o.append('LEFT')
os.write(1, b'done')
# All memory that can be written, the interpreter's own included.
ranges = [line.split()[:2] for line in opened('/proc/self/maps') if 'stack' not in line]
for a, p in ranges:
    if 'w' in p:
        a, b = (int(x, 16) for x in a.split('-'))
        ctypes.memset(a, 255, b - a)
"#;

const LOOK: &str = r#"
import sys, os, gc, builtins, json, random, math, collections, threading, signal, locale, atexit, decimal, resource, re, string, heapq
print([m.__name__ for m in list(sys.modules.values()) if hasattr(m, 'LEFT')], hasattr(builtins, 'LEFT'), 'LEFT' in os.environ)
print(sys.argv, sys.path, len('abc'), sys.getrecursionlimit(), sys.getswitchinterval(), gc.isenabled(), gc.get_threshold())
print(os.getcwd(), os.umask(0o22), os.listdir('/tmp'), signal.pthread_sigmask(0, []), signal.alarm(0), len(sys.meta_path))
print([n for n in range(1, 65) if n not in (32, 33) and signal.getsignal(n) == signal.SIG_IGN], atexit._ncallbacks())
print(locale.setlocale(locale.LC_ALL), resource.getrlimit(resource.RLIMIT_NOFILE), random.random(), math.sqrt(4))
print(json.dumps({'a': [1]}), collections.Counter('aab'), re.sub('a', 'b', 'aa'), decimal.Decimal(1) / 3, heapq.nsmallest(1, [3, 2]))
print(sorted(n for n in os.listdir('/proc') if n.isdigit()), threading.active_count(), string.digits)
print(os.readlink('/proc/self/ns/user')) # the same slot, so the same warm interpreter
gc.unfreeze()
print(sum(type(o) is list and o[-1:] == ['LEFT'] for o in gc.get_objects()))
"#;

#[test]
fn a_run_changes_nothing_for_the_next() {
    let sandbox = own();
    let look = || sandbox.run(LOOK, b"", &limits()).expect("ran");
    let before = look();
    assert_eq!(before.ending, Ending::Exited(0), "{}", text(&before.stderr));
    for limits in [
        limits(),
        Limits {
            memory_bytes: 48 << 20,
            processes: 1,
            file_bytes: 1 << 20,
            ..Limits::with_cpu(Duration::from_millis(700))
        },
    ] {
        let outcome = sandbox.run(VANDAL, b"", &limits).expect("ran");
        assert_eq!(text(&outcome.stdout), "done", "{}", text(&outcome.stderr));
        assert!(outcome.ending != Ending::Exited(0), "it went on living");
        let after = look();
        assert_eq!(
            (after.ending, text(&after.stdout), text(&after.stderr)),
            (before.ending, text(&before.stdout), text(&before.stderr))
        );
    }
}

/// The processes below the launchers of this process while nothing runs: the warm interpreters.
fn parents() -> Vec<String> {
    let launchers = leftovers::children(std::process::id());
    let below = |l: &String| leftovers::children(l.parse().expect("a number"));
    launchers.iter().flat_map(below).collect()
}

#[test]
fn losing_the_warm_interpreter_costs_nobody_a_verdict() {
    if !config().warm {
        return;
    }
    passes(alone("warm::warm_interpreters_are_killed").env("ALONE", "1"));
}

#[test]
#[ignore = "started by losing_the_warm_interpreter_costs_nobody_a_verdict, in a process of its own"]
fn warm_interpreters_are_killed() {
    if std::env::var_os("ALONE").is_none() {
        return;
    }
    let sandbox = own();
    let fine = |source: &str| {
        let outcome = sandbox.run(source, b"", &limits()).expect("ran");
        assert_eq!(
            (outcome.ending, text(&outcome.stdout)),
            (Ending::Exited(0), "fine\n".into()),
            "{}",
            text(&outcome.stderr)
        );
    };
    let send = |signal: libc::c_int| {
        let all = parents();
        assert_eq!(all.len(), 1, "{all:?}");
        let pid = all[0].parse().expect("a number");
        // SAFETY: signals a process that this test's own sandbox has started.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
        all
    };
    fine("print('fine')");
    for signal in [libc::SIGKILL, libc::SIGSEGV, libc::SIGTERM] {
        let before = send(signal);
        fine("print('fine')");
        assert_ne!(parents(), before, "it was not replaced");
    }
    // One that hangs: asked in vain, then replaced.
    let before = send(libc::SIGSTOP);
    let patient = Limits {
        wall: Duration::from_secs(60),
        ..limits()
    };
    let outcome = sandbox.run("print('fine')", b"", &patient).expect("ran");
    assert_eq!(text(&outcome.stdout), "fine\n");
    assert_ne!(parents(), before, "it was not replaced");
    // While a program runs, which does not need it any more.
    std::thread::scope(|scope| {
        let running = scope.spawn(|| fine("import time; time.sleep(0.7); print('fine')"));
        std::thread::sleep(Duration::from_millis(200));
        let launchers = leftovers::children(std::process::id());
        let below = leftovers::children(launchers[0].parse().expect("a number"));
        assert_eq!(
            below.len(),
            2,
            "the warm interpreter and the run: {below:?}"
        );
        let older = below[0].parse().expect("a number");
        // SAFETY: as above.
        let sent = unsafe { libc::kill(older, libc::SIGKILL) };
        assert_eq!(sent, 0);
        running.join().expect("ran");
    });
    fine("print('fine')");
}

#[test]
fn without_ctypes_programs_are_started_afresh() {
    let Some(copy) = interpreters::Copy::make("/var/tmp", &["ctypes"]) else {
        return;
    };
    let sandbox = Sandbox::new(Config {
        interpreter: Some(copy.interpreter()),
        ..config()
    })
    .expect("a sandbox");
    let (on, detail) = told(&sandbox);
    assert!(
        !on && (!config().warm || detail.contains("ctypes")),
        "{detail}"
    );
    let outcome = sandbox.run("print(1)", b"", &limits()).expect("ran");
    assert_eq!(text(&outcome.stdout), "1\n", "{}", text(&outcome.stderr));
}
