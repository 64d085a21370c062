//! What a program does, and the verdict for it.

use std::sync::atomic::Ordering;

use rlef_judge::{Detail, Job, Stop, Verdict};

use crate::{judge_with, problem, public, quick};
use rlef_judge::JudgeConfig;

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
