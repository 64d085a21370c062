//! The judge with an executor that plays programs by script, so that every ending can be had at will.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rlef_judge::{
    BoxError, Detail, Executor, Fault, Job, Judge, JudgeConfig, JudgeStats, Report, Stop, Verdict,
};
use rlef_problems::{Checker, Problem, TestCase};
use rlef_sandbox::{Ending, Limits, Outcome, PYTHON, Program};

/// What the "program" says is what happens: the source is a list of lines, each `INPUT: ENDING STDOUT`.
#[derive(Default)]
struct Fake {
    runs: AtomicUsize,
    checks: AtomicUsize,
    /// So many tries end in a fault first.
    faults: AtomicUsize,
    /// The wall-clock limit of each try.
    walls: Mutex<Vec<Duration>>,
}

fn outcome(ending: Ending, stdout: &str, stderr: &str, cpu_ms: u64) -> Outcome {
    Outcome {
        ending,
        stdout: stdout.replace("\\n", "\n").into(),
        stderr: stderr.into(),
        cpu: Duration::from_millis(cpu_ms),
        wall: Duration::from_millis(cpu_ms + 1),
        peak_memory_bytes: None,
    }
}

impl Fake {
    fn fails(&self) -> Result<(), BoxError> {
        let left = self
            .faults
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        left.map_or(Ok(()), |_| Err("no more file descriptors".into()))
    }
}

impl Executor for Fake {
    fn run(&self, source: &str, stdin: &[u8], limits: &Limits) -> Result<Outcome, BoxError> {
        self.walls.lock().unwrap().push(limits.wall);
        self.runs.fetch_add(1, Ordering::SeqCst);
        self.fails()?;
        let stdin = String::from_utf8_lossy(stdin);
        let line = source
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{stdin}: ")))
            .ok_or("the script has no line for this input")?;
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        Ok(match what {
            "print" => outcome(Ending::Exited(0), rest, "", 10),
            "slow-print" => outcome(Ending::Exited(0), rest, "", 1000),
            "print-and-fail" => outcome(Ending::Exited(3), rest, "", 10),
            "error" => outcome(
                Ending::Exited(1),
                "",
                &format!("Traceback (most recent call last):\n{rest}\n"),
                10,
            ),
            "syntax-error" => outcome(Ending::Exited(1), "", "SyntaxError: invalid syntax\n", 10),
            "xcpu" => outcome(Ending::Signalled(24), rest, "", 990),
            "signal" => outcome(Ending::Signalled(11), rest, "", 10),
            "cpu" => outcome(Ending::CpuLimit, rest, "", 1000),
            "wall" => outcome(Ending::WallLimit, rest, "", 10),
            "memory" => outcome(Ending::MemoryLimit, rest, "", 10),
            "output" => outcome(Ending::OutputLimit, rest, "", 10),
            "forbidden" => outcome(Ending::Forbidden(Some(101)), rest, "", 10),
            other => return Err(format!("unknown {other}").into()),
        })
    }

    fn syntax_check(&self, source: &str, _: &Limits) -> Result<Option<String>, BoxError> {
        self.checks.fetch_add(1, Ordering::SeqCst);
        self.fails()?;
        Ok(source
            .contains("does not parse")
            .then(|| "invalid syntax (main.py, line 1)".to_owned()))
    }
}

fn problem() -> Problem {
    let test = |n: u32| TestCase {
        name: if n == 2 {
            String::new()
        } else {
            format!("t{n}")
        },
        input: n.to_string(),
        output: format!("{}\n", n * n),
    };
    Problem {
        id: "square".into(),
        name: String::new(),
        statement: "Print the square.".into(),
        time_limit_s: 1.0,
        memory_limit_mb: 64,
        checker: Checker::Lines,
        function: None,
        public_tests: (1..=3).map(test).collect(),
        private_tests: (4..=5).map(test).collect(),
        solutions: Vec::new(),
        wrong_solutions: Vec::new(),
        meta: serde_json::Map::new(),
    }
}

fn quick() -> JudgeConfig {
    JudgeConfig {
        retry_pause_ms: 0,
        ..JudgeConfig::default()
    }
}

fn judge_with(config: JudgeConfig) -> (Arc<Fake>, Judge) {
    let fake = Arc::new(Fake::default());
    let judge = Judge::new(Arc::clone(&fake), config).unwrap();
    (fake, judge)
}

fn public(judge: &Judge, code: &str) -> Report {
    let problem = problem();
    judge
        .judge(&problem, code, &problem.public_tests, Stop::Never)
        .unwrap()
}

