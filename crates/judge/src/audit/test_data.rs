//! What the tests of a problem say about each other and about its statement, without anything being run.

use std::collections::{HashMap, HashSet};

use rlef_problems::{Checker, Problem, TestCase};

use super::AuditConfig;
use super::assess::{Findings, shown};
use super::finding::{Finding, Kind, Severity};
use super::samples::samples;

/// Names in one finding.
const NAMED: usize = 5;

pub(super) fn look(problem: &Problem, config: &AuditConfig, findings: &mut Findings) {
    private_is_public(problem, findings);
    contradictions(problem, findings);
    leaks(problem, config, findings);
    if problem.function.is_none() {
        check_samples(problem, findings);
    }
}

/// Names of all tests in the order public, private, generated. A name that several lists may have says its list.
pub(super) fn names(problem: &Problem) -> Vec<String> {
    let lists = [
        ("public", &problem.public_tests),
        ("private", &problem.private_tests),
        ("generated", &problem.generated_tests),
    ];
    let mut names = Vec::new();
    for (list, tests) in lists {
        for (place, test) in tests.iter().enumerate() {
            names.push(match test.name.as_str() {
                "" => format!("{list}/{}", place + 1),
                name if name.contains(list) => name.to_owned(),
                name => format!("{list}/{name}"),
            });
        }
    }
    names
}

fn all(problem: &Problem) -> impl Iterator<Item = &TestCase> {
    let further = problem.private_tests.iter().chain(&problem.generated_tests);
    problem.public_tests.iter().chain(further)
}

fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Inputs as programs read them: white space at the end is hardly ever looked at.
fn input(test: &TestCase) -> &str {
    test.input.trim_end()
}

fn private_is_public(problem: &Problem, findings: &mut Findings) {
    let public: HashSet<&str> = problem.public_tests.iter().map(input).collect();
    let same: Vec<&TestCase> = problem
        .private_tests
        .iter()
        .filter(|test| public.contains(input(test)))
        .collect();
    let (count, of) = (same.len(), problem.private_tests.len());
    if count == 0 {
        return;
    }
    let severity = if count == of {
        Severity::Error
    } else {
        Severity::Warning
    };
    let what = format!("{count} of {of} private tests have the input of a public one");
    findings.add(Finding::new(Kind::PrivateIsPublic, what).with(severity));
}

/// Where a program decides, several outputs may be right.
fn decides_itself(problem: &Problem) -> bool {
    matches!(
        problem.checker,
        Checker::Validator(_) | Checker::Custom(_) | Checker::Value { .. }
    )
}

/// Whether one output is as good as the other.
fn agree(problem: &Problem, test: &str, one: &str, other: &str) -> bool {
    let same = |a: &str, b: &str| {
        let checker = problem.checker.for_test(test);
        let compared = checker.compare(a.as_bytes(), b.as_bytes());
        compared.is_ok_and(|comparison| comparison.is_same())
    };
    folded(one) == folded(other) || same(one, other) || same(other, one)
}

fn contradictions(problem: &Problem, findings: &mut Findings) {
    if decides_itself(problem) {
        return;
    }
    let names = names(problem);
    let mut known: HashMap<&str, (&str, &TestCase)> = HashMap::new();
    for (name, test) in names.iter().zip(all(problem)) {
        let Some((first, earlier)) = known.get(test.input.as_str()) else {
            known.insert(&test.input, (name, test));
            continue;
        };
        if !agree(problem, &test.name, &earlier.output, &test.output) {
            let what = format!(
                "{} and {} have the same input and different outputs",
                shown(first),
                shown(name)
            );
            findings.add(Finding::new(Kind::Contradiction, what));
        }
    }
}

fn leaks(problem: &Problem, config: &AuditConfig, findings: &mut Findings) {
    let statement = folded(&problem.statement);
    let mut public = String::new();
    let mut inputs: HashSet<&str> = HashSet::new();
    for test in &problem.public_tests {
        public += &format!("{} \n {} \n ", folded(&test.input), folded(&test.output));
        inputs.insert(input(test));
    }
    let mut places: [Vec<&str>; 2] = [vec![], vec![]];
    for test in &problem.private_tests {
        let output = folded(&test.output);
        // Those that are public tests altogether are another finding.
        if !means_something(&output, config.leak_chars) || inputs.contains(input(test)) {
            continue;
        }
        for (texts, names) in [&statement, &public].into_iter().zip(&mut places) {
            if texts.contains(&output) {
                names.push(&test.name);
            }
        }
    }
    let [in_statement, in_public] = places;
    for (place, names) in [
        ("the statement", in_statement),
        ("the public tests", in_public),
    ] {
        if names.is_empty() {
            continue;
        }
        let shown: Vec<String> = names.iter().take(NAMED).map(|name| shown(name)).collect();
        let what = format!(
            "the outputs of {} of {} private tests stand in {place}: {}",
            names.len(),
            problem.private_tests.len(),
            shown.join(", ")
        );
        findings.add(Finding::new(Kind::LeakedOutput, what));
    }
}

/// Short outputs, and those of few different words ("YES NO NO …"), are found anywhere by chance.
fn means_something(output: &str, least: usize) -> bool {
    const WORDS: usize = 4;
    if output.chars().count() < least {
        return false;
    }
    let words: HashSet<&str> = output.split(' ').collect();
    let variety = |word: &&str| {
        word.chars().count() >= least && word.chars().collect::<HashSet<_>>().len() >= 2 * WORDS
    };
    words.len() >= WORDS || words.iter().any(variety)
}

fn check_samples(problem: &Problem, findings: &mut Findings) {
    fn by_input(tests: &[TestCase]) -> HashMap<String, &TestCase> {
        let pairs = tests.iter().map(|test| (folded(&test.input), test));
        pairs.collect()
    }
    let found = samples(&problem.statement);
    if found.is_empty() {
        return;
    }
    let (public, private) = (
        by_input(&problem.public_tests),
        by_input(&problem.private_tests),
    );
    for (at, sample) in found.iter().enumerate() {
        let at = at + 1;
        let input = folded(&sample.input);
        match (public.get(&input), private.contains_key(&input)) {
            (Some(test), _) => {
                let (name, output) = (&test.name, &test.output);
                if !decides_itself(problem) && !agree(problem, name, output, &sample.output) {
                    let what = format!(
                        "sample {at} shows `{}`, the public test with its input wants `{}`",
                        shown(&folded(&sample.output)),
                        shown(&folded(output))
                    );
                    findings.add(Finding::new(Kind::SampleDiffers, what));
                }
            }
            (None, true) => {
                let what = format!("sample {at} of the statement is a private test");
                findings.add(Finding::new(Kind::LeakedOutput, what));
            }
            (None, false) => {
                let what = format!("sample {at} of the statement is no public test");
                findings.add(Finding::new(Kind::SampleMissing, what));
            }
        }
    }
}
