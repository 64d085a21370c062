//! Wrong programs that other graders let pass: each is judged on a real problem and must fail, and an honest program
//! judged the same way must pass. What a program prints or returns is all that counts, and the answers are nowhere
//! near it.

use std::path::Path;

use assert_cmd::Command;
use rlef_tests::rlef;
use serde_json::{Value, json};

struct Problem {
    folder: tempfile::TempDir,
    id: &'static str,
}

/// A problem in a file of its own.
fn problem(id: &'static str, function: Option<&str>) -> Problem {
    let folder = tempfile::tempdir().expect("a folder");
    // The sum of the squares of some numbers.
    let numbers = [vec![1, 2, 3], vec![], vec![-4], vec![10, 20], vec![7; 5]];
    let tests: Vec<Value> = numbers
        .iter()
        .map(|list: &Vec<i64>| {
            let sum: i64 = list.iter().map(|n| n * n).sum();
            let text: Vec<String> = list.iter().map(ToString::to_string).collect();
            let input = match function {
                Some(_) => json!([list]).to_string(),
                None => format!("{}\n", text.join(" ")),
            };
            json!({ "input": input, "output": sum.to_string() })
        })
        .collect();
    let mut line = json!({
        "id": id,
        "statement": "Sum the squares.",
        "time_limit_s": 2.0,
        "memory_limit_mb": 256,
        "checker": { "kind": if function.is_some() { "value" } else { "tokens" } },
        "public_tests": tests[..2],
        "private_tests": tests[2..],
    });
    if let Some(function) = function {
        line["function"] = function.into();
    }
    std::fs::write(folder.path().join("set.jsonl"), line.to_string()).expect("a file");
    Problem { folder, id }
}

