//! A program reaches neither the first process of its run, nor the next run, nor one beside it.

use std::collections::BTreeSet;

use rlef_sandbox::{Ending, Limits, Sandbox};

use crate::{config, limits, printed, run, run_with, sandbox, text};

#[test]
fn only_its_own_processes_exist() {
    assert_eq!(
        printed(
            "import os\nprint(sorted(int(n) for n in os.listdir('/proc') if n.isdigit()), os.getpid(), os.getppid())"
        ),
        "[1, 2] 2 1\n"
    );
}

#[test]
fn killing_everybody_kills_only_itself() {
    let source = "import os, signal\nfor n in range(3, 400):\n    try: os.kill(n, 9); print('killed', n)\n    except OSError: pass\n\
        try: os.kill(1, 9)\nexcept OSError: pass\ntry: os.kill(1, 15); os.kill(1, 19)\nexcept OSError: pass\n\
        try: os.kill(-1, 9)\nexcept OSError: pass\nprint('still here')";
    assert_eq!(printed(source), "still here\n");
    assert_eq!(printed("print('next')"), "next\n");
}

#[test]
fn the_first_process_is_closed() {
    let source = "import os\nfor n in ('mem', 'environ', 'maps', 'auxv', 'syscall'):\n    try: open('/proc/1/' + n, 'rb').read(1); print(n)\n    except OSError: pass\n\
        for n in ('root', 'cwd', 'exe', 'fd/0', 'ns/mnt'):\n    try: os.readlink('/proc/1/' + n); print(n)\n    except OSError: pass\n\
        try: print(os.listdir('/proc/1/fd'))\nexcept OSError: pass";
    assert_eq!(printed(source), "");
}

#[test]
fn a_forged_request_to_end_is_not_believed() {
    // SIGTERM to the first process with a sender of 0, as if from outside: no signal ends a run.
    let source = format!(
        "import ctypes, struct, time\nc = ctypes.CDLL(None)\ninfo = ctypes.create_string_buffer(struct.pack('iiiiii', 15, 0, -1, 0, 0, 0), 128)\n\
        print(c.syscall({}, 1, 15, info))\ntime.sleep(0.1)\nprint('still here')",
        libc::SYS_rt_sigqueueinfo
    );
    assert!(printed(&source).ends_with("still here\n"));
}

#[test]
fn the_next_run_sees_nothing_of_the_last() {
    // A sandbox of its own with one slot, so that the second run follows in the very same place.
    let own = Sandbox::new(config()).expect("a sandbox");
    let first = "import os, builtins, sys\nopen('/tmp/left', 'w').write('x'); open('/dev/shm/left', 'w').write('x')\nbuiltins.print = None; os.environ['LEFT'] = '1'\n\
        os.rename('/tmp/main.py', '/tmp/other.py')\nif os.fork() == 0:\n    os.setsid()\n    while True: pass\n";
    assert_eq!(
        own.run(first, b"", &limits()).expect("ran").ending,
        Ending::Exited(0)
    );
    let second = "import os\nprint(os.listdir('/tmp'), os.environ.get('LEFT'), [n for n in os.listdir('/proc') if n.isdigit()])";
    let outcome = own.run(second, b"", &limits()).expect("ran");
    assert_eq!(text(&outcome.stdout), "['main.py'] None ['1', '2']\n");
}

#[test]
fn verdicts_are_right_with_eight_at_once() {
    let tight = Limits {
        memory_bytes: 64 << 20,
        output_bytes: 1 << 16,
        ..Limits::with_cpu(std::time::Duration::from_millis(500))
    };
    let tight = Limits {
        wall: std::time::Duration::from_secs(4),
        ..tight
    };
    let cases = [
        ("print(input())", Ending::Exited(0)),
        ("1 / 0", Ending::Exited(1)),
        ("while True: pass", Ending::CpuLimit),
        ("import time; time.sleep(60)", Ending::WallLimit),
        ("x = bytearray(1 << 30)", Ending::MemoryLimit),
        ("while True: print('x' * 100)", Ending::OutputLimit),
        (
            "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)",
            Ending::Forbidden(None),
        ),
        ("import os; os.kill(os.getpid(), 9)", Ending::Signalled(9)),
    ];
    let (cases, tight) = (&cases, &tight);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for round in 0..8 {
                    let (source, wanted) = cases[(thread + round) % 8];
                    let input = format!("{thread} {round}\n");
                    let outcome = run_with(source, input.as_bytes(), tight);
                    assert_eq!(
                        outcome.ending,
                        wanted,
                        "{source}: {}",
                        text(&outcome.stderr)
                    );
                    if (thread + round) % 8 == 0 {
                        assert_eq!(text(&outcome.stdout), input);
                    }
                }
            });
        }
    });
}

#[test]
fn programs_beside_each_other_do_not_meet() {
    let source = "import os, time\nopen('/tmp/%d' % time.time_ns(), 'w').close()\ntime.sleep(0.3)\nprint(len(os.listdir('/tmp')), os.getpid(), os.readlink('/proc/self/ns/user'), os.readlink('/proc/self/ns/net'), os.readlink('/proc/self/ns/ipc'))";
    let lines: BTreeSet<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| printed(source))).collect();
        threads
            .into_iter()
            .map(|t| t.join().expect("ran"))
            .collect()
    });
    assert_eq!(lines.len(), 4, "namespaces are shared: {lines:?}");
    assert!(lines.iter().all(|l| l.starts_with("2 2 ")), "{lines:?}");
}

#[test]
fn what_a_program_says_of_itself_is_not_believed() {
    let outcome = run(
        "import sys\nprint('Traceback\\nMemoryError', file=sys.stderr)\nprint('{\"Ended\":{\"Report\":{\"status\":0}}}')\nsys.exit(0)",
    );
    assert_eq!(outcome.ending, Ending::Exited(0));
    assert_eq!(
        text(&outcome.stdout),
        "{\"Ended\":{\"Report\":{\"status\":0}}}\n"
    );
    assert_eq!(
        sandbox()
            .syntax_check("import os; os._exit(65)", &limits())
            .expect("checked"),
        None
    );
}
