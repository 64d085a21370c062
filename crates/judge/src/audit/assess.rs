//! What the runs of a problem's programs say about the problem.

use std::collections::BTreeMap;

use rlef_problems::Solution;
use rlef_sandbox::visible;

use super::AuditConfig;
use super::finding::{Finding, Kind, Severity};
use super::program::{Run, Tried};
use super::record::Verdicts;
use crate::fault::Fault;
use crate::report::Verdict;

/// Findings of one kind that a problem gets; more are counted.
const MOST: usize = 20;
/// Names of tests in one finding.
const NAMED: usize = 5;

/// A program with what came of it.
pub(super) struct Tally<'a> {
    pub(super) solution: &'a Solution,
    pub(super) tried: &'a Tried,
}

/// What is known of a problem's tests and limits.
pub(super) struct Context<'a> {
    pub(super) config: &'a AuditConfig,
    /// Names of all tests, in the order in which they were run.
    pub(super) tests: &'a [String],
    /// CPU seconds allowed.
    pub(super) limit_s: f64,
}

/// Collects findings, a bounded number of each kind.
#[derive(Default)]
pub(super) struct Findings {
    all: Vec<Finding>,
    more: BTreeMap<Kind, usize>,
}

impl Findings {
    pub(super) fn add(&mut self, finding: Finding) {
        let known = self.all.iter().filter(|f| f.kind == finding.kind).count();
        if known < MOST {
            self.all.push(finding);
        } else {
            *self.more.entry(finding.kind).or_default() += 1;
        }
    }

    /// Worst first.
    pub(super) fn finish(mut self) -> Vec<Finding> {
        for (kind, count) in self.more {
            self.all
                .push(Finding::new(kind, format!("{count} more of this kind")));
        }
        self.all
            .sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.kind));
        self.all
    }
}

/// Looks at the accepted programs, then at the wrong ones.
pub(super) fn assess(
    about: &Context,
    accepted: &[Tally],
    wrong: &[Tally],
    findings: &mut Findings,
) -> (Verdicts, Option<f64>) {
    let mut verdicts = Verdicts::default();
    for tally in accepted.iter().chain(wrong) {
        count(tally, &mut verdicts, findings);
    }
    let slowest = references(about, accepted, findings);
    mistakes(about, wrong, slowest, findings);
    not_run(accepted.iter().chain(wrong), findings);
    (verdicts, slowest)
}

fn count(tally: &Tally, verdicts: &mut Verdicts, findings: &mut Findings) {
    let got = match tally.tried {
        Tried::Ran(runs) => runs.first().map_or("not run", |run| run.verdict().code()),
        Tried::Fault(fault) => {
            let what = format!("{}: {fault}", name(tally.solution));
            let kind = match fault {
                Fault::Validator { .. } => Kind::CannotBeJudged,
                _ => Kind::NotChecked,
            };
            findings.add(Finding::new(kind, what));
            "not checked"
        }
        Tried::NotRunnable | Tried::LeftOut | Tried::Stopped => "not run",
    };
    let expected = tally.solution.expected.clone();
    *verdicts
        .entry(expected)
        .or_default()
        .entry(got.to_owned())
        .or_default() += 1;
}

/// The CPU seconds of the slowest accepted program.
fn references(about: &Context, accepted: &[Tally], findings: &mut Findings) -> Option<f64> {
    let mut slowest: Option<(f64, String)> = None;
    for tally in accepted {
        let Tried::Ran(runs) = tally.tried else {
            continue;
        };
        let file = name(tally.solution);
        if let Some(finding) = verdict_of_reference(about, &file, runs) {
            findings.add(finding);
        }
        if let Some(place) = unstable_output(runs) {
            let test = about.test(place);
            let what = format!("{file} printed something else on {test} when it was run again");
            findings.add(Finding::new(Kind::UnstableOutput, what));
        }
        for run in runs.iter().filter(|run| run.verdict() == Verdict::Accepted) {
            if let Some((place, cpu)) = run.slowest()
                && slowest
                    .as_ref()
                    .is_none_or(|(most, _)| cpu.as_secs_f64() > *most)
            {
                let what = format!(
                    "{file} needs {:.2} s on {}",
                    cpu.as_secs_f64(),
                    about.test(place)
                );
                slowest = Some((cpu.as_secs_f64(), what));
            }
        }
    }
    match &slowest {
        None => {
            if !accepted
                .iter()
                .any(|tally| matches!(tally.tried, Tried::Ran(_)))
            {
                let what = "no accepted program was run, so nothing shows that the tests are right";
                findings.add(Finding::new(Kind::NoReference, what));
            }
        }
        Some((seconds, what)) if seconds * about.config.margin > about.limit_s => {
            let (limit, margin) = (about.limit_s, about.config.margin);
            let what = format!("{what}; the limit of {limit} s is not {margin} times that");
            findings.add(Finding::new(Kind::TightTimeLimit, what));
        }
        Some(_) => {}
    }
    slowest.map(|(seconds, _)| seconds)
}

fn verdict_of_reference(about: &Context, file: &str, runs: &[Run]) -> Option<Finding> {
    let failures: Vec<&Run> = runs
        .iter()
        .filter(|run| run.verdict() != Verdict::Accepted)
        .collect();
    let first = failures.first()?;
    let (place, test) = first.first_failure()?;
    let on = about.test(place);
    let what = format!("{} on {on}{}", test.verdict, detail(&test.detail));
    if failures.len() == runs.len() {
        return Some(Finding::new(
            Kind::SolutionRejected,
            format!("{file}: {what}"),
        ));
    }
    let (failed, all) = (failures.len(), runs.len());
    let what = format!("{file}: {what}, on {failed} of {all} runs");
    // What is accepted at another time of the day is right, and its limit too close.
    let slow = |run: &&Run| run.verdict() == Verdict::TimeLimit;
    let kind = if failures.iter().all(slow) {
        Kind::TightTimeLimit
    } else {
        Kind::UnstableVerdict
    };
    Some(Finding::new(kind, what))
}

