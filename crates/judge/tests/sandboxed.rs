//! The judge with the real sandbox: one program for every verdict, and what a program must not get away with.

use std::sync::OnceLock;
use std::time::Duration;

use rlef_judge::{Detail, Fault, Job, Judge, JudgeConfig, Report, Stop, Verdict};
use rlef_problems::{Checker, Problem, TestCase};
use rlef_sandbox::{Config, PYTHON, Program, Sandbox};

fn judge() -> &'static Judge {
    static JUDGE: OnceLock<Judge> = OnceLock::new();
    JUDGE.get_or_init(|| {
        let sandbox = Sandbox::new(Config::default()).expect("these tests need a sandbox");
        Judge::new(sandbox, JudgeConfig::default()).unwrap()
    })
}

fn problem() -> Problem {
    let test = |n: u32| TestCase {
        name: format!("t{n}"),
        input: format!("{n}\n"),
        output: format!("{}\n", n * n),
    };
    Problem {
        id: "square".into(),
        name: String::new(),
        statement: "Print the square.".into(),
        time_limit_s: 1.0,
        memory_limit_mb: 128,
        checker: Checker::Lines,
        function: None,
        public_tests: (1..=3).map(test).collect(),
        private_tests: (4..=5).map(test).collect(),
        generated_tests: Vec::new(),
        solutions: Vec::new(),
        wrong_solutions: Vec::new(),
        meta: serde_json::Map::new(),
    }
}

fn judged(code: &str) -> Report {
    let problem = problem();
    judge()
        .judge(&problem, code, &problem.public_tests, Stop::Never)
        .unwrap()
}

#[test]
fn a_program_for_every_verdict() {
    use Verdict::*;
    let cases = [
        ("print(int(input()) ** 2)", Accepted),
        ("print(int(input()) ** 2, end='\\n\\n')", Accepted),
        ("print(int(input()) * 2 + 7)", WrongAnswer),
        ("print('SECRET')", WrongAnswer),
        ("pass", WrongAnswer),
        ("n = int(input()); print(n * n); n // 0", RuntimeError),
        (
            "n = int(input()); print(n * n); raise SystemExit(3)",
            RuntimeError,
        ),
        (
            "import os; print(int(input()) ** 2, flush=True); os.abort()",
            RuntimeError,
        ),
        (
            "print(int(input()) ** 2, flush=True)\nwhile True: pass",
            TimeLimit,
        ),
        (
            "x = []\nwhile True: x.append(bytearray(1 << 20))",
            MemoryLimit,
        ),
        ("while True: print('x' * 100000)", OutputLimit),
        ("print(", CompileError),
        ("if True:\nprint(1)", CompileError),
        ("print(1)\0", CompileError),
        ("return 5", CompileError),
    ];
    for (code, verdict) in cases {
        let report = judged(code);
        let verdicts: Vec<_> = report.results.iter().map(|r| r.verdict).collect();
        assert_eq!(verdicts, [verdict; 3], "{code:?}: {:?}", report.results[0]);
        assert_eq!(report.all_passed(), verdict == Accepted, "{code:?}");
    }
}

#[test]
fn a_forbidden_call_is_named_so() {
    let code = "import ctypes\nctypes.CDLL(None).ptrace(0, 0, 0, 0)\nprint(int(input()) ** 2)";
    assert_eq!(judged(code).verdict(), Some(Verdict::Forbidden));
}

#[test]
fn a_faked_syntax_error_stays_a_runtime_error() {
    let code = "import sys\nprint('SyntaxError: invalid syntax', file=sys.stderr)\nsys.exit(1)";
    assert_eq!(judged(code).verdict(), Some(Verdict::RuntimeError));
    assert_eq!(
        judged("exec('print(')").verdict(),
        Some(Verdict::RuntimeError)
    );
}

#[test]
fn saying_that_it_passed_gains_nothing() {
    for code in [
        "print('accepted')",
        "import sys\nprint('all tests passed', file=sys.stderr)\nsys.exit(0)",
        "import os\nos._exit(0)",
        "import gc, sys\nprint([o for o in gc.get_objects() if isinstance(o, dict) and 'output' in o])",
    ] {
        assert_eq!(judged(code).verdict(), Some(Verdict::WrongAnswer), "{code}");
    }
}

#[test]
fn the_trace_and_the_status_are_reported() {
    let report = judged("def f(x):\n    return 1 // x\n\nf(0)\n");
    let result = &report.results[0];
    assert_eq!(result.detail, Detail::ExitStatus(1));
    let trace = String::from_utf8_lossy(&result.stderr);
    assert!(
        trace.starts_with("Traceback (most recent call last):\n"),
        "{trace}"
    );
    assert!(
        trace.contains("main.py\", line 4") && trace.contains("main.py\", line 2"),
        "{trace}"
    );
    assert!(
        trace
            .trim_end()
            .ends_with("ZeroDivisionError: integer division or modulo by zero"),
        "{trace}"
    );
}

