//! What an audit can find.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Note,
    /// Worth a look.
    Warning,
    /// The machinery failed; nothing is known of the problem.
    NotChecked,
    /// The problem's verdicts cannot be trusted, or it must not be where it is.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::NotChecked => "not checked",
            Self::Error => "error",
        })
    }
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// The problem's limits or its checker let no program be judged.
    CannotBeJudged,
    /// A program that must be accepted is not.
    SolutionRejected,
    /// A program that must fail is accepted.
    WrongAccepted,
    /// No wrong program that was run fails.
    NoWrongFails,
    /// A program that must be accepted is accepted on some runs only.
    UnstableVerdict,
    /// One list of tests, or two of them, wants different outputs for the same input.
    Contradiction,
    /// Private tests are public ones.
    PrivateIsPublic,
    /// The same statement is in another split or another set, or twice in one split.
    Duplicate,
    /// Nearly the same statement, likewise.
    NearDuplicate,
    /// A wrong program fails with another verdict than it should.
    OtherVerdict,
    /// Accepted, but with different outputs from run to run.
    UnstableOutput,
    /// The slowest accepted program is close to the time limit.
    TightTimeLimit,
    /// A private output stands in the statement or in the public tests.
    LeakedOutput,
    /// A sample of the statement has another output than the public test with its input.
    SampleDiffers,
    /// A sample of the statement is no public test.
    SampleMissing,
    /// Never solved in the evaluation.
    NeverSolved,
    /// Solved each time in the evaluation.
    AlwaysSolved,
    /// Solved less often than the floor.
    RarelySolved,
    /// Tests that no wrong program fails.
    WeakTests,
    /// There is no accepted program that could be run: nothing shows that the problem can be solved.
    NoReference,
    /// Programs in languages that are not run here.
    NotRun,
    /// The machinery failed.
    NotChecked,
}

impl Kind {
    /// Whether it comes from the whole set or from an evaluation, and not from the problem alone.
    pub fn is_of_set(self) -> bool {
        matches!(
            self,
            Self::Duplicate
                | Self::NearDuplicate
                | Self::NeverSolved
                | Self::AlwaysSolved
                | Self::RarelySolved
        )
    }

    /// How bad it is, if the finding itself does not say otherwise.
    pub fn severity(self) -> Severity {
        match self {
            Self::CannotBeJudged
            | Self::SolutionRejected
            | Self::WrongAccepted
            | Self::NoWrongFails
            | Self::UnstableVerdict
            | Self::Contradiction
            | Self::PrivateIsPublic
            | Self::Duplicate => Severity::Error,
            Self::NearDuplicate
            | Self::OtherVerdict
            | Self::UnstableOutput
            | Self::TightTimeLimit
            | Self::LeakedOutput
            | Self::SampleDiffers
            | Self::NeverSolved
            | Self::AlwaysSolved
            | Self::RarelySolved => Severity::Warning,
            Self::SampleMissing | Self::WeakTests | Self::NoReference | Self::NotRun => {
                Severity::Note
            }
            Self::NotChecked => Severity::NotChecked,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::CannotBeJudged => "cannot be judged",
            Self::SolutionRejected => "accepted solution fails",
            Self::WrongAccepted => "wrong solution accepted",
            Self::NoWrongFails => "no wrong solution fails",
            Self::UnstableVerdict => "verdict changes from run to run",
            Self::Contradiction => "tests contradict each other",
            Self::PrivateIsPublic => "private tests are public",
            Self::Duplicate => "duplicate statement",
            Self::NearDuplicate => "near-duplicate statement",
            Self::OtherVerdict => "another failing verdict",
            Self::UnstableOutput => "output changes from run to run",
            Self::TightTimeLimit => "tight time limit",
            Self::LeakedOutput => "private output leaked",
            Self::SampleDiffers => "sample differs from its test",
            Self::SampleMissing => "sample is no public test",
            Self::NeverSolved => "never solved",
            Self::AlwaysSolved => "always solved",
            Self::RarelySolved => "solved below the floor",
            Self::WeakTests => "tests no wrong solution fails",
            Self::NoReference => "no accepted solution was run",
            Self::NotRun => "programs not run",
            Self::NotChecked => "not checked",
        })
    }
}

/// Something about a problem that people should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What.
    pub kind: Kind,
    /// How bad.
    pub severity: Severity,
    /// What exactly, in words.
    pub message: String,
}

impl Finding {
    /// With the usual severity.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            severity: kind.severity(),
            message: message.into(),
        }
    }

    pub(crate) fn with(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }
}