#[test]
fn each_ending_has_its_verdict() {
    use Verdict::*;
    let cases = [
        ("print 1", Accepted, Detail::None),
        ("print 1 \\n\\n", Accepted, Detail::None),
        ("print-and-fail 1", RuntimeError, Detail::ExitStatus(3)),
        ("error ValueError: no", RuntimeError, Detail::ExitStatus(1)),
        ("error MemoryError", MemoryLimit, Detail::ExitStatus(1)),
        ("signal 1", RuntimeError, Detail::Signal(11)),
        ("cpu 1", TimeLimit, Detail::None),
        ("xcpu 1", TimeLimit, Detail::Signal(24)),
        ("wall 1", TimeLimit, Detail::None),
        // The right answer, but the time was up.
        ("slow-print 1", TimeLimit, Detail::None),
        ("memory 1", MemoryLimit, Detail::None),
        ("output 1", OutputLimit, Detail::None),
        ("forbidden 1", Forbidden, Detail::SystemCall(Some(101))),
    ];
    for (line, verdict, detail) in cases {
        let (_, judge) = judge_with(quick());
        let report = public(&judge, &format!("1: {line}\n2: print 4\n3: print 9"));
        assert_eq!(report.results[0].verdict, verdict, "{line}");
        assert_eq!(report.results[0].detail, detail, "{line}");
        assert_eq!(
            report.passed(),
            2 + usize::from(verdict == Accepted),
            "{line}"
        );
        assert_eq!(report.all_passed(), verdict == Accepted, "{line}");
    }
}

#[test]
fn a_wrong_answer_says_where() {
    let (_, judge) = judge_with(quick());
    let report = public(&judge, "1: print 1\n2: print 5\n3: print ");
    let failures: Vec<_> = report.failures().collect();
    assert_eq!(failures.len(), 2);
    assert_eq!(failures[0].verdict, Verdict::WrongAnswer);
    assert_eq!(
        failures[0].name, "2",
        "a test without a name goes by its number"
    );
    assert_eq!(failures[1].name, "t3");
    let Detail::Difference(text) = &failures[0].detail else {
        panic!("{:?}", failures[0].detail)
    };
    assert!(text.contains('4') && text.contains('5'), "{text}");
}

#[test]
fn stops_at_the_first_failure_if_asked() {
    let (fake, judge) = judge_with(quick());
    let problem = problem();
    let code = "1: print 1\n2: print 5\n3: print 9";
    let report = judge
        .judge(&problem, code, &problem.public_tests, Stop::AtFirstFailure)
        .unwrap();
    assert_eq!(report.results.len(), 2);
    assert_eq!(report.total, 3);
    assert!(!report.all_passed());
    assert_eq!(report.verdict(), Some(Verdict::WrongAnswer));
    assert_eq!(fake.runs.load(Ordering::SeqCst), 2);
}

#[test]
fn what_does_not_parse_fails_every_test_with_compile_error() {
    for stop in [Stop::Never, Stop::AtFirstFailure] {
        let (fake, judge) = judge_with(quick());
        let problem = problem();
        let code = "1: syntax-error\ndoes not parse";
        let report = judge
            .judge(&problem, code, &problem.public_tests, stop)
            .unwrap();
        assert!(report.is_compile_error());
        assert_eq!(report.results.len(), 3);
        for result in &report.results {
            assert_eq!(result.verdict, Verdict::CompileError);
            assert!(matches!(&result.detail, Detail::Compiler(m) if m.contains("line 1")));
        }
        assert_eq!(
            fake.runs.load(Ordering::SeqCst),
            1,
            "the other tests need no run"
        );
    }
}

#[test]
fn faking_a_syntax_error_gains_nothing() {
    let (fake, judge) = judge_with(quick());
    let report = public(&judge, "1: syntax-error\n2: syntax-error\n3: print 9");
    let verdicts: Vec<_> = report.results.iter().map(|r| r.verdict).collect();
    assert_eq!(
        verdicts,
        [
            Verdict::RuntimeError,
            Verdict::RuntimeError,
            Verdict::Accepted
        ]
    );
    assert_eq!(fake.checks.load(Ordering::SeqCst), 1, "once is enough");
}

#[test]
fn a_program_that_ran_once_is_not_checked_again() {
    let (fake, judge) = judge_with(quick());
    let report = public(&judge, "1: print 1\n2: syntax-error\n3: print 9");
    assert_eq!(report.results[1].verdict, Verdict::RuntimeError);
    assert_eq!(fake.checks.load(Ordering::SeqCst), 0);
}

#[test]
fn no_tests_is_no_pass() {
    let (_, judge) = judge_with(quick());
    let result = judge.judge(&problem(), "1: print 1", &[], Stop::Never);
    assert!(matches!(result, Err(Fault::NoTests { .. })), "{result:?}");
}

