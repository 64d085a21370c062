use rlef_problems::{Problem, TestCase};
use crate::executor::BoxError;
use crate::report::{Detail, Verdict};
pub(crate) fn compare(_p: &Problem, test: &TestCase, got: &[u8]) -> Result<(Verdict, Detail), BoxError> {
    let lines = |b: &[u8]| String::from_utf8_lossy(b).trim_end().lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>();
    Ok(if lines(test.output.as_bytes()) == lines(got) { (Verdict::Accepted, Detail::None) } else { (Verdict::WrongAnswer, Detail::Difference("TEMP".into())) })
}
