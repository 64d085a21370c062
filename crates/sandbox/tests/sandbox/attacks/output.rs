//! Hostile output: what arrives is what was written, whatever it is and however it was written, up to the cap.
//! Rows 22 to 24, 27 to 29 and 62 of the catalogue and more of their kind.

use rlef_sandbox::Ending;

use super::{Arena, attack, harmless, stage_all, stage_group};

#[test]
fn output_is_bounded_and_taken_as_it_comes() {
    stage_group("output");
}

const FLOOD: &[Ending] = &[Ending::OutputLimit];

pub(super) fn all(arena: &Arena) {
    let cap = 1 << 18;
    let floods = [
        ("22 stdout", "while True: print('x' * 1000)"),
        (
            "23 stderr",
            "import sys\nwhile True: print('x' * 1000, file=sys.stderr)",
        ),
        (
            "24 one line",
            "import sys; sys.stdout.write('x' * (50 << 20))",
        ),
        (
            "a byte at a time",
            "import os\nwhile True: os.write(1, b'x')",
        ),
        (
            "from every process",
            "import os\nfor _ in range(3): os.fork()\nwhile True: os.write(1, b'x' * 5000)",
        ),
        (
            "by sendfile",
            "import os\nf = os.open('/dev/zero', 0)\nos.truncate('/tmp/main.py', 1 << 20)\nf = os.open('/tmp/main.py', 0)\nwhile True: os.sendfile(1, f, 0, 1 << 20)",
        ),
        (
            "by writev",
            "import os\nwhile True: os.writev(1, [b'x' * 100] * 1000)",
        ),
        (
            "in packets",
            "import fcntl, os\nfcntl.fcntl(1, 4, os.O_DIRECT | 1)\nwhile True: os.write(1, b'x' * 100)",
        ),
        (
            "without waiting",
            "import os\nos.set_blocking(1, False)\nwhile True:\n    try: os.write(1, b'x' * 70000)\n    except BlockingIOError: pass",
        ),
        (
            "by name",
            "while True: open('/proc/self/fd/1', 'w').write('x' * 4096)",
        ),
        (
            "at the very end",
            "import atexit, os\natexit.register(lambda: os.write(1, bytes(1 << 20)))",
        ),
        (
            "an endless traceback",
            "class E(Exception):\n    def __str__(self): return 'x' * (1 << 20)\nraise E",
        ),
        (
            "a daemon's",
            "import os\nif os.fork() == 0:\n    os.setsid()\n    while True: os.write(1, b'x' * 4096)\nimport time; time.sleep(5)",
        ),
    ];
    for (name, source) in floods {
        let outcome = arena.stage(&attack(name, source, FLOOD).output(cap));
        let longest = outcome.stdout.len().max(outcome.stderr.len());
        assert_eq!(longest as u64, cap, "{name}");
    }
    // The supervisor holds no more than it must.
    let most = std::fs::read_to_string("/proc/self/status").expect("there");
    let most = most.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let most = most.and_then(|l| l.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    assert!(most.is_some_and(|kib| kib < 64 << 10), "{most:?}");

    let right: Vec<u8> = (0..40_000)
        .flat_map(|i| format!("{i}\n").into_bytes())
        .collect();
    let every_byte: Vec<u8> = (0..=255).collect();
    stage_all(arena, [
        harmless("62 two hundred kilobytes of right output", "for i in range(40_000): print(i)", &right),
        harmless("a hundred thousand writes", "import os\nfor _ in range(100_000): os.write(1, b'x')", "x".repeat(100_000)),
        harmless("29 every byte", "import os; os.write(1, bytes(range(256)))", &every_byte),
        attack("29 half a character", "print('a', flush=True)\nprint('\\ud800')", &[Ending::Exited(1)]).prints("a\n"),
        harmless("what a terminal would obey", "print('\\x1b]0;title\\x07\\x1b[2J\\x1b[1;31m\\x1bc\\r\\b\\x7f\\x9b6n\\x1bP+q\\x1b\\\\', end='')", "\u{1b}]0;title\u{7}\u{1b}[2J\u{1b}[1;31m\u{1b}c\r\u{8}\u{7f}\u{9b}6n\u{1b}P+q\u{1b}\\"),
        harmless("text that runs backwards", "print('\\u202eright\\u202c\\u200b\\ufeff\\u2066')", "\u{202e}right\u{202c}\u{200b}\u{feff}\u{2066}\n"),
        harmless("28 closed, then opened again", "import os\nos.write(1, b'a')\nk = os.dup(1); os.close(1)\nassert os.open('/tmp/o', os.O_WRONLY | os.O_CREAT) == 1\nos.write(1, b'lost'); os.dup2(k, 1); os.write(1, b'b')", "ab"),
        harmless("28 opened again by name", "import os\nos.close(0)\nf = os.open('/proc/self/fd/1', os.O_WRONLY | os.O_TRUNC | os.O_APPEND)\nos.close(1)\nos.write(f, b'a')", "a"),
        harmless("stdout and stderr exchanged", "import os\nos.dup2(1, 9); os.dup2(2, 1); os.dup2(9, 2)\nos.write(2, b'out'); os.write(1, b'error')", "out"),
        harmless("its own output read back", "import os\nos.write(1, b'one two')\nf = os.open('/proc/self/fd/1', os.O_RDONLY | os.O_NONBLOCK)\ntry: os.read(f, 3)\nexcept OSError: pass\nprint(end='')", "").any_output(),
        harmless("a descriptor kept by a child", "import os, time\nif os.fork() == 0: time.sleep(100)\nprint('done')", "done\n"),
        harmless("a child that writes later than its parent ends", "import os, time\nif os.fork() == 0:\n    time.sleep(0.5); os.write(1, b'late'); os._exit(0)\nos.write(1, b'early')", "early"),
        harmless("both outputs in turn, from two threads", "import os, threading\nt = threading.Thread(target=lambda: [os.write(2, b'e' * 999) for _ in range(200)])\nt.start()\nfor _ in range(200): os.write(1, b'o' * 999)\nt.join()", "o".repeat(999 * 200)),
        harmless("a pipe in packets", "import fcntl, os\nfcntl.fcntl(1, 4, os.O_DIRECT | 1)\nfor i in range(10): os.write(1, bytes([65 + i]) * 5000)", (0..10_u8).flat_map(|i| vec![65 + i; 5000]).collect::<Vec<_>>()),
        harmless("calls that move pages", "import ctypes, os\nc = ctypes.CDLL(None)\nr, w = os.pipe(); os.write(w, b'x')\nb = ctypes.create_string_buffer(16)\nprint(c.splice(r, 0, 1, 0, 1, 0), c.tee(r, 1, 1, 0), c.vmsplice(1, b, 1, 0))", "-1 -1 -1\n"),
        harmless("stdin as an output", "import os\nfor how in (os.O_WRONLY, os.O_RDWR):\n    try: os.write(os.open('/proc/self/fd/0', how), b'x'); print('written')\n    except OSError: pass\ntry: os.truncate('/proc/self/fd/0', 0); print('cut')\nexcept OSError: pass\nprint(open(0).read())", "whole\n").reads("whole"),
        harmless("27 three megabytes that nobody reads", "print('done')", "done\n").reads(vec![b'x'; 3 << 20]),
        harmless("27 read from the end, and again", "import os\nos.lseek(0, 0, 2)\nprint(os.read(0, 9), os.pread(0, 3, 1))", "b'' b'bcd'\n").reads("abcdef"),
        harmless("28 nothing but closed descriptors", "import os\nos.closerange(0, 256)\nos._exit(0)", ""),
        harmless("a reader that is in no hurry", "import os, time\nfor _ in range(5): os.write(1, b'x' * 60000); time.sleep(0.02)", "x".repeat(300_000)),
    ]);
    closed_outputs_cost_the_supervisor_nothing(arena);
}

fn closed_outputs_cost_the_supervisor_nothing(arena: &Arena) {
    let source = "import os, time\nos.close(1); os.close(2)\ntime.sleep(1)";
    let before = own_cpu();
    arena.run(&harmless("closed outputs", source, ""));
    let spent = own_cpu() - before;
    assert!(spent.as_millis() < 300, "{spent:?}");
}

fn own_cpu() -> std::time::Duration {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("there");
    let nanoseconds = stat.split(' ').next().and_then(|n| n.parse().ok());
    std::time::Duration::from_nanos(nanoseconds.expect("a number"))
}
