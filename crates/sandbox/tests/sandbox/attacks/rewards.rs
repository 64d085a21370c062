//! Programs that want to pass without solving anything: rows 49 to 64 of the catalogue, as far as they can be shown
//! without a judge. A program has nothing to find, and what it prints is what it printed.

use rlef_sandbox::Ending;

use super::{Arena, attack, harmless, stage_all, stage_group};

#[test]
fn there_is_nothing_to_find_and_nothing_to_forge() {
    stage_group("rewards");
}

/// Reads every byte of its memory that can be read, looking for a text that is on stdin in two halves (so that it is
/// not found for having been asked for).
const SEARCH: &str = r#"
import os
a, b = input().encode(), input().encode()
found = 0
memory = os.open("/proc/self/mem", os.O_RDONLY)
for line in open("/proc/self/maps"):
    start, end = (int(x, 16) for x in line.split()[0].split("-"))
    if "r" not in line.split()[1] or "[v" in line: continue
    while start < end:
        try: part = os.pread(memory, min(1 << 20, end - start), start)
        except OSError: break
        at = part.find(a)
        while at >= 0:
            found += part[at + len(a):at + len(a) + len(b)] == b
            at = part.find(a, at + 1)
        start += len(part)
print(found > 0)
"#;

pub(super) fn all(arena: &Arena) {
    // What the caller knows and the program must not: here it lies in this process's memory and environment.
    let secret = format!(
        "expected-output-{}-{:x}",
        std::process::id(),
        std::process::id() * 7919
    );
    assert!(secret.len() > 20);
    let halves = format!("{}\n{}\n", &secret[..12], &secret[12..]);
    // That the search can find something.
    let planted = SEARCH.replace("found = 0", "found = 0\nplanted = a + b");
    stage_all(
        arena,
        [
            harmless("50 a search of all its memory", SEARCH, "False\n").reads(halves.clone()),
            harmless("a search of all its memory that finds", planted, "True\n").reads(halves),
            harmless(
                "50 a search of every object and frame",
                "import gc, sys\nf = sys._getframe()\nn = 0\nwhile f: n += 1; f = f.f_back\ngc.unfreeze()\nprint(n, any(isinstance(o, (list, dict)) and 'expected' in o for o in gc.get_objects() if type(o) in (list, dict)))",
                "2 False\n",
            ),
            harmless(
                "53 a search of every file that is not the interpreter's",
                "import os, sys\nprint(sys.argv, [k for k in sorted(os.environ) if not k.startswith('PYTHON')], os.listdir(), os.listdir('/tmp'), os.listdir('/late'), os.listdir('/empty'))",
                "['main.py'] ['HOME', 'MALLOC_ARENA_MAX', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'PATH'] ['main.py'] ['main.py'] [] []\n",
            ),
            harmless(
                "49 the end before the answer",
                "import sys; sys.exit(0)",
                "",
            ),
            harmless(
                "49 the end before the answer, at once",
                "import os; print('lost'); os._exit(0)",
                "",
            ),
            harmless(
                "51 other builtins",
                "import builtins, sys, json\nreal = print\nbuiltins.print = lambda *a: real('hacked')\njson.dumps = json.loads = lambda *a: 'hacked'\nbuiltins.len = lambda x: 0\nprint(42)",
                "hacked\n",
            ),
            harmless(
                "52 an object that equals everything",
                "class A(str):\n    def __eq__(self, other): return True\n    def __hash__(self): return 0\nprint(A('wrong'))",
                "wrong\n",
            ),
            harmless(
                "54 verdicts on every descriptor",
                "import os\nfor n in list(range(256)):\n    for text in (b'{\"Ended\":{\"Report\":{\"status\":0,\"cpu_us\":0,\"peak_bytes\":0}}}', b'\\0' * 32):\n        if n not in (0, 1, 2):\n            try: os.write(n, text); print('written', n)\n            except OSError: pass\nprint('accepted', '1 passed', 'OK')",
                "accepted 1 passed OK\n",
            ),
            attack(
                "55 a failure after the answer",
                "print(42)\nraise ValueError",
                &[Ending::Exited(1)],
            )
            .prints("42\n"),
            attack(
                "55 a failure without an answer",
                "raise ValueError",
                &[Ending::Exited(1)],
            )
            .prints(""),
            attack(
                "a failure that says that it was none",
                "import os, sys\nprint(42)\nsys.stderr.write('exit status 0')\nos._exit(3)",
                &[Ending::Exited(3)],
            ),
            attack(
                "a hidden exit code",
                "import sys\nprint(42)\nsys.exit(256 + 3)",
                &[Ending::Exited(3)],
            ),
            attack(
                "a lie about memory",
                "import os\nos.write(2, b'MemoryError')\nos._exit(1)",
                &[Ending::MemoryLimit],
            ),
            harmless(
                "a lie about memory in a program that ends well",
                "import os\nos.write(2, b'MemoryError')",
                "",
            ),
            attack(
                "the end swallowed in a thread",
                "import os, threading\nthreading.Thread(target=lambda: os._exit(9)).start()\nimport time; time.sleep(2)",
                &[Ending::Exited(9)],
            ),
            harmless(
                "60 every answer there is",
                "for i in range(1000): print(i, end=' ')",
                (0..1000).map(|i| format!("{i} ")).collect::<String>(),
            ),
            harmless(
                "61 numbers that are none",
                "print(float('nan'), float('inf'), 1e999, -0.0)",
                "nan inf inf -0.0\n",
            ),
        ],
    );
    let text = |o: &rlef_sandbox::Outcome| crate::text(&o.stdout);
    // 58: two runs of the same program cannot tell which they are, but by the clock.
    let which = "import os, sys, random, threading, resource\nx = object()\nprint(os.getpid(), os.getppid(), id(x), hash('a'), random.random(), threading.get_ident(), os.stat('/tmp').st_ino, os.stat('/tmp/main.py').st_ino, sorted(os.listdir('/proc'))[:5], os.getloadavg() if 0 else 0, os.uname().nodename, os.times()[2:4])\nopen('/tmp/counter', 'a').write('x')\nprint(os.stat('/tmp/counter').st_size)";
    let which = harmless("58 which run is this?", which, "").any_output();
    let first = text(&arena.stage(&which));
    for _ in 0..3 {
        assert_eq!(text(&arena.stage(&which)), first);
    }

    // 59: a program that is none fails wherever it is run, and before.
    for source in [
        "def f(:",
        "import no_such_module",
        "from math import no_such_name",
        "solve(1)",
        "exit(1)",
    ] {
        let attack = attack("59 no program", source, &[Ending::Exited(1)]).prints("");
        arena.stage(&attack);
        assert_eq!(
            arena.check(&attack).is_some(),
            source.starts_with("def"),
            "{source}"
        );
    }
}