/// A problem that nobody has validated: its arguments are JSON, but the interpreter does not read them.
#[test]
fn arguments_that_cannot_be_read_are_a_fault_for_every_program() {
    let deep = format!("[{}{}]", "[".repeat(20_000), "]".repeat(20_000));
    let problem = Problem {
        checker: Checker::Value {
            abs: 0.0,
            rel: 0.0,
            numbers_by_value: true,
        },
        function: Some("f".into()),
        public_tests: vec![TestCase {
            name: String::new(),
            input: deep,
            output: "1".into(),
        }],
        ..problem()
    };
    for code in [
        "def f(x): return 1",
        "def g(x): return 1",
        "f = (",
        "while True: pass",
    ] {
        let result = judge().judge(&problem, code, &problem.public_tests, Stop::Never);
        assert!(
            matches!(result, Err(Fault::Execution { .. })),
            "{code}: {result:?}"
        );
    }
}

/// The least limits that are allowed leave room for what is not the program's.
#[test]
fn the_least_limits_are_enough_for_the_least_program() {
    let config = JudgeConfig {
        file_bytes: 64 << 10,
        output_bytes: 1 << 10,
        processes: 1,
        ..JudgeConfig::default()
    };
    for groups in [true, false] {
        let sandbox = Config {
            groups,
            ..Config::default()
        };
        let sandbox = Sandbox::new(sandbox).expect("these tests need a sandbox");
        let judge = Judge::new(sandbox, config.clone()).unwrap();
        let problem = Problem {
            memory_limit_mb: 1,
            time_limit_s: 0.1,
            ..problem()
        };
        let code = "print(int(input()) ** 2)";
        let report = judge.judge(&problem, code, &problem.public_tests, Stop::Never);
        let report = report.unwrap();
        assert!(
            report.all_passed(),
            "groups {groups}: {:?}",
            report.results[0]
        );
    }
}

