//! From the checker's comparison to a verdict and the words for a difference.

use rlef_problems::{Checker, CheckerError, Comparison, Difference};

use crate::report::{Detail, Verdict};

/// Accepted or wrong answer.
pub(crate) fn compare(
    checker: &Checker,
    expected: &str,
    stdout: &[u8],
) -> Result<(Verdict, Detail), CheckerError> {
    Ok(match checker.compare(expected.as_bytes(), stdout)? {
        Comparison::Same => (Verdict::Accepted, Detail::None),
        Comparison::Differs(difference) => {
            (Verdict::WrongAnswer, Detail::Difference(words(&difference)))
        }
    })
}

/// Whether the checker can compare at all, what programs print or what functions return.
pub(crate) fn usable(checker: &Checker, function: bool) -> Result<(), CheckerError> {
    if function {
        return match checker {
            Checker::Value { .. } => checker.check(),
            _ => Err(CheckerError::Value),
        };
    }
    match checker {
        // It is not compared but run.
        Checker::Validator(_) => Ok(()),
        checker => checker.compare(b"", b"").map(|_| ()),
    }
}

fn words(difference: &Difference) -> String {
    let line = difference.line;
    match (&difference.expected, &difference.got) {
        (Some(expected), Some(got)) => format!("line {line}: `{got}` instead of `{expected}`"),
        (Some(expected), None) => format!("line {line}: the output ends before `{expected}`"),
        (None, Some(got)) => format!("line {line}: `{got}` after the expected end"),
        (None, None) => format!("line {line} differs"),
    }
}
