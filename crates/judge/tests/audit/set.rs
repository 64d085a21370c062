//! What a whole set, other sets and an evaluation show.

use super::*;
use rlef_judge::audit::{Calibration, Severity, SolveRates, Wording};
use rlef_problems::Similarity;

const TEXT: &str = "There are n stones in a row and each stone has a weight. Find the heaviest stone that stands between \
two lighter ones and print its place, counted from the left.";

fn found(entries: &[(Option<&str>, Option<&str>, &str, &str)]) -> Vec<(usize, Finding)> {
    let mut wording = Wording::new(Similarity::default());
    for (set, split, id, text) in entries {
        match set {
            None => wording.add_own(*split, id, text),
            Some(set) => wording.add_other(set, *split, id, text),
        }
    }
    let mut found: Vec<_> = wording
        .findings()
        .into_iter()
        .flat_map(|(whose, all)| all.into_iter().map(move |finding| (whose, finding)))
        .collect();
    found.sort_by_key(|(whose, finding)| (*whose, finding.kind));
    found
}

fn told(found: &[(usize, Finding)]) -> Vec<(usize, Kind, Severity)> {
    found
        .iter()
        .map(|(whose, f)| (*whose, f.kind, f.severity))
        .collect()
}

#[test]
fn of_two_in_one_split_the_later_one_is_a_waste() {
    let loud = TEXT.to_uppercase().replace(' ', "\n");
    let found = found(&[
        (None, Some("train"), "a", TEXT),
        (None, Some("train"), "b", &loud),
    ]);
    assert_eq!(told(&found), [(1, Kind::Duplicate, Severity::Warning)]);
    assert_eq!(found[0].1.message, "the same statement as `a` in train");
}

#[test]
fn of_two_in_different_splits_the_training_problem_has_to_go() {
    let found = found(&[
        (None, Some("train"), "a", TEXT),
        (None, Some("test"), "b", TEXT),
    ]);
    assert_eq!(told(&found), [(0, Kind::Duplicate, Severity::Error)]);
    assert_eq!(found[0].1.message, "the same statement as `b` in test");
}

#[test]
fn what_is_in_another_set_is_contaminated() {
    let found = found(&[
        (None, None, "a", TEXT),
        (None, None, "b", "Print the number of leaves of a tree."),
        (Some("humans"), Some("test"), "x", TEXT),
        (Some("humans"), Some("test"), "y", TEXT),
    ]);
    assert_eq!(told(&found), [(0, Kind::Duplicate, Severity::Error)]);
    assert_eq!(
        found[0].1.message,
        "the same statement as `x` in humans/test, `y` in humans/test"
    );
}

#[test]
fn near_duplicates_are_warnings_with_counts() {
    let longer = format!("It is a cold day in the mountains. {TEXT} Print 0 if there is none.");
    let found = found(&[
        (None, Some("train"), "a", TEXT),
        (None, Some("test"), "b", &longer),
    ]);
    assert_eq!(told(&found), [(0, Kind::NearDuplicate, Severity::Warning)]);
    let message = &found[0].1.message;
    assert!(
        message.starts_with("nearly the same statement as `b` in test (27 of 27 n-grams shared"),
        "{message}"
    );
}

#[test]
fn statements_that_differ_in_signs_only_are_not_called_the_same() {
    let found = found(&[
        (None, None, "a", "Print a + b."),
        (None, None, "b", "Print a - b."),
    ]);
    assert_eq!(told(&found), [(1, Kind::NearDuplicate, Severity::Warning)]);
}

#[test]
fn solve_rates_at_the_ends_are_named() {
    let mut rates = SolveRates::default();
    for n in 0..100 {
        rates.add("never", false);
        rates.add("always", true);
        rates.add("once", n == 0);
        rates.add("often", n % 2 == 0);
        if n < 7 {
            rates.add("few", false);
        }
    }
    let kind = |id| rates.finding(id, &Calibration::default()).map(|f| f.kind);
    assert_eq!(kind("never"), Some(Kind::NeverSolved));
    assert_eq!(kind("always"), Some(Kind::AlwaysSolved));
    assert_eq!(kind("once"), Some(Kind::RarelySolved));
    assert_eq!([kind("often"), kind("few"), kind("unknown")], [None; 3]);
    let lower = Calibration {
        floor: 0.01,
        ..Calibration::default()
    };
    assert_eq!(rates.finding("once", &lower), None);
}

#[test]
fn dialogs_are_read_and_lost_ones_left_out() {
    let folder = std::env::temp_dir().join(format!("rlef-audit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("dialogs.jsonl");
    let mut lines: Vec<&str> =
        vec![r#"{"problem":"a","sample":0,"solved":false,"reward":-1.0,"tokens":[1]}"#; 8];
    lines.push(r#"{"problem":"a","sample":8,"lost":"a fault"}"#);
    std::fs::write(&file, lines.join("\n")).unwrap();
    let rates = SolveRates::read(&file).unwrap();
    let finding = rates.finding("a", &Calibration::default()).unwrap();
    assert_eq!(finding.message, "solved 0 of 8 times");
    std::fs::write(&file, "{\"problem\":\"a\"}\n").unwrap();
    let error = SolveRates::read(&file).unwrap_err().to_string();
    assert!(error.contains("dialogs.jsonl, line 1: neither"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}
