//! Stopping, going on, and order.

use super::*;
use rlef_judge::audit::{content_digest, settings_digest};
use rlef_judge::{BoxError, Executor};
use rlef_sandbox::{Limits, Outcome};
use std::sync::atomic::Ordering;

fn items(count: usize) -> impl Iterator<Item = Result<Item, String>> {
    (0..count).map(|number| {
        let mut problem = square();
        problem.id = format!("p{number}");
        Ok(Item {
            number,
            split: None,
            problem,
        })
    })
}

#[test]
fn every_problem_is_reported_once_whatever_the_number_of_workers() {
    for workers in [0, 1, 5] {
        let mut numbers = vec![];
        let mut programs = 0;
        let stop = AtomicBool::new(false);
        let config = AuditConfig {
            repeats: 1,
            ..AuditConfig::default()
        };
        check_all(judge(), &config, items(9), workers, &stop, |done| {
            match done {
                Done::Program => programs += 1,
                Done::Problem { number, record } => {
                    assert_eq!(record.problem, format!("p{number}"));
                    numbers.push(number);
                }
            }
            Ok(())
        })
        .unwrap();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..9).collect::<Vec<_>>());
        assert_eq!(programs, 18);
    }
}

#[test]
fn a_stopped_audit_reports_only_what_is_whole() {
    let stop = AtomicBool::new(false);
    let mut whole = 0;
    check_all(
        judge(),
        &AuditConfig::default(),
        items(50),
        2,
        &stop,
        |done| {
            if let Done::Problem { record, .. } = done {
                assert_eq!(record.findings, []);
                whole += 1;
                stop.store(true, Ordering::SeqCst);
            }
            Ok(())
        },
    )
    .unwrap();
    assert!((1..20).contains(&whole), "{whole}");
}

#[test]
fn an_error_of_either_side_ends_it() {
    let stop = AtomicBool::new(false);
    let config = AuditConfig::default();
    let broken = items(3).chain(std::iter::once(Err("line 4".to_owned())));
    let ended = check_all(judge(), &config, broken, 2, &stop, |_| Ok(()));
    assert_eq!(ended, Err("line 4".to_owned()));
    let ended = check_all(judge(), &config, items(3), 2, &stop, |_| {
        Err("disk full".to_owned())
    });
    assert_eq!(ended, Err("disk full".to_owned()));
}

#[test]
fn digests_tell_problems_and_settings_apart_and_records_are_read_back() {
    let mut other = square();
    other.wrong_solutions[0].code.push('#');
    assert_eq!(content_digest(&square()), content_digest(&square()));
    assert_ne!(content_digest(&square()), content_digest(&other));
    let more = AuditConfig {
        repeats: 4,
        ..AuditConfig::default()
    };
    let digest = |audit| settings_digest(audit, &config());
    assert_ne!(digest(&AuditConfig::default()), digest(&more));

    let mut problem = square();
    problem.wrong_solutions[0].code = SQUARE.into();
    let record = checked(problem);
    assert!(record.has_errors());
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
}

/// Takes programs for orders to fail in a way that nobody expects.
struct Panics(Sandbox);

impl Executor for Panics {
    fn run(&self, source: &str, stdin: &[u8], limits: &Limits) -> Result<Outcome, BoxError> {
        assert!(!source.contains("PANIC"), "it was told to");
        Executor::run(&self.0, source, stdin, limits)
    }

    fn syntax_check(&self, source: &str, limits: &Limits) -> Result<Option<String>, BoxError> {
        Executor::syntax_check(&self.0, source, limits)
    }
}

#[test]
fn a_panic_is_a_fault_of_its_problem_and_of_no_other() {
    let sandbox = Sandbox::new(Config::default()).expect("these tests need a sandbox");
    let judge = Judge::new(Panics(sandbox), config()).unwrap();
    let items = items(6).map(|item| {
        let mut item = item?;
        if item.number == 2 {
            item.problem.solutions[0].code += " # PANIC";
        }
        Ok::<_, String>(item)
    });
    let mut records = vec![];
    let stop = AtomicBool::new(false);
    check_all(&judge, &AuditConfig::default(), items, 2, &stop, |done| {
        if let Done::Problem { number, record } = done {
            records.push((number, record));
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(records.len(), 6);
    for (number, record) in records {
        if number == 2 {
            let what = &finding(&record, Kind::NotChecked).message;
            assert!(what.contains("it was told to"), "{what}");
        } else {
            assert_eq!(record.findings, [], "{number}");
        }
    }
}

#[test]
fn a_panic_of_the_caller_ends_the_audit() {
    for workers in [1, 3] {
        let panicked = std::panic::catch_unwind(|| {
            let stop = AtomicBool::new(false);
            let items = items(20).inspect(|item| {
                assert!(
                    item.as_ref().is_ok_and(|item| item.number < 4),
                    "the reader fails"
                );
            });
            check_all(
                judge(),
                &AuditConfig::default(),
                items,
                workers,
                &stop,
                |_| Ok(()),
            )
        });
        assert!(panicked.is_err());
    }
}
