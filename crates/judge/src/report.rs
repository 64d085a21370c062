//! Verdicts and reports.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

/// What a test says of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It exited with status 0, met no limit, and printed what was expected.
    Accepted,
    /// It exited with status 0 and printed something else.
    WrongAnswer,
    /// It exited with another status or was killed by a signal.
    RuntimeError,
    /// It used up its CPU time or its wall-clock time.
    TimeLimit,
    /// It asked for more memory than it was allowed.
    MemoryLimit,
    /// It wrote more than it was allowed.
    OutputLimit,
    /// It does not parse; no test can be run.
    CompileError,
    /// It made a system call that the policy forbids.
    Forbidden,
}

impl Verdict {
    /// Every verdict, in order.
    pub const ALL: [Self; 8] = [
        Self::Accepted,
        Self::WrongAnswer,
        Self::RuntimeError,
        Self::TimeLimit,
        Self::MemoryLimit,
        Self::OutputLimit,
        Self::CompileError,
        Self::Forbidden,
    ];

    /// The short code problem packages use: `AC`, `WA`, `RTE`, `TLE`, `MLE`, `OLE`, `CE`, `FORBIDDEN`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Accepted => "AC",
            Self::WrongAnswer => "WA",
            Self::RuntimeError => "RTE",
            Self::TimeLimit => "TLE",
            Self::MemoryLimit => "MLE",
            Self::OutputLimit => "OLE",
            Self::CompileError => "CE",
            Self::Forbidden => "FORBIDDEN",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Accepted => "accepted",
            Self::WrongAnswer => "wrong answer",
            Self::RuntimeError => "runtime error",
            Self::TimeLimit => "time limit",
            Self::MemoryLimit => "memory limit",
            Self::OutputLimit => "output limit",
            Self::CompileError => "compile error",
            Self::Forbidden => "forbidden",
        })
    }
}

/// What is known beyond the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Nothing.
    None,
    /// Wrong answer: where the output first differs from the expected one.
    Difference(String),
    /// Wrong answer: an output validator said so, with its message if it left one.
    Validator(String),
    /// No value came from the function that was called, and why.
    NoValue(String),
    /// The program's exit status.
    ExitStatus(i32),
    /// The signal that killed it.
    Signal(i32),
    /// The number of the forbidden system call, where the kernel told it.
    SystemCall(Option<i64>),
    /// The compiler's message.
    Compiler(String),
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Difference(text)
            | Self::Validator(text)
            | Self::Compiler(text)
            | Self::NoValue(text) => f.write_str(text),
            Self::ExitStatus(status) => write!(f, "exit status {status}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
            Self::SystemCall(Some(number)) => write!(f, "system call {number}"),
            Self::SystemCall(None) => f.write_str("a forbidden system call"),
        }
    }
}

/// What became of one test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestResult {
    /// The test's name; its number in the list, from 1, if it has none.
    pub name: String,
    /// Its place in the list of tests given to the judge, from 0.
    pub index: usize,
    /// The verdict.
    pub verdict: Verdict,
    /// The start of what the program wrote to stdout.
    #[serde(serialize_with = "lossy")]
    pub stdout: Vec<u8>,
    /// How many bytes it wrote to stdout in all.
    pub stdout_len: usize,
    /// What its function returned, as Python would write it; `None` if no function was called or nothing came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<String>,
    /// The end of what it wrote to stderr.
    #[serde(serialize_with = "lossy")]
    pub stderr: Vec<u8>,
    /// CPU time used.
    #[serde(rename = "cpu_s", serialize_with = "seconds")]
    pub cpu: Duration,
    /// Wall-clock time used.
    #[serde(rename = "wall_s", serialize_with = "seconds")]
    pub wall: Duration,
    /// First difference, exit status, signal …
    pub detail: Detail,
}

fn lossy<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(bytes))
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

/// What became of the tests, in their order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The tests that were run (all, or up to the first failure).
    pub results: Vec<TestResult>,
    /// How many tests there were to run.
    pub total: usize,
}

impl Report {
    /// Whether there was at least one test and every test was run and accepted.
    pub fn all_passed(&self) -> bool {
        self.total > 0 && self.results.len() == self.total && self.passed() == self.total
    }

    /// How many tests were accepted.
    pub fn passed(&self) -> usize {
        self.results
            .iter()
            .filter(|r| r.verdict == Verdict::Accepted)
            .count()
    }

    /// The tests that were run and not accepted.
    pub fn failures(&self) -> impl Iterator<Item = &TestResult> {
        self.results
            .iter()
            .filter(|r| r.verdict != Verdict::Accepted)
    }

    /// The verdict on the whole: accepted if all passed, else that of the first failure. `None` if the tests that
    /// were run passed but not all were run, which [`Judge::judge`](crate::Judge::judge) never returns.
    pub fn verdict(&self) -> Option<Verdict> {
        match self.failures().next() {
            Some(failure) => Some(failure.verdict),
            None => self.all_passed().then_some(Verdict::Accepted),
        }
    }

    /// Whether the program does not parse.
    pub fn is_compile_error(&self) -> bool {
        self.verdict() == Some(Verdict::CompileError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(index: usize, verdict: Verdict) -> TestResult {
        TestResult {
            name: (index + 1).to_string(),
            index,
            verdict,
            stdout: Vec::new(),
            stdout_len: 0,
            returned: None,
            stderr: Vec::new(),
            cpu: Duration::ZERO,
            wall: Duration::ZERO,
            detail: Detail::None,
        }
    }

    #[test]
    fn passing_needs_a_test_and_all_of_them() {
        let report = |verdicts: &[Verdict], total| Report {
            results: verdicts
                .iter()
                .enumerate()
                .map(|(i, v)| result(i, *v))
                .collect(),
            total,
        };
        use Verdict::{Accepted, TimeLimit, WrongAnswer};
        assert!(report(&[Accepted, Accepted], 2).all_passed());
        assert!(!report(&[], 0).all_passed());
        assert!(!report(&[Accepted], 2).all_passed(), "one test was not run");
        assert!(!report(&[Accepted, WrongAnswer], 2).all_passed());
        assert_eq!(
            report(&[Accepted, TimeLimit, WrongAnswer], 3).verdict(),
            Some(TimeLimit)
        );
        assert_eq!(report(&[Accepted, Accepted], 2).verdict(), Some(Accepted));
        assert_eq!(report(&[Accepted], 2).verdict(), None);
    }

    #[test]
    fn every_verdict_has_its_words_and_its_own_code() {
        let words: Vec<_> = Verdict::ALL.iter().map(ToString::to_string).collect();
        let codes: std::collections::HashSet<_> = Verdict::ALL.iter().map(|v| v.code()).collect();
        assert_eq!(codes.len(), Verdict::ALL.len());
        assert_eq!(words[1], "wrong answer");
        assert_eq!(format!("{:>14}|", Verdict::TimeLimit), "    time limit|");
    }
}
