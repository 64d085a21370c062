//! What tests and statements show without anything being run.

use super::*;
use rlef_judge::audit::Severity;

fn without_programs(change: impl FnOnce(&mut Problem)) -> Record {
    let mut problem = square();
    problem.solutions.clear();
    problem.wrong_solutions.clear();
    change(&mut problem);
    let mut record = checked(problem);
    assert_eq!(
        record.findings.pop().map(|f| f.kind),
        Some(Kind::NoReference)
    );
    record
}

#[test]
fn private_tests_that_are_public_are_found() {
    let record = without_programs(|p| p.private_tests[0] = test("c", "2", "4"));
    assert_eq!(
        finding(&record, Kind::PrivateIsPublic).severity,
        Severity::Warning
    );
    let record = without_programs(|p| p.private_tests = p.public_tests.clone());
    assert_eq!(
        finding(&record, Kind::PrivateIsPublic).severity,
        Severity::Error
    );
}

#[test]
fn one_input_with_two_outputs_is_a_contradiction() {
    let record = without_programs(|p| p.generated_tests[0] = test("e", "0\n", "1\n"));
    let message = &finding(&record, Kind::Contradiction).message;
    assert!(
        message.starts_with("private/c and generated/e have"),
        "{message}"
    );
    let record = without_programs(|p| p.generated_tests[0] = test("e", "0\n", " 0 \n\n"));
    assert_eq!(record.findings, [], "the checker takes one for the other");
}

#[test]
fn long_private_outputs_elsewhere_are_leaks_and_short_ones_are_not() {
    let answer = "3 14 15 92 65 35 89 79 32 38\n";
    let leak = |p: &mut Problem| p.private_tests[0].output = answer.into();
    let record = without_programs(|p| {
        leak(p);
        p.statement += "\nThe judge's file has 3 14 15 92 65\n35 89 79 32 38.";
    });
    let message = &finding(&record, Kind::LeakedOutput).message;
    assert!(
        message.contains("1 of 2 private tests stand in the statement: c"),
        "{message}"
    );
    let record = without_programs(|p| {
        leak(p);
        p.public_tests[0].output = format!("first\n{answer}");
    });
    assert!(
        finding(&record, Kind::LeakedOutput)
            .message
            .contains("the public tests")
    );
    let record = without_programs(|p| {
        let same = "NO NO NO NO NO NO NO NO NO NO NO NO NO\n";
        p.private_tests[0].output = same.into();
        p.statement += same;
        p.statement += "Zero gives 0, five gives 25.";
    });
    assert_eq!(record.findings, [], "found anywhere by chance");
}

#[test]
fn samples_are_compared_with_the_public_tests() {
    let sample = |p: &mut Problem, input: &str, output: &str| {
        p.statement += &format!(
            "\n\n## Sample Input\n\n```\n{input}\n```\n\n## Sample Output\n\n```\n{output}\n```\n"
        );
    };
    let record = without_programs(|p| sample(p, " 2", "4 "));
    assert_eq!(record.findings, []);
    let record = without_programs(|p| sample(p, "2", "5"));
    let message = &finding(&record, Kind::SampleDiffers).message;
    assert!(
        message.contains("`5`") && message.contains("`4`"),
        "{message}"
    );
    let record = without_programs(|p| sample(p, "8", "64"));
    finding(&record, Kind::SampleMissing);
    let record = without_programs(|p| sample(p, "-5", "25"));
    assert!(
        finding(&record, Kind::LeakedOutput)
            .message
            .contains("is a private test")
    );
}
