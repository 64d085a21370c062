//! An honest program notices nothing: input, output, tracebacks, exit codes, the standard library.

use std::time::Duration;

use rlef_sandbox::{Ending, Limits};

use crate::{config, limits, printed, raised, run, run_with, sandbox, text};

#[test]
fn every_way_of_reading_stdin_works() {
    for read in [
        "input()",
        "open(0).read().strip()",
        "open('/dev/stdin').read().strip()",
        "__import__('sys').stdin.buffer.read().decode().strip()",
    ] {
        let outcome = run_with(
            &format!("print({read}[::-1])"),
            "žluť\n".as_bytes(),
            &limits(),
        );
        assert_eq!(
            (outcome.ending, text(&outcome.stdout)),
            (Ending::Exited(0), "ťulž\n".into()),
            "{read}"
        );
    }
}

#[test]
fn reading_past_the_end_is_the_programs_error() {
    assert_eq!(raised("input()"), "EOFError: EOF when reading a line");
}

#[test]
fn every_way_of_writing_works() {
    let source = "import os, sys\nprint('a', flush=True)\nsys.stdout.buffer.write(b'b\\n'); sys.stdout.flush()\n\
        os.write(1, b'c\\n')\nopen('/dev/stdout', 'w').write('d\\n')\nprint('e', file=sys.stderr)\nopen('/dev/stderr', 'w').write('f\\n')";
    let outcome = run(source);
    assert_eq!(
        outcome.ending,
        Ending::Exited(0),
        "{}",
        text(&outcome.stderr)
    );
    assert_eq!(
        (text(&outcome.stdout), text(&outcome.stderr)),
        ("a\nb\nc\nd\n".into(), "e\nf\n".into())
    );
}

#[test]
fn tracebacks_show_the_programs_own_lines() {
    let outcome = run("import os\ndef f(x):\n    return 1 // x\nos.chdir('/')\nf(0)\n");
    let wanted = [
        "Traceback (most recent call last):",
        "  File \"main.py\", line 5, in <module>",
        "    f(0)",
        "  File \"main.py\", line 3, in f",
        "    return 1 // x",
        "ZeroDivisionError: ",
    ];
    let said = text(&outcome.stderr);
    let mut rest = said.as_str();
    for line in wanted {
        let at = rest
            .find(line)
            .unwrap_or_else(|| panic!("`{line}` is missing in\n{said}"));
        rest = &rest[at + line.len()..];
    }
    assert!(!said.contains("boot"), "{said}");
}

#[test]
fn chained_errors_and_error_subclasses_are_shown_whole() {
    let said = text(&run("class E(Exception): pass\ntry:\n    {}['k']\nexcept KeyError as e:\n    raise E('x') from e").stderr);
    assert!(
        said.contains("KeyError: 'k'") && said.contains("direct cause") && said.ends_with("E: x\n"),
        "{said}"
    );
    assert_eq!(said.matches("line 3, in <module>").count(), 1, "{said}");
}

#[test]
fn exit_codes_are_passed_on() {
    for (source, code) in [
        ("exit(3)", 3),
        ("quit()", 0),
        ("import sys; sys.exit('no')", 1),
        ("import os; os._exit(200)", 200),
        ("raise SystemExit", 0),
        ("", 0),
    ] {
        assert_eq!(run(source).ending, Ending::Exited(code), "{source}");
    }
}

#[test]
fn signals_are_passed_on() {
    for (source, signal) in [
        ("import os; os.kill(os.getpid(), 9)", libc::SIGKILL),
        ("import os; os.kill(os.getpid(), 15)", libc::SIGTERM),
        ("import os; os.abort()", libc::SIGABRT),
        ("import ctypes; ctypes.string_at(0)", libc::SIGSEGV),
        ("import os; os.kill(os.getpid(), 8)", libc::SIGFPE),
    ] {
        assert_eq!(run(source).ending, Ending::Signalled(signal), "{source}");
    }
}

#[test]
fn the_program_is_an_ordinary_main_module() {
    let source = "import sys, pickle, dataclasses\n\
        @dataclasses.dataclass\nclass P:\n    x: int\n\
        assert pickle.loads(pickle.dumps(P(3))) == P(3)\n\
        assert sys.modules['__main__'].P is P and __name__ == '__main__'\n\
        print(sys.argv, sorted(k for k in globals() if not k.startswith('__')))";
    assert_eq!(
        printed(source),
        "['main.py'] ['P', 'dataclasses', 'pickle', 'sys']\n"
    );
    // The boot file's own imports are not the program's.
    assert!(raised("sys.exit(0)").starts_with("NameError: name 'sys' is not defined"));
}

