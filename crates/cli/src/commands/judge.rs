//! `rlef judge`: a program on the tests of a problem.

use std::process::ExitCode;

use anyhow::Result;
use rlef_judge::{Fault, JudgeConfig, Report, Stop, TestResult, Verdict};
use rlef_problems::{Problem, TestCase};
use rlef_sandbox::Program;
use serde_json::json;

use crate::args::Judge;
use crate::parts;
use crate::text;

/// Longest detail in the table, in characters.
const DETAIL: usize = 120;

pub fn run(args: &Judge) -> Result<ExitCode> {
    let (set, problem) = match &args.problems {
        Some(set) => parts::problem(&args.problem, &[set])?,
        None => parts::problem(&args.problem, &["basics", "micro"])?,
    };
    let code = parts::program(&args.file)?;
    let language = parts::language(args.language.as_deref(), &args.file);
    let program = Program {
        language: &language,
        source: &code,
    };
    let mut config = JudgeConfig {
        command: args.backend.clone().map(|b| b.0).unwrap_or_default(),
        packages: args.python.packages.clone(),
        ..JudgeConfig::default()
    };
    if let Some(python) = &args.python.python {
        config.python = python.display().to_string();
    }
    let judge = match parts::judge(&config) {
        Ok(judge) => judge,
        Err(error) => return Ok(super::fault(&error)),
    };
    let mut parts: Vec<(&str, &[TestCase])> = vec![];
    if !args.private_only {
        parts.push(("public", &problem.public_tests));
    }
    if !args.public_only {
        parts.push(("private", &problem.private_tests));
    }
    let reports = match judged(&judge, &problem, &program, &parts, args.stop) {
        Ok(reports) => reports,
        Err(error) => return Ok(super::fault(&error.into())),
    };
    let total: usize = parts.iter().map(|(_, tests)| tests.len()).sum();
    let passed: usize = reports.iter().map(|(_, report)| report.passed()).sum();
    let verdict = reports
        .iter()
        .flat_map(|(_, report)| report.failures())
        .next()
        .map_or(Verdict::Accepted, |failure| failure.verdict);
    let accepted = verdict == Verdict::Accepted && passed == total;
    let shown = if args.json {
        let mut object = json!({
            "set": set.name(),
            "problem": problem.id,
            "language": language,
            "accepted": accepted,
            "verdict": verdict,
            "passed": passed,
            "total": total,
        });
        for (name, report) in &reports {
            object[*name] = serde_json::to_value(report)?;
        }
        format!("{}\n", serde_json::to_string_pretty(&object)?)
    } else {
        let tables = reports
            .iter()
            .map(|(name, report)| format!("{name} tests\n{}", table(report)));
        let counts: Vec<String> = parts
            .iter()
            .enumerate()
            .map(|(i, (name, _))| match reports.get(i) {
                Some((_, report)) => format!("{name} {} of {}", report.passed(), report.total),
                None => format!("{name} not run"),
            })
            .collect();
        format!(
            "{}{verdict} (tests accepted: {})\n",
            tables.collect::<String>(),
            counts.join(", ")
        )
    };
    text::print(&shown)?;
    Ok(ExitCode::from(u8::from(!accepted)))
}

/// The reports on each list of tests; with `stop`, none after the first failure.
fn judged<'a>(
    judge: &rlef_judge::Judge,
    problem: &Problem,
    program: &Program,
    parts: &[(&'a str, &[TestCase])],
    stop: bool,
) -> Result<Vec<(&'a str, Report)>, Fault> {
    let when = if stop {
        Stop::AtFirstFailure
    } else {
        Stop::Never
    };
    let mut reports = vec![];
    for (name, tests) in parts {
        let report = judge.judge_program(problem, program, tests, when)?;
        let ends = stop && !report.all_passed();
        reports.push((*name, report));
        if ends {
            break;
        }
    }
    Ok(reports)
}

/// A line for each test. What does not parse is said once, with the whole message.
pub fn table(report: &Report) -> String {
    if report.is_compile_error()
        && let Some(first) = report.results.first()
    {
        let message = text::block(&first.detail.to_string(), "    ", 2000);
        return format!("  all {} tests  compile error\n{message}", report.total);
    }
    let rows: Vec<Vec<String>> = report.results.iter().map(row).collect();
    let mut shown = text::columns(&rows, "  ");
    let left = report.total - report.results.len();
    if left > 0 {
        shown.push_str(&format!("  ({left} more not run)\n"));
    }
    shown
}

fn row(result: &TestResult) -> Vec<String> {
    vec![
        text::line(&result.name, 40),
        result.verdict.to_string(),
        format!("{:.3} s", result.cpu.as_secs_f64()),
        detail(result),
    ]
}

/// The first difference, the exit status … and for a crash the last thing said on stderr.
fn detail(result: &TestResult) -> String {
    let mut detail = result.detail.to_string();
    if result.verdict == Verdict::RuntimeError {
        let stderr = String::from_utf8_lossy(&result.stderr);
        if let Some(last) = stderr.trim_end().lines().last() {
            detail = format!("{detail}: {last}");
        }
    }
    text::line(&detail, DETAIL)
}
