//! What the known programs of a problem show.

use super::*;
use rlef_judge::audit::Severity;

#[test]
fn a_sound_problem_has_no_finding() {
    let record = checked(square());
    assert_eq!(record.findings, []);
    assert_eq!(record.severity(), None);
    assert_eq!(record.verdicts["AC"]["AC"], 1);
    assert_eq!(record.verdicts["WA"]["WA"], 1);
    assert_eq!(record.tests, [2, 2, 1]);
    assert!(record.slowest_s.is_some_and(|s| s > 0.0 && s < 1.0));
}

#[test]
fn every_expected_verdict_is_found() {
    let n = "n = int(input())\n";
    let mut problem = square();
    problem.wrong_solutions = [
        ("WA", "print(-1)".to_owned()),
        ("RTE", "1 // 0".to_owned()),
        ("TLE", "while True: pass".to_owned()),
        ("MLE", "x = bytearray(1 << 30)\nprint(len(x))".to_owned()),
        ("OLE", "while True: print('x' * 10_000_000)".to_owned()),
        ("CE", "print(".to_owned()),
        ("NOT_AC", format!("{n}if n == 7: 1 // 0\nprint(n * n)")),
    ]
    .map(|(expected, code)| program(&format!("{expected}.py"), expected, &code))
    .to_vec();
    let record = checked(problem);
    assert_eq!(record.findings, []);
    for (expected, got) in &record.verdicts {
        let wanted = if expected == "NOT_AC" {
            "RTE"
        } else {
            expected
        };
        assert_eq!(got.get(wanted), Some(&1), "{expected}: {got:?}");
    }
}

#[test]
fn a_right_program_that_fails_a_generated_test_is_an_error() {
    let mut problem = square();
    problem.generated_tests[0].output = "48\n".into();
    let record = checked(problem);
    let finding = finding(&record, Kind::SolutionRejected);
    assert!(record.has_errors());
    assert!(finding.message.contains("right.py"), "{}", finding.message);
    assert!(
        finding.message.contains("generated/e"),
        "{}",
        finding.message
    );
    assert!(
        finding.message.contains("`49` instead of `48`"),
        "{}",
        finding.message
    );
}

#[test]
fn wrong_programs_that_pass_are_errors_and_other_verdicts_warnings() {
    let mut problem = square();
    problem.wrong_solutions = vec![
        program("passes.py", "TLE", SQUARE),
        program("crashes.py", "WA", "1 // 0"),
        program(
            "late.py",
            "RTE",
            "n = int(input())\nprint(n * n + (n == 3))\nn == 7 and 1 // 0",
        ),
    ];
    let record = checked(problem);
    let accepted = finding(&record, Kind::WrongAccepted);
    assert_eq!(accepted.severity, Severity::Error);
    assert!(
        accepted
            .message
            .contains("passes.py should get TLE and is accepted")
    );
    let others: Vec<_> = record
        .findings
        .iter()
        .filter(|f| f.kind == Kind::OtherVerdict)
        .collect();
    assert_eq!(others.len(), 2, "{:#?}", record.findings);
    assert!(
        others
            .iter()
            .all(|other| other.severity == Severity::Warning)
    );
    assert!(
        others[0]
            .message
            .contains("should get WA and gets RTE on test public/a")
    );
    assert!(
        others[1]
            .message
            .ends_with("RTE comes later, on test generated/e"),
        "{}",
        others[1].message
    );
}

#[test]
fn tests_that_no_wrong_program_fails_are_named() {
    let mut problem = square();
    problem.wrong_solutions = vec![program("double.py", "WA", DOUBLE)];
    let record = checked(problem.clone());
    let weak = finding(&record, Kind::WeakTests);
    assert_eq!(weak.severity, Severity::Note);
    assert!(weak.message.starts_with("2 of 5 tests"), "{}", weak.message);
    assert!(
        weak.message.ends_with("public/a, private/c"),
        "{}",
        weak.message
    );

    for list in [&mut problem.public_tests, &mut problem.private_tests] {
        list.truncate(1);
    }
    problem.generated_tests.clear();
    let record = checked(problem);
    assert!(record.has_errors());
    finding(&record, Kind::NoWrongFails);
}