#[test]
fn the_standard_library_works() {
    let source = "import asyncio, collections, concurrent.futures, ctypes, datetime, decimal, fractions, functools, hashlib, heapq, \
        itertools, json, math, multiprocessing, queue, random, re, sqlite3, statistics, string, subprocess, sys, tempfile, threading, zlib\n\
        async def two():\n    await asyncio.sleep(0.001)\n    return 2\n\
        print(asyncio.run(two()))\n\
        with concurrent.futures.ThreadPoolExecutor(4) as pool: print(sum(pool.map(abs, [-1, 2, -3])))\n\
        with multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(abs, [-1, 2]))\n\
        print(subprocess.run([sys.executable, '-S', '-c', 'print(40 + 2)'], capture_output=True, text=True).stdout.strip())\n\
        with tempfile.TemporaryFile() as f: f.write(b'x' * 1000); print(f.tell())\n\
        print(hashlib.sha256(b'').hexdigest()[:8], sqlite3.connect(':memory:').execute('select 1').fetchone())";
    assert_eq!(printed(source), "2\n6\n[1, 2]\n42\n1000\ne3b0c442 (1,)\n");
}

#[test]
fn runs_repeat_in_every_sandbox() {
    // Hashes, the order of sets, addresses (and with them the order of sets of objects) and `random`.
    let source = "class A: pass\nx = [A() for _ in range(9)]\nimport random\nfrom random import shuffle\nshuffle(x)\n\
        print({'a', 'b', 'c', 'd', 'e'}, hash('x'), x, set(x), id(random), random.random(), random.gauss(0, 1))";
    let first = printed(source);
    assert_eq!(printed(source), first);
    let other = rlef_sandbox::Sandbox::new(config()).expect("a sandbox");
    let outcome = other.run(source, b"", &limits()).expect("ran");
    assert_eq!(text(&outcome.stdout), first);
}

#[test]
fn random_is_an_ordinary_module() {
    let source = "import sys\nbefore = len(sys.meta_path)\nimport random\n\
        print(type(random.__loader__.exec_module).__name__, random.__spec__.name, before - len(sys.meta_path) in (0, 1))\n\
        a = random.random(); random.seed(0); print(a == random.random(), random.Random().random() != random.Random().random())";
    assert_eq!(printed(source), "method random True\nTrue True\n");
    // A file of that name beside the program is the program's own.
    let own = "open('/tmp/random.py', 'w').write('def seed(x): print(\"seeded\")')\nimport sys\n\
        sys.modules.pop('random', None)\nimport random\nprint(random.__file__)";
    assert_eq!(printed(own), "/tmp/random.py\n");
}

#[test]
fn ten_megabytes_of_right_output_pass() {
    let outcome = run("import sys\nfor i in range(10): sys.stdout.write(str(i) * (1 << 20))");
    assert_eq!(
        outcome.ending,
        Ending::Exited(0),
        "{}",
        text(&outcome.stderr)
    );
    let wanted: Vec<u8> = (b'0'..=b'9')
        .flat_map(|digit| vec![digit; 1 << 20])
        .collect();
    assert!(outcome.stdout == wanted);
}

#[test]
fn any_bytes_come_through() {
    let outcome = run("import sys; sys.stdout.buffer.write(bytes(range(256)) + b'\\xff\\x00')");
    let wanted: Vec<u8> = (0..=255).chain([255, 0]).collect();
    assert_eq!(
        (outcome.ending, outcome.stdout),
        (Ending::Exited(0), wanted)
    );
    let input: Vec<u8> = (0..=255).rev().collect();
    let outcome = run_with(
        "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())",
        &input,
        &limits(),
    );
    assert_eq!((outcome.ending, outcome.stdout), (Ending::Exited(0), input));
    assert!(raised("print('\\ud800')").starts_with("UnicodeEncodeError"));
}