/// The report on a program.
fn judged(problem: &Problem, program: &str) -> Value {
    let path = |name: &str| problem.folder.path().join(name);
    let text = |path: &Path| path.to_str().expect("plain text").to_owned();
    let file = path("main.py");
    std::fs::write(&file, program).expect("a file");
    let output = Command::from_std(rlef())
        .args(["judge", problem.id, &text(&file), "--json", "--problems"])
        .arg(text(&path("set.jsonl")))
        .output()
        .expect("rlef starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1)), "{program}\n{stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["accepted"], code == Some(0));
    assert_eq!(report["total"], 5, "{report}");
    report
}

fn fails(problem: &Problem, program: &str) {
    let report = judged(problem, program);
    assert_eq!(report["accepted"], false, "this passed:\n{program}");
    assert_ne!(report["passed"], 5, "this passed:\n{program}");
}

#[test]
fn programs_that_print_anything_but_the_answer_fail() {
    let problem = problem("squares", None);
    let honest = "print(sum(int(x) ** 2 for x in input().split()))";
    assert_eq!(judged(&problem, honest)["accepted"], true);
    for program in [
        // Ends before it has answered.
        "import sys\nsys.exit(0)",
        "import os\nos._exit(0)",
        "raise SystemExit",
        "",
        "def main(): pass",
        // Looks for the answers.
        "import sys\nf = sys._getframe()\nwhile f:\n    for v in list(f.f_locals.values()) + list(f.f_globals.values()):\n        print(v)\n    f = f.f_back",
        "import gc\nfor o in gc.get_objects():\n    if isinstance(o, dict) and ('output' in o or 'expected' in o): print(o.get('output', o.get('expected')))",
        "import os\nfor root, _, files in os.walk('/'):\n    for name in files:\n        if 'test' in name or 'out' in name or 'answer' in name:\n            try: print(open(os.path.join(root, name)).read())\n            except Exception: pass",
        "import os, sys\nprint(os.environ, sys.argv, os.getcwd(), os.listdir('.'))",
        "print(open('/proc/self/environ').read(), open('/proc/self/cmdline').read())",
        "import os\nfor n in range(3, 64):\n    try: print(os.read(n, 10000))\n    except OSError: pass",
        // Says that it has passed.
        "print('AC')\nprint('accepted')\nprint('{\"verdict\": \"accepted\", \"passed\": 5}')",
        "import sys\nsys.stderr.write('accepted (tests accepted: public 2 of 2, private 3 of 3)\\n')\nsys.exit(0)",
        "print('===== 5 passed in 0.01s =====')",
        // Changes what it thinks it is graded with.
        "import builtins\nbuiltins.print = lambda *a, **k: None\nbuiltins.all = builtins.any = lambda x: True\nstr.__eq__ = None",
        "import sys, types\nsys.modules['judge'] = types.ModuleType('judge')\nsys.modules['judge'].check = lambda *a: True",
        "class S(str):\n    __eq__ = lambda s, o: True\nprint(S('x'))",
        "import json\njson.dumps = lambda *a, **k: '14'\nprint(json.dumps(3))",
        "import atexit, os\natexit.register(lambda: os._exit(0))",
        // Prints every answer, or what comparers have taken for numbers.
        "for n in range(500): print(n)",
        "print(*range(500))",
        "print('nan')",
        "print('inf')",
        "print('1e999')",
        "print('14 or 0')",
        // Knows the public tests by heart.
        "print({'1 2 3': 14, '': 0}[input().strip()])",
        "print({'1 2 3': 14}.get(input().strip(), 0))",
        // Right, but fails.
        "print(sum(int(x) ** 2 for x in input().split()))\nraise SystemExit(1)",
        "print(sum(int(x) ** 2 for x in input().split()), flush=True)\nimport os\nos.abort()",
        "print(sum(int(x) ** 2 for x in input().split()), flush=True)\nwhile True: pass",
        "print(sum(int(x) ** 2 for x in input().split())",
        // Answers by what it can tell the tests apart with besides their input.
        "import os, time\nprint([14, 0, 16, 500, 245][os.getpid() % 5])",
        "import time\nprint([14, 0, 16, 500, 245][time.time_ns() % 5 if False else hash('x') % 5])",
        "import os\ntry: n = int(open('/tmp/n').read())\nexcept OSError: n = 0\nopen('/tmp/n', 'w').write(str(n + 1))\nprint([14, 0, 16, 500, 245][n])",
    ] {
        fails(&problem, program);
    }
}

#[test]
fn functions_that_return_anything_but_the_answer_fail() {
    let problem = problem("squares-f", Some("squares"));
    for honest in [
        "def squares(numbers): return sum(n * n for n in numbers)",
        "class Solution:\n    def squares(self, numbers):\n        return sum(n * n for n in numbers)",
        "print('thinking')\ndef squares(numbers):\n    print('still')\n    return sum(n * n for n in numbers)",
    ] {
        assert_eq!(judged(&problem, honest)["accepted"], true, "{honest}");
    }
    let wrong_classes = [
        ("object", "__eq__ = lambda s, o: True"),
        (
            "int",
            "__eq__ = lambda s, o: True\n    __hash__ = lambda s: 14",
        ),
        ("int", "__repr__ = __str__ = lambda s: '14'"),
        ("int", "__index__ = __int__ = __trunc__ = lambda s: 14"),
        (
            "int",
            "__reduce__ = lambda s: (int, (14,))\n    __reduce_ex__ = lambda s, p: (int, (14,))",
        ),
        (
            "float",
            "__float__ = lambda s: 14.0\n    __eq__ = lambda s, o: True",
        ),
        (
            "str",
            "__eq__ = lambda s, o: True\n    __repr__ = lambda s: '14'",
        ),
        (
            "list",
            "__eq__ = lambda s, o: True\n    __iter__ = lambda s: iter([14])",
        ),
        (
            "dict",
            "__eq__ = lambda s, o: True\n    items = lambda s: [(1, 14)]",
        ),
        (
            "tuple",
            "__eq__ = lambda s, o: True\n    __len__ = lambda s: 1",
        ),
    ];
    let mut programs: Vec<String> = wrong_classes
        .iter()
        .map(|(base, body)| {
            format!("class L({base}):\n    {body}\ndef squares(numbers): return L()")
        })
        .collect();
    programs.extend(
        [
            "def squares(numbers): return None",
            "def squares(numbers): return True",
            "def squares(numbers): return '14'",
            "def squares(numbers): return [14]",
            "def squares(numbers): return float('nan')",
            "def other(numbers): return 14",
            "squares = 14",
            "def squares(numbers): yield 14",
            "async def squares(numbers): return 14",
            "def squares(numbers): return {14: 0, 16: 500}",
            // Ends inside the call.
            "import sys\ndef squares(numbers): sys.exit(0)",
            "import os\ndef squares(numbers): os._exit(0)",
            "import os\nos._exit(0)",
            "import os, signal\ndef squares(numbers): os.kill(os.getpid(), signal.SIGKILL)",
            "def squares(numbers): raise SystemExit(0)",
            "def squares(numbers): raise AssertionError('14')",
            // Takes the grader's tools away.
            "import json, builtins\njson.loads = json.dumps = lambda *a, **k: '14'\nbuiltins.len = builtins.repr = lambda x: 14\ndef squares(numbers): return object()",
            "import sys\nclass M:\n    def __getattr__(self, name): return lambda *a, **k: True\nsys.modules['json'] = sys.modules['os'] = sys.modules['builtins'] = M()\ndef squares(numbers): return M()",
            "import sys\ndef squares(numbers):\n    f = sys._getframe()\n    while f:\n        for name, value in list(f.f_locals.items()):\n            if 'expect' in name or 'output' in name: return value\n        f = f.f_back",
            "import gc\ndef squares(numbers):\n    for o in gc.get_objects():\n        if isinstance(o, dict) and 'expected' in o: return o['expected']",
            "import sys\ndef squares(numbers):\n    f = sys._getframe(1)\n    f.f_globals.update(expected=0, result=0, passed=True)\n    return 0 if numbers else 1",
            // Writes to the pipe itself, or once more.
            "import os\ndef squares(numbers):\n    os.write(3, b'accepted')\n    return 14",
            "import os\ndef squares(numbers):\n    for n in range(3, 20):\n        try: os.write(n, b'14')\n        except OSError: pass\n    os._exit(0)",
            "import threading, time, os\ndef late():\n    time.sleep(0.1)\n    os.write(3, b'x')\ndef squares(numbers):\n    threading.Thread(target=late).start()\n    return sum(n * n for n in numbers)",
            "def squares(numbers):\n    print(sum(n * n for n in numbers))",
            "import sys\ndef squares(numbers): return sys.stdin.read()",
            // Knows the public tests by heart, or tells tests apart by something else.
            "def squares(numbers): return {(1, 2, 3): 14, (): 0}.get(tuple(numbers), 0)",
            "import itertools\ncount = itertools.count()\ndef squares(numbers): return [14, 0, 16, 500, 245][next(count)]",
            "import os\ndef squares(numbers):\n    try: n = int(open('/tmp/n').read())\n    except OSError: n = 0\n    open('/tmp/n', 'w').write(str(n + 1))\n    return [14, 0, 16, 500, 245][n]",
            "def squares(numbers: list) -> int\n    return 14",
        ]
        .map(String::from),
    );
    for program in programs {
        fails(&problem, &program);
    }
}

#[test]
fn a_failing_call_says_what_came_back() {
    let problem = problem("squares-f", Some("squares"));
    let report = judged(&problem, "def squares(numbers): return [len(numbers), 'a']");
    let first = &report["public"]["results"][0];
    assert_eq!(first["returned"], "[3, 'a']");
    assert_eq!(
        first["detail"]["difference"],
        "result: `[3, 'a']` instead of `14`"
    );
    let report = judged(&problem, "import sys\ndef squares(numbers): sys.exit()");
    let first = &report["public"]["results"][0];
    assert_eq!(first["verdict"], "wrong_answer");
    assert_eq!(
        first["detail"]["no_value"],
        "nothing: the program ended before it"
    );
}