#[test]
fn a_loop_costs_about_its_limit() {
    let started = std::time::Instant::now();
    let problem = Problem {
        time_limit_s: 0.5,
        ..problem()
    };
    let report = judge()
        .judge(
            &problem,
            "while True: pass",
            &problem.public_tests,
            Stop::AtFirstFailure,
        )
        .unwrap();
    assert_eq!(report.verdict(), Some(Verdict::TimeLimit));
    assert_eq!(report.results.len(), 1);
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn many_at_once_get_the_verdicts_of_one_at_a_time() {
    let problem = problem();
    let codes: Vec<String> = (0..40)
        .map(|n| format!("print(int(input()) ** 2 + {})", n % 2))
        .collect();
    let jobs: Vec<_> = codes
        .iter()
        .map(|code| Job {
            problem: &problem,
            language: PYTHON,
            code,
            tests: &problem.public_tests,
            stop: Stop::Never,
        })
        .collect();
    for (n, report) in judge().judge_many(&jobs, 4).into_iter().enumerate() {
        assert_eq!(report.unwrap().all_passed(), n % 2 == 0, "job {n}");
    }
}

#[test]
fn every_basics_program_gets_its_expected_verdict() {
    let set = rlef_problems::ProblemSet::open("basics").unwrap();
    let problems = set.split("all").unwrap();
    let programs: Vec<_> = problems
        .iter()
        .flat_map(|p| {
            p.solutions
                .iter()
                .chain(&p.wrong_solutions)
                .map(move |s| (p, s))
        })
        .collect();
    assert!(programs.len() >= 2 * problems.len() && problems.len() >= 40);
    let all: Vec<Vec<TestCase>> = programs
        .iter()
        .map(|(p, _)| [p.public_tests.clone(), p.private_tests.clone()].concat())
        .collect();
    let jobs: Vec<_> = programs
        .iter()
        .zip(&all)
        .map(|((problem, s), tests)| Job {
            problem,
            language: PYTHON,
            code: &s.code,
            tests,
            stop: Stop::AtFirstFailure,
        })
        .collect();
    let started = std::time::Instant::now();
    let reports = judge().judge_many(&jobs, 2);
    println!(
        "{} programs in {:?}, {:?}",
        programs.len(),
        started.elapsed(),
        judge().stats()
    );
    let mut unexpected = Vec::new();
    for ((problem, solution), report) in programs.iter().zip(reports) {
        let report = report.unwrap();
        let verdict = report.verdict().unwrap();
        let matches = match solution.expected.as_str() {
            "NOT_AC" => verdict != Verdict::Accepted,
            code => verdict.code() == code,
        };
        if !matches {
            let last = report.results.last();
            unexpected.push(format!(
                "{} {}: {verdict}, expected {}: {last:?}",
                problem.id, solution.file, solution.expected
            ));
        }
    }
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
}

#[test]
fn a_compiled_program_for_every_verdict() {
    use Verdict::*;
    let main = |body: &str| {
        format!(
            "#include <stdio.h>\n#include <stdlib.h>\nint main(void) {{ long n; scanf(\"%ld\", &n); {body} return 0; }}\n"
        )
    };
    let square = "printf(\"%ld\\n\", n * n);";
    let cases = [
        (main(square), Accepted),
        (main("puts(\"SECRET\");"), WrongAnswer),
        (main(&format!("{square} return 3;")), RuntimeError),
        (
            main(&format!("{square} fflush(stdout); abort();")),
            RuntimeError,
        ),
        (
            main(&format!("{square} fflush(stdout); for (;;);")),
            TimeLimit,
        ),
        (
            main("for (;;) puts(\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\");"),
            OutputLimit,
        ),
        (main("printf(\"%ld\\n\", n * n)"), CompileError),
        (String::new(), CompileError),
    ];
    let problem = problem();
    let before = judge().stats();
    for (source, verdict) in &cases {
        let program = Program {
            language: "c",
            source,
        };
        for _ in 0..2 {
            let report = judge()
                .judge_program(&problem, &program, &problem.public_tests, Stop::Never)
                .unwrap();
            let got: Vec<_> = report.results.iter().map(|r| r.verdict).collect();
            assert_eq!(
                got, [*verdict; 3],
                "{source}: {:?}",
                report.results[0].detail
            );
            if *verdict == CompileError {
                let detail = &report.results[2].detail;
                assert!(matches!(detail, Detail::Compiler(said) if !said.is_empty()));
            }
        }
    }
    let after = judge().stats();
    // What has been compiled and run once is remembered, errors too.
    assert!(after.cache_hits - before.cache_hits >= cases.len() as u64);
    // The same text in another language is another program.
    let python = judge().judge(&problem, &cases[0].0, &problem.public_tests, Stop::Never);
    assert_eq!(python.unwrap().results[0].verdict, CompileError);
}

/// A program that needs 80 % of its limit on the quiet machine, while all cores are loaded fourfold, a thousand times:
/// `cargo test --release -p rlef-judge --test sandboxed -- --ignored --nocapture thousand` (half an hour on two cores).
#[test]
#[ignore = "takes half an hour"]
fn a_thousand_programs_near_their_limit_pass_on_a_loaded_machine() {
    const TIMES: usize = 1000;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let sandbox = Sandbox::new(Config::default()).expect("these tests need a sandbox");
    let config = JudgeConfig {
        cache: false,
        ..JudgeConfig::default()
    };
    let judge = Judge::new(sandbox, config).unwrap();
    let mut problem = problem();
    problem.time_limit_s = 0.5;
    // A fixed amount of work: what it takes is the machine's doing.
    let code = |loops: u64| {
        format!(
            "n = int(input())\nx = 0\nfor i in range({loops}):\n    x += i * n % 7\nprint(n * n)\n"
        )
    };
    let tests = &problem.public_tests[..1];
    let cpu = |loops: u64| {
        let times = (0..9).map(|_| {
            let report = judge.judge(&problem, &code(loops), tests, Stop::Never);
            report.unwrap().results[0].cpu.as_secs_f64()
        });
        let mut times: Vec<f64> = times.collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (few, many) = (cpu(100_000), cpu(1_100_000));
    let loops = 100_000 + ((0.4 - few) / (many - few) * 1e6) as u64;
    println!(
        "{loops} loops take {:.3} s of {} s",
        cpu(loops),
        problem.time_limit_s
    );
    let mut busy: Vec<std::process::Child> = (0..4 * cores)
        .map(|_| {
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", "while :; do :; done"]);
            shell.spawn().expect("a shell")
        })
        .collect();
    let code = code(loops);
    let job = Job {
        problem: &problem,
        language: PYTHON,
        code: &code,
        tests,
        stop: Stop::Never,
    };
    let reports = judge.judge_many(&vec![job; TIMES], cores);
    for busy in &mut busy {
        let _ = busy.kill();
        let _ = busy.wait();
    }
    let stats = judge.stats();
    let right = reports
        .iter()
        .flatten()
        .filter(|report| report.all_passed());
    let right = right.count();
    let faults = reports.iter().filter(|r| r.is_err()).count();
    let times = reports
        .iter()
        .flatten()
        .map(|r| r.results[0].cpu.as_secs_f64());
    let most = times.fold(0.0, f64::max);
    println!("{right} of {TIMES} accepted, {faults} faults, at most {most:.3} s; {stats:?}");
    assert_eq!((right, faults), (TIMES, 0));
}
