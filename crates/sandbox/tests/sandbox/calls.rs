//! Functions of a program: called with data, their result read as data.

use rlef_sandbox::{Called, Ending, Fault, Limits, Returned, Value};

use crate::{limits, sandbox, text};

fn call(source: &str, function: &str, arguments: &str) -> Called {
    for _ in 0..20 {
        match sandbox().call(source, function, arguments, &limits()) {
            Err(Fault::Overloaded { .. }) => {}
            other => return other.expect("the sandbox works"),
        }
    }
    panic!("the machine is too busy for this test");
}

/// What `f` returns, when all goes well.
fn returned(source: &str, arguments: &str) -> Value {
    let called = call(source, "f", arguments);
    let said = text(&called.outcome.stderr);
    assert_eq!(called.outcome.ending, Ending::Exited(0), "{said}");
    match called.returned {
        Returned::Value(value) => value,
        other => panic!("{other:?}: {said}"),
    }
}

fn int(n: i64) -> Value {
    let sign = if n < 0 { "-" } else { "" };
    Value::Int(format!("{sign}{:x}", n.unsigned_abs()))
}

fn string(s: &str) -> Value {
    Value::Str(s.into())
}

#[test]
fn arguments_go_in_and_values_come_out() {
    let same = |json: &str| returned("def f(*a): return list(a)", json);
    assert_eq!(
        same(r#"[1, -2, true, null, 0.5, "aé", [], {"k": [3]}]"#),
        Value::List(vec![
            int(1),
            int(-2),
            Value::Bool(true),
            Value::None,
            Value::Float(0.5),
            string("aé"),
            Value::List(vec![]),
            Value::Dict(vec![(string("k"), Value::List(vec![int(3)]))]),
        ])
    );
    let large = Value::Int(format!("1{}", "0".repeat(250)));
    assert_eq!(returned("def f(n): return 1 << 1000", "[0]"), large);
    assert_eq!(
        returned(
            "def f(): return (1, {2}, b'\\xff', float('-inf'), object())",
            "[]"
        ),
        Value::Tuple(vec![
            int(1),
            Value::Set(vec![int(2)]),
            Value::Bytes(vec![255]),
            Value::Float(f64::NEG_INFINITY),
            Value::Object("object".into()),
        ])
    );
}

#[test]
fn functions_are_found_where_people_put_them() {
    let method = "class Solution:\n    def f(self, n): return n + 1\n";
    assert_eq!(returned(method, "[1]"), int(2));
    let called = call(method, "Solution.f", "[1]");
    assert_eq!(called.returned, Returned::Value(int(2)));
    let main = "def f(n): return n\nif __name__ == '__main__': print(f(int(input())))";
    let called = call(main, "f", "[5]");
    assert_eq!(called.returned, Returned::Value(int(5)));
    assert_eq!(called.outcome.stdout, b"");
    let called = call("def g(): pass", "f", "[]");
    assert_eq!(called.outcome.ending, Ending::Exited(1));
    assert_eq!(called.returned, Returned::Nothing);
    let said = text(&called.outcome.stderr);
    assert!(
        said.ends_with("NameError: the program defines no f\n"),
        "{said}"
    );
    let dataclass = "import dataclasses, pickle\n@dataclasses.dataclass\nclass P:\n    x: int\n\
                     def f(): return pickle.loads(pickle.dumps(P(3))).x";
    assert_eq!(returned(dataclass, "[]"), int(3));
}

#[test]
fn a_program_that_fails_returns_nothing() {
    for (source, status) in [
        ("def f(): return 1 / 0", 1),
        ("import sys\ndef f(): sys.exit(0)", 0),
        ("import os\ndef f(): os._exit(0)", 0),
        ("import sys\nsys.exit(0)\ndef f(): return 1", 0),
        ("def f(: return 1", 1),
        ("def f():\n    x = []\n    x.append(x)\n    return x", 1),
        (
            "def f():\n    x = []\n    for _ in range(5000): x = [x]\n    return x",
            1,
        ),
    ] {
        let called = call(source, "f", "[]");
        assert_eq!(called.outcome.ending, Ending::Exited(status), "{source}");
        assert_eq!(called.returned, Returned::Nothing, "{source}");
    }
    let called = call("def f():\n    while True: pass", "f", "[]");
    assert_eq!(called.outcome.ending, Ending::CpuLimit);
    assert_eq!(called.returned, Returned::Nothing);
    let called = call(
        "import os\ndef f():\n    while True: os.write(3, b'x' * 4096)",
        "f",
        "[]",
    );
    assert_eq!(called.outcome.ending, Ending::OutputLimit);
}

/// What these classes claim to be equal to, to print as or to turn into makes no difference: what was returned is what
/// they hold as the built-in type that they derive from, or an object that is equal to nothing.
#[test]
fn values_are_what_they_hold_and_not_what_they_say() {
    let liar = |base: &str, held: &str| {
        let source = format!(
            "class L({base}):\n\
             \x20   __eq__ = lambda s, o: True\n\
             \x20   __ne__ = lambda s, o: False\n\
             \x20   __hash__ = lambda s: 7\n\
             \x20   __repr__ = __str__ = lambda s: '42'\n\
             \x20   __int__ = __index__ = lambda s: 42\n\
             \x20   __float__ = lambda s: 42.0\n\
             \x20   __len__ = lambda s: 1\n\
             \x20   __bool__ = lambda s: True\n\
             \x20   __iter__ = lambda s: iter([42])\n\
             \x20   __getitem__ = lambda s, i: 42\n\
             \x20   __reduce__ = lambda s: (int, (42,))\n\
             \x20   __add__ = __radd__ = lambda s, o: 42\n\
             \x20   __class__ = int\n\
             \x20   items = lambda s: [(1, 42)]\n\
             \x20   encode = lambda s, *a: b'42'\n\
             def f(): return L({held})"
        );
        returned(&source, "[]")
    };
    assert_eq!(liar("object", ""), Value::Object("L".into()));
    assert_eq!(liar("int", "7"), int(7));
    assert_eq!(liar("float", "0.5"), Value::Float(0.5));
    assert_eq!(liar("str", "'no'"), string("no"));
    assert_eq!(liar("bytes", "b'no'"), Value::Bytes(b"no".to_vec()));
    assert_eq!(liar("list", "[1, 2]"), Value::List(vec![int(1), int(2)]));
    assert_eq!(liar("tuple", "(1, 2)"), Value::Tuple(vec![int(1), int(2)]));
    assert_eq!(liar("set", "{1}"), Value::Set(vec![int(1)]));
    assert_eq!(liar("dict", "{1: 2}"), Value::Dict(vec![(int(1), int(2))]));
}

#[test]
fn whatever_else_comes_through_the_pipe_is_no_value() {
    for (write, then) in [
        ("b'garbage'", "1"),
        ("(3).to_bytes(8, 'little') + b'i0x2a;'", "1"),
        ("(6).to_bytes(8, 'little') + b'i0x2a;'", "1"),
    ] {
        let source = format!("import os\ndef f():\n    os.write(3, {write})\n    return {then}");
        let called = call(&source, "f", "[]");
        assert_eq!(called.returned, Returned::Garbled, "{write}");
    }
    // A thread that writes once more after the function has returned.
    let late = "import os, threading, time\n\
                def late():\n    time.sleep(0.2)\n    os.write(3, b'N')\n\
                def f():\n    threading.Thread(target=late).start()\n    return 1";
    assert_eq!(call(late, "f", "[]").returned, Returned::Garbled);
    // Its own answer, sent by hand, is an answer like any other; only its end must fit.
    let by_hand = "import os\ndef f():\n    os.write(3, (6).to_bytes(8, 'little') + b'i0x2a;')\n    os._exit(0)";
    assert_eq!(call(by_hand, "f", "[]").returned, Returned::Value(int(42)));
}

#[test]
fn stdin_holds_nothing_but_an_end() {
    let source = "import sys, os\ndef f(*a): return [sys.stdin.read(), os.read(0, 100)]";
    let empty = Value::List(vec![string(""), Value::Bytes(vec![])]);
    assert_eq!(returned(source, "[\"secret\"]"), empty);
    // What is printed is only to be shown.
    let called = call("def f():\n    print('hello')\n    return 1", "f", "[]");
    assert_eq!(called.outcome.stdout, b"hello\n");
}

#[test]
fn only_the_descriptors_of_a_call_are_open() {
    let source = "import os\ndef f(): return sorted(int(n) for n in os.listdir('/proc/self/fd'))";
    // The last one is the folder that is being read.
    let open = |n: &[i64]| Value::List(n.iter().copied().map(int).collect());
    assert_eq!(returned(source, "[]"), open(&[0, 1, 2, 3, 4]));
    let candidate = sandbox().candidate(source);
    for _ in 0..3 {
        let called = candidate.call("f", "[]", &limits()).expect("it runs");
        assert_eq!(called.returned, Returned::Value(open(&[0, 1, 2, 3, 4])));
    }
    let candidate = sandbox().candidate("import os\nprint(sorted(os.listdir('/proc/self/fd')))");
    for _ in 0..3 {
        let outcome = candidate.run(b"", &limits()).expect("it runs");
        assert_eq!(text(&outcome.stdout), "['0', '1', '2', '3']\n");
    }
}

#[test]
fn arguments_that_are_no_json_array_are_our_fault() {
    for wrong in ["", "1", "[NaN]", "[1"] {
        let result = sandbox().call("def f(): pass", "f", wrong, &limits());
        assert!(matches!(result, Err(Fault::Call { .. })), "{result:?}");
    }
}

/// Nobody's program has run yet when the arguments are read.
#[test]
fn arguments_that_the_interpreter_cannot_read_are_our_fault() {
    let deep = format!("[{}{}]", "[".repeat(20_000), "]".repeat(20_000));
    let large = format!("[\"{}\"]", "x".repeat(60 << 20));
    let little = Limits {
        memory_bytes: 16 << 20,
        ..limits()
    };
    for (arguments, limits) in [(&deep, limits()), (&large, little)] {
        for source in ["def f(*a): return 1", "1 / 0", "while True: pass"] {
            let result = sandbox().call(source, "f", arguments, &limits);
            let said = match &result {
                Err(fault @ Fault::Call { .. }) => fault.to_string(),
                Err(Fault::Overloaded { .. }) => continue,
                other => panic!("{source}: {other:?}"),
            };
            assert!(said.contains("cannot read the arguments"), "{said}");
        }
    }
    // Python 3.11 and later, and the last ones before, read no longer whole numbers.
    let long = format!("[{}]", "1".repeat(5000));
    match sandbox().call("def f(n): return n > 0", "f", &long, &limits()) {
        Ok(called) => assert_eq!(called.returned, Returned::Value(Value::Bool(true))),
        Err(fault) => assert!(
            matches!(fault, Fault::Call { .. } | Fault::Overloaded { .. }),
            "{fault}"
        ),
    }
}

#[test]
fn a_program_cannot_pass_its_failure_off_as_ours() {
    for (source, returned) in [
        (
            "import os\nos.write(3, b'\\xff' * 8 + b'RecursionError')\nos._exit(66)",
            Returned::Garbled,
        ),
        (
            "import os\ndef f():\n    os.write(3, b'\\xff' * 8)\n    return 1",
            Returned::Garbled,
        ),
        ("import os\nos._exit(66)", Returned::Nothing),
        ("import os\nos.kill(os.getpid(), 9)", Returned::Nothing),
        ("x = bytearray(1 << 40)", Returned::Nothing),
        ("while True: pass", Returned::Nothing),
    ] {
        let called = call(source, "f", "[]");
        assert_eq!(called.returned, returned, "{source}");
        let ended_well = called.outcome.ending == Ending::Exited(0);
        assert_eq!(
            ended_well,
            source.contains("def"),
            "{source}: {:?}",
            called.outcome
        );
    }
}

/// The code is written for the next run, under limits that are the program's.
#[test]
fn code_that_cannot_be_kept_is_nobodys_failure() {
    let long: String = (0..4000)
        .map(|n| format!("x{n} = 'constant number {n}'\n"))
        .collect();
    for (source, file_bytes) in [
        ("print(1)", 0),
        ("print(1)", 1),
        (&*format!("{long}print(1)"), 64 << 10),
    ] {
        let tight = Limits {
            file_bytes,
            ..limits()
        };
        let candidate = sandbox().candidate(source);
        for _ in 0..3 {
            let run = || candidate.run(b"", &tight);
            let outcome = run().or_else(|_| run()).expect("it runs");
            assert_eq!(
                (outcome.ending, text(&outcome.stdout).as_str()),
                (Ending::Exited(0), "1\n"),
                "{file_bytes}: {}",
                text(&outcome.stderr)
            );
        }
    }
}

/// Compiled once or each time: the same outcome, to the letter.
#[test]
fn candidates_run_as_programs_do() {
    for source in [
        "n = int(input())\nprint(n * 2)\n",
        "def g(n):\n    return 1 // (n - 2)\n\nprint(g(int(input())))\n",
        "import sys\nprint(__name__, __file__, sys.argv, open(__file__).read())\nraise SystemExit(3)",
        "def broken(:\n",
        "# -*- coding: latin-1 -*-\nprint('é')",
        "x = '\\0'\nprint(x)",
        "print(__annotations__)\nx: int = 3\nprint(__annotations__, __doc__)",
        "'''doc'''\nprint(__doc__)\nassert int(input()) != 2, 'two'",
        "print(1)\nimport os\nos.kill(os.getpid(), 9)",
    ] {
        let candidate = sandbox().candidate(source);
        for stdin in ["1", "2", "3", "2"] {
            let (mut one, mut other) = (None, None);
            for _ in 0..20 {
                one = candidate.run(stdin.as_bytes(), &limits()).ok();
                other = sandbox().run(source, stdin.as_bytes(), &limits()).ok();
                if one.is_some() && other.is_some() {
                    break;
                }
            }
            let (one, other) = (one.expect("it runs"), other.expect("it runs"));
            assert_eq!(one.ending, other.ending, "{source}");
            assert_eq!(text(&one.stdout), text(&other.stdout), "{source}");
            assert_eq!(text(&one.stderr), text(&other.stderr), "{source}");
        }
    }
}

#[test]
fn a_candidate_cannot_pass_anything_on_through_its_code() {
    // The file for compiled code is closed before the program begins, and nobody can write to it afterwards.
    let source = "import os\n\
                  for n in range(3, 200):\n\
                  \x20   try:\n\
                  \x20       os.write(n, b'x')\n\
                  \x20       print('wrote to', n)\n\
                  \x20   except OSError:\n\
                  \x20       pass\n\
                  print('end')";
    let candidate = sandbox().candidate(source);
    for _ in 0..3 {
        let outcome = candidate.run(b"", &limits()).expect("it runs");
        assert_eq!(text(&outcome.stdout), "end\n");
    }
}
