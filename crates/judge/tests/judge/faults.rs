//! What says nothing about a program, how often anything is tried, and what is remembered of it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rlef_judge::{Fault, JudgeConfig, JudgeStats, Stop};
use rlef_problems::{Checker, Problem};

use crate::{judge_with, problem, public, quick};

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