#[test]
fn a_checker_that_cannot_compare_is_a_fault_even_if_the_program_crashes() {
    let (fake, judge) = judge_with(quick());
    let checker = Checker::Float {
        abs: -1.0,
        rel: 0.0,
        case_sensitive: true,
    };
    let problem = Problem {
        checker,
        ..problem()
    };
    for code in ["1: print 1", "1: signal"] {
        let result = judge.judge(&problem, code, &problem.public_tests, Stop::Never);
        assert!(matches!(result, Err(Fault::Checker { .. })), "{result:?}");
    }
    assert_eq!(fake.runs.load(Ordering::SeqCst), 0);
}

#[test]
fn faults_are_retried_then_returned_and_never_remembered() {
    let code = "1: print 1\n2: print 4\n3: print 9";
    let (fake, judge) = judge_with(quick());
    fake.faults.store(2, Ordering::SeqCst);
    assert!(
        public(&judge, code).all_passed(),
        "two faults are made good by two retries"
    );
    assert_eq!(judge.stats().failed_tries, 2);
    let walls: Vec<u64> = fake
        .walls
        .lock()
        .unwrap()
        .iter()
        .map(Duration::as_secs)
        .collect();
    assert_eq!(
        walls,
        [3, 6, 12, 3, 3],
        "a retry may take longer, a first try may not"
    );
    assert_eq!(judge.stats().faults, 0);

    let (fake, judge) = judge_with(quick());
    fake.faults.store(3, Ordering::SeqCst);
    let problem = problem();
    let run = || judge.judge(&problem, code, &problem.public_tests, Stop::Never);
    match run() {
        Err(Fault::Execution {
            problem,
            test,
            tries,
            source,
        }) => {
            assert_eq!(
                (problem.as_str(), test.as_str(), tries),
                ("square", "t1", 3)
            );
            assert!(source.to_string().contains("file descriptors"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(judge.stats().faults, 1);
    assert!(run().unwrap().all_passed(), "the next time is a new chance");
}

#[test]
fn a_program_is_never_retried_for_its_own_failure() {
    let (fake, judge) = judge_with(JudgeConfig {
        cache: false,
        ..quick()
    });
    public(&judge, "1: cpu\n2: signal\n3: memory");
    assert_eq!(fake.runs.load(Ordering::SeqCst), 3);
}

#[test]
fn the_same_run_is_made_once() {
    let code = "1: print 1\n2: print 5\n3: cpu";
    let (fake, judge) = judge_with(quick());
    let before = public(&judge, code);
    let after = public(&judge, code);
    assert_eq!(before, after);
    assert_eq!(fake.runs.load(Ordering::SeqCst), 3);
    assert_eq!(
        judge.stats(),
        JudgeStats {
            runs: 3,
            cache_hits: 3,
            ..JudgeStats::default()
        }
    );

    let (fake, judge) = judge_with(JudgeConfig {
        cache: false,
        ..quick()
    });
    assert_eq!(public(&judge, code), public(&judge, code));
    assert_eq!(fake.runs.load(Ordering::SeqCst), 6);
    assert_eq!(judge.stats().cache_hits, 0);
}

#[test]
fn other_limits_are_another_run() {
    let (fake, judge) = judge_with(quick());
    let code = "1: print 1\n2: print 4\n3: print 9";
    public(&judge, code);
    let slower = Problem {
        time_limit_s: 2.0,
        ..problem()
    };
    judge
        .judge(&slower, code, &slower.public_tests, Stop::Never)
        .unwrap();
    assert_eq!(fake.runs.load(Ordering::SeqCst), 6);
}

#[test]
fn many_jobs_keep_their_order() {
    let (_, judge) = judge_with(quick());
    let problem = problem();
    let codes: Vec<String> = (0..60)
        .map(|n| format!("1: print {n}\n2: print 4\n3: print 9"))
        .collect();
    let jobs: Vec<Job<'_>> = codes
        .iter()
        .map(|code| Job {
            problem: &problem,
            language: PYTHON,
            code,
            tests: &problem.public_tests,
            stop: Stop::Never,
        })
        .collect();
    let reports = judge.judge_many(&jobs, 4);
    assert_eq!(reports.len(), 60);
    for (n, report) in reports.iter().enumerate() {
        let report = report.as_ref().unwrap();
        assert_eq!(report.results[0].stdout, n.to_string().as_bytes());
        assert_eq!(report.all_passed(), n == 1);
    }
}

#[test]
fn long_output_is_cut_in_the_report_but_compared_whole() {
    let config = JudgeConfig {
        kept_stdout_bytes: 2,
        kept_stderr_bytes: 9,
        ..quick()
    };
    let (_, judge) = judge_with(config);
    let mut problem = problem();
    problem.public_tests[0].output = "123456".into();
    let judged = |code| {
        judge
            .judge(&problem, code, &problem.public_tests[..1], Stop::Never)
            .unwrap()
            .results
            .remove(0)
    };
    let right = judged("1: print 123456");
    assert_eq!(right.verdict, Verdict::Accepted);
    assert_eq!(
        (right.stdout.as_slice(), right.stdout_len),
        (b"12".as_slice(), 6)
    );
    assert_eq!(judged("1: print 123457").verdict, Verdict::WrongAnswer);
    assert_eq!(judged("1: error KeyError").stderr, b"KeyError\n");
}

#[test]
fn settings_and_limits_out_of_range_are_errors() {
    for config in [
        JudgeConfig {
            time_factor: 0.0,
            ..quick()
        },
        JudgeConfig {
            wall_factor: f64::NAN,
            ..quick()
        },
        JudgeConfig {
            wall_extra_s: -1.0,
            ..quick()
        },
        JudgeConfig {
            wall_extra_s: 0.0,
            wall_factor: 0.5,
            ..quick()
        },
        JudgeConfig {
            memory_factor: f64::INFINITY,
            ..quick()
        },
        JudgeConfig {
            output_bytes: 0,
            ..quick()
        },
        JudgeConfig {
            processes: 0,
            ..quick()
        },
    ] {
        let result = Judge::new(Fake::default(), config.clone());
        assert!(matches!(result, Err(Fault::Setting { .. })), "{config:?}");
    }
    let (_, judge) = judge_with(quick());
    for time_limit_s in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
        let problem = Problem {
            time_limit_s,
            ..problem()
        };
        let result = judge.judge(&problem, "1: print 1", &problem.public_tests, Stop::Never);
        assert!(
            matches!(result, Err(Fault::Limits { .. })),
            "{time_limit_s}"
        );
    }
    for memory_limit_mb in [0, u64::MAX] {
        let problem = Problem {
            memory_limit_mb,
            ..problem()
        };
        let result = judge.judge(&problem, "1: print 1", &problem.public_tests, Stop::Never);
        assert!(
            matches!(result, Err(Fault::Limits { .. })),
            "{memory_limit_mb}"
        );
    }
}

#[test]
fn limits_follow_the_problem_and_the_factors() {
    let config = JudgeConfig {
        time_factor: 2.0,
        memory_factor: 0.5,
        ..quick()
    };
    let limits = config
        .limits_for(&Problem {
            time_limit_s: 1.5,
            ..problem()
        })
        .unwrap();
    assert_eq!(limits.cpu, Duration::from_secs(3));
    assert_eq!(limits.wall, Duration::from_secs(9));
    assert_eq!(limits.memory_bytes, 32 << 20);
    let limits = quick()
        .limits_for(&Problem {
            time_limit_s: 0.5,
            ..problem()
        })
        .unwrap();
    assert_eq!(limits.wall, Duration::from_millis(2500));
}

#[test]
fn reports_serialise_for_people() {
    let (_, judge) = judge_with(quick());
    let report = public(&judge, "1: print 1\n2: signal x\n3: print 9");
    let json = serde_json::to_value(&report).unwrap();
    let result = &json["results"][1];
    assert_eq!(result["verdict"], "runtime_error");
    assert_eq!(result["stdout"], "x");
    assert_eq!(result["cpu_s"], 0.01);
    assert_eq!(result["detail"]["signal"], 11);
}

#[test]
fn an_executor_is_asked_for_languages_that_it_knows_only() {
    let (fake, judge) = judge_with(quick());
    let problem = problem();
    let program = |language| Program {
        language,
        source: "1: print 1\n2: print 4\n3: print 9",
    };
    let judged = |language| {
        judge.judge_program(
            &problem,
            &program(language),
            &problem.public_tests,
            Stop::Never,
        )
    };
    let fault = judged("cpp").unwrap_err();
    assert!(
        matches!(&fault, Fault::Language { language, .. } if language == "cpp"),
        "{fault}"
    );
    assert_eq!(fake.runs.load(Ordering::SeqCst), 0);
    assert!(judged(PYTHON).unwrap().all_passed());
    assert!(judged("python3").unwrap().all_passed());
}

#[test]
fn languages_have_time_factors_of_their_own() {
    let mut config = quick();
    config.language_time_factors.insert(PYTHON.into(), 3.0);
    let limits = config.limits_for(&problem()).unwrap();
    assert_eq!(limits.cpu, Duration::from_secs(3));
    config.language_time_factors.insert("java".into(), 0.0);
    let told = config.check().unwrap_err().to_string();
    assert!(
        told.contains("language_time_factors") && told.contains("java"),
        "{told}"
    );
}