/// Among runs that were accepted: what fails is reported as that.
fn unstable_output(runs: &[Run]) -> Option<usize> {
    let mut accepted = runs.iter().filter(|run| run.verdict() == Verdict::Accepted);
    let first = accepted.next()?;
    accepted.find_map(|run| first.first_difference(run))
}

fn mistakes(about: &Context, wrong: &[Tally], slowest: Option<f64>, findings: &mut Findings) {
    let mut ran = 0;
    let mut failing = 0;
    let mut failed: Vec<bool> = vec![false; about.tests.len()];
    for tally in wrong {
        let Tried::Ran(runs) = tally.tried else {
            continue;
        };
        let Some(run) = runs.first() else { continue };
        ran += 1;
        failing += usize::from(run.verdict() != Verdict::Accepted);
        for (failed, test) in failed.iter_mut().zip(&run.0) {
            // What a slow program was not run on it would hardly pass.
            *failed |= test
                .as_ref()
                .is_none_or(|test| test.verdict != Verdict::Accepted);
        }
        if let Some(finding) = verdict_of_mistake(about, tally.solution, run, slowest) {
            findings.add(finding);
        }
    }
    if ran == 0 {
        return;
    }
    if failing == 0 {
        let what = format!("none of {ran} wrong programs fails a test");
        findings.add(Finding::new(Kind::NoWrongFails, what));
        return;
    }
    let weak: Vec<&String> = failed
        .iter()
        .zip(about.tests)
        .filter(|(failed, _)| !**failed)
        .map(|(_, name)| name)
        .collect();
    if !weak.is_empty() {
        let mut named: Vec<String> = weak.iter().take(NAMED).map(|name| shown(name)).collect();
        if weak.len() > NAMED {
            named.push("…".to_owned());
        }
        let what = format!(
            "{} of {} tests are failed by none of {ran} wrong programs: {}",
            weak.len(),
            about.tests.len(),
            named.join(", ")
        );
        findings.add(Finding::new(Kind::WeakTests, what));
    }
}

fn verdict_of_mistake(
    about: &Context,
    solution: &Solution,
    run: &Run,
    slowest: Option<f64>,
) -> Option<Finding> {
    let expected = solution.expected.as_str();
    let file = name(solution);
    let class = match &solution.class {
        Some(class) => format!(" ({})", shown(class)),
        None => String::new(),
    };
    let Some((place, test)) = run.first_failure() else {
        let mut what = format!("{file}{class} should get {expected} and is accepted");
        if expected == "TLE" {
            let most = run.slowest().map_or(0.0, |(_, cpu)| cpu.as_secs_f64());
            what += &format!("; it needs {most:.2} s of {} s", about.limit_s);
            if let Some(slowest) = slowest {
                what += &format!(", the slowest accepted program {slowest:.2} s");
            }
        }
        return Some(Finding::new(Kind::WrongAccepted, what));
    };
    if expected == "NOT_AC" || test.verdict.code() == expected {
        return None;
    }
    let on = about.test(place);
    let mut what = format!(
        "{file}{class} should get {expected} and gets {} on {on}{}",
        test.verdict.code(),
        detail(&test.detail)
    );
    let expected_at = run
        .0
        .iter()
        .position(|test| test.as_ref().is_some_and(|t| t.verdict.code() == expected));
    if let Some(place) = expected_at {
        what += &format!("; {expected} comes later, on {}", about.test(place));
    }
    Some(Finding::new(Kind::OtherVerdict, what))
}

fn not_run<'a>(all: impl Iterator<Item = &'a Tally<'a>>, findings: &mut Findings) {
    let mut languages: BTreeMap<String, usize> = BTreeMap::new();
    let mut left_out = 0;
    for tally in all {
        match tally.tried {
            Tried::NotRunnable => {
                let language = tally.solution.language.to_ascii_lowercase();
                *languages.entry(shown(&language)).or_default() += 1;
            }
            Tried::LeftOut => left_out += 1,
            _ => {}
        }
    }
    let mut parts: Vec<String> = languages
        .iter()
        .map(|(language, count)| format!("{count} in {language}"))
        .collect();
    if left_out > 0 {
        parts.push(format!("{left_out} beyond the number asked for"));
    }
    if !parts.is_empty() {
        let what = format!("programs not run: {}", parts.join(", "));
        findings.add(Finding::new(Kind::NotRun, what).with(Severity::Note));
    }
}

impl Context<'_> {
    fn test(&self, place: usize) -> String {
        let name = self.tests.get(place).map_or("", String::as_str);
        format!("test {}", shown(name))
    }
}

fn name(solution: &Solution) -> String {
    if solution.file.is_empty() {
        format!("a program in {}", shown(&solution.language))
    } else {
        shown(&solution.file)
    }
}

fn detail(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(" ({})", shown(text))
    }
}

/// One line of what others wrote, cut.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 120;
    let line = text.trim_end().replace(['\n', '\r', '\t'], " ");
    let cut: String = line.chars().take(MOST).collect();
    let end = if cut.len() < line.len() { "…" } else { "" };
    format!("{}{end}", visible(cut))
}