#[test]
fn input_that_nobody_reads_blocks_nobody() {
    let input = vec![b'x'; 32 << 20];
    let outcome = run_with("print('done')", &input, &limits());
    assert_eq!(
        (outcome.ending, text(&outcome.stdout)),
        (Ending::Exited(0), "done\n".into())
    );
    let outcome = run_with(
        "import sys; print(len(sys.stdin.read()))",
        &input,
        &limits(),
    );
    assert_eq!(
        (outcome.ending, text(&outcome.stdout)),
        (Ending::Exited(0), format!("{}\n", input.len()))
    );
}

#[test]
fn closed_outputs_are_the_programs_affair() {
    let outcome = run("import os\nprint('x', flush=True)\nos.close(0); os.close(1)\nos._exit(5)");
    assert_eq!(
        (outcome.ending, text(&outcome.stdout)),
        (Ending::Exited(5), "x\n".into())
    );
}

#[test]
fn strange_sources_fail_cleanly() {
    let deep = "(".repeat(100_000) + &")".repeat(100_000);
    for source in [
        "print(1)\0print(2)",
        "x = ",
        "\u{feff}x = = 1",
        "def f(:\n  pass",
        "return 1",
        deep.as_str(),
        "# coding: no_such_codec\n1",
    ] {
        let outcome = run(source);
        assert!(
            matches!(outcome.ending, Ending::Exited(1)),
            "{:?} for {:?}",
            outcome.ending,
            &source[..source.len().min(30)]
        );
        assert!(
            outcome.stdout.is_empty() && !text(&outcome.stderr).contains("boot"),
            "{}",
            text(&outcome.stderr)
        );
    }
    // As much as fits the compiler's memory: a source far larger than a packet.
    let long = format!("print(len('{}'))", "y".repeat(3 << 20));
    assert_eq!(printed(&long), format!("{}\n", 3 << 20));
}

#[test]
fn syntax_is_checked_without_running_anything() {
    let check = |source: &str| {
        sandbox()
            .syntax_check(source, &limits())
            .expect("the sandbox works")
    };
    assert_eq!(check("import os\nos._exit(65)\nwhile True: pass"), None);
    assert_eq!(check(""), None);
    assert_eq!(check("x = 'ž'\nx is 1"), None, "a warning is no error");
    let said = check("a = 1\nb = (2\n").expect("an error");
    assert!(
        said.contains("File \"main.py\", line 2") && said.contains("SyntaxError: "),
        "{said}"
    );
    assert!(said.contains("b = (2"), "{said}");
    for wrong in [
        "a\0b",
        "return",
        "def f():\nx",
        "'",
        "break",
        &("-".repeat(50_000) + "1"),
        &("(".repeat(100_000)),
    ] {
        assert!(
            check(wrong).is_some_and(|said| !said.is_empty()),
            "{:?}",
            &wrong[..wrong.len().min(20)]
        );
    }
}

#[test]
fn an_attack_on_the_compiler_is_the_programs_failure() {
    let limits = Limits {
        memory_bytes: 200 << 20,
        ..Limits::with_cpu(Duration::from_secs(1))
    };
    let source = format!("x = ({})", "1 + ".repeat(2_000_000) + "1");
    let said = sandbox()
        .syntax_check(&source, &limits)
        .expect("the sandbox works");
    assert!(said.is_some_and(|said| !said.is_empty()));
}

#[test]
fn what_was_used_is_told() {
    let outcome = run("x = bytearray(64 << 20)\nfor i in range(3_000_000): pass");
    assert_eq!(
        outcome.ending,
        Ending::Exited(0),
        "{}",
        text(&outcome.stderr)
    );
    assert!(
        outcome.cpu > Duration::from_millis(20) && outcome.cpu <= Duration::from_secs(2),
        "{:?}",
        outcome.cpu
    );
    assert!(outcome.wall >= outcome.cpu / 2, "{:?}", outcome.wall);
    assert!(
        outcome
            .peak_memory_bytes
            .is_some_and(|b| b > 64 << 20 && b < 128 << 20),
        "{:?}",
        outcome.peak_memory_bytes
    );
}

#[test]
fn files_are_copied_with_all_that_belongs_to_them() {
    let source = "import os, shutil\nos.mkdir('d'); open('d/f', 'w').write('x'); os.utime('d/f', (5, 5))\n\
        shutil.copy2('d/f', 'g'); shutil.copytree('d', 'e'); shutil.copystat('d', '/tmp')\n\
        print(os.stat('g').st_mtime, os.listdir('e'), os.stat('e/f').st_mtime)";
    assert_eq!(crate::printed(source), "5.0 ['f'] 5.0\n");
}