#[test]
fn what_changes_from_run_to_run_is_found() {
    let random = "import os\nr = os.urandom(8).hex()\nn = int(input())\n";
    let mut problem = square();
    problem.checker = Checker::Float {
        abs: 0.5,
        rel: 0.0,
        case_sensitive: true,
    };
    let digits = format!(
        "{random}print(f'{{n * n}}.{{int(r, 16) % 10**9:09d}}'[:12].replace('.9', '.0').replace('.8', '.0').replace('.7', '.0').replace('.6', '.0').replace('.5', '.0'))"
    );
    problem.solutions = vec![program("digits.py", "AC", &digits)];
    let record = checked(problem.clone());
    assert_eq!(
        kinds(&record),
        [Kind::UnstableOutput],
        "{:#?}",
        record.findings
    );

    // Wrong on one of many runs or on all but one, hardly ever on none or all.
    problem.solutions = vec![program(
        "coin.py",
        "AC",
        &format!("{random}print(n * n + (int(r, 16) % 8 == 0))"),
    )];
    let config = AuditConfig {
        repeats: 30,
        ..AuditConfig::default()
    };
    let record = checked_with(judge(), &config, problem);
    let unstable = finding(&record, Kind::UnstableVerdict);
    assert!(
        unstable.message.contains("of 30 runs"),
        "{}",
        unstable.message
    );
    assert!(record.has_errors());
}

#[test]
fn a_limit_close_to_the_slowest_accepted_program_is_tight() {
    let mut problem = square();
    let slow = format!("import time\nwhile time.process_time() < 0.7: pass\n{SQUARE}");
    problem.solutions.push(program("slow.py", "AC", &slow));
    let config = AuditConfig {
        repeats: 1,
        ..AuditConfig::default()
    };
    let record = checked_with(judge(), &config, problem.clone());
    let tight = finding(&record, Kind::TightTimeLimit);
    assert!(
        tight.message.starts_with("slow.py needs 0."),
        "{}",
        tight.message
    );
    assert!(!record.has_errors());
    problem.time_limit_s = 5.0;
    assert_eq!(checked_with(judge(), &config, problem).findings, []);
}

#[test]
fn programs_that_cannot_be_run_here_are_counted_and_nothing_else() {
    let mut problem = square();
    for list in [&mut problem.solutions, &mut problem.wrong_solutions] {
        list[0].language = "cobol".into();
    }
    let record = checked(problem);
    assert_eq!(kinds(&record), [Kind::NoReference, Kind::NotRun]);
    assert_eq!(record.severity(), Some(Severity::Note));
    assert!(
        finding(&record, Kind::NotRun)
            .message
            .contains("2 in cobol")
    );
    assert_eq!(record.verdicts["AC"]["not run"], 1);
    assert_eq!(record.verdicts["WA"]["not run"], 1);
}

#[test]
fn only_so_many_programs_are_run_as_are_asked_for() {
    let mut problem = square();
    problem.solutions.push(program("wrong.py", "AC", DOUBLE));
    let config = AuditConfig {
        programs: Some(1),
        ..AuditConfig::default()
    };
    let record = checked_with(judge(), &config, problem);
    assert_eq!(kinds(&record), [Kind::NotRun]);
}

#[test]
fn a_problem_that_cannot_be_judged_is_wrong_and_a_fault_of_the_machine_is_not() {
    let mut problem = square();
    problem.checker = Checker::Custom(serde_json::Map::new());
    let record = checked(problem);
    assert_eq!(kinds(&record), [Kind::CannotBeJudged]);
    assert!(record.has_errors());

    let mut config = config();
    config.retry_pause_ms = 0;
    let broken = Judge::new(Broken, config).unwrap();
    let record = checked_with(&broken, &AuditConfig::default(), square());
    let not_checked = record
        .findings
        .iter()
        .filter(|f| f.kind == Kind::NotChecked);
    assert_eq!(not_checked.count(), 2, "{:#?}", record.findings);
    assert!(!record.has_errors() && record.is_incomplete());
    assert_eq!(record.verdicts["AC"]["not checked"], 1);
}

/// A machine on which nothing works.
pub struct Broken;

impl rlef_judge::Executor for Broken {
    fn run(
        &self,
        _: &str,
        _: &[u8],
        _: &rlef_sandbox::Limits,
    ) -> Result<rlef_sandbox::Outcome, rlef_judge::BoxError> {
        Err("the disk is on fire".into())
    }

    fn syntax_check(
        &self,
        _: &str,
        _: &rlef_sandbox::Limits,
    ) -> Result<Option<String>, rlef_judge::BoxError> {
        Err("the disk is on fire".into())
    }
}
