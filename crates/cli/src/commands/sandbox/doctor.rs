//! `rlef sandbox doctor`: each protection, whether it is in force, and what to do where it is not.

use std::process::ExitCode;

use anyhow::Result;
use rlef_sandbox::{Config, LanguageStatus, Protection, Sandbox};
use serde_json::json;

use crate::args::Doctor;
use crate::text;

pub fn run(args: &Doctor) -> Result<ExitCode> {
    // Not strict: to tell of what is missing it has to be set up without.
    let config = Config {
        interpreter: args.python.python.clone(),
        packages: args.python.packages.clone(),
        strict: false,
        ..Config::default()
    };
    let sandbox = match Sandbox::new(config) {
        Ok(sandbox) => sandbox,
        Err(fault) if args.json => {
            let report = json!({ "ready": false, "fault": fault.to_string() });
            text::print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?;
            return Ok(ExitCode::from(1));
        }
        Err(fault) => {
            crate::say!(
                "no sandbox on this machine: {}",
                text::visible(&fault.to_string())
            );
            return Ok(ExitCode::from(1));
        }
    };
    let protections = sandbox.protections();
    let missing = |p: &&Protection| p.required && !p.in_force;
    let ready = !protections.iter().any(|p| missing(&p));
    if args.json {
        let report = json!({
            "ready": ready,
            "python": sandbox.python_version(),
            "protections": protections,
            "languages": sandbox.languages(),
        });
        text::print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        text::print(&table(&protections))?;
        text::print(&format!("\n{}", languages(&sandbox.languages())))?;
        crate::say!(
            "\nPython {}; {}",
            sandbox.python_version(),
            if ready {
                "untrusted programs may run"
            } else {
                "a required protection is missing: untrusted programs are refused"
            }
        );
    }
    Ok(ExitCode::from(u8::from(!ready)))
}

/// What is longer is of no use in a line.
const DETAIL: usize = 100;

fn table(protections: &[Protection]) -> String {
    let rows: Vec<Vec<String>> = protections
        .iter()
        .map(|p| {
            let state = match (p.in_force, p.required) {
                (true, _) => "in force",
                (false, true) => "MISSING",
                (false, false) => "not in force",
            };
            let detail = if p.in_force {
                text::line(&p.detail, DETAIL)
            } else {
                text::visible(&p.detail)
            };
            vec![p.name.to_owned(), state.to_owned(), detail]
        })
        .collect();
    text::columns(&rows, "")
}

/// Absent tools are no fault of the sandbox: programs that need them are refused, not failed.
fn languages(languages: &[LanguageStatus]) -> String {
    let row = |l: &LanguageStatus| {
        let (state, detail) = match &l.tools {
            Ok(version) => ("can be run", version),
            Err(sought) => ("absent", sought),
        };
        vec![
            l.title.clone(),
            state.to_owned(),
            text::line(detail, DETAIL),
        ]
    };
    text::columns(&languages.iter().map(row).collect::<Vec<_>>(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_stands_out_and_is_told_in_full() {
        let protection = |name, in_force, required, detail: &str| Protection {
            name,
            in_force,
            required,
            detail: detail.to_owned(),
        };
        let advice = format!("shared with the host: {}", "do this and that ".repeat(10));
        let shown = table(&[
            protection("private root", true, true, &"bin ".repeat(100)),
            protection("network namespace", false, true, &advice),
            protection("warm interpreter", false, false, "switched off"),
        ]);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[0].contains("in force") && lines[0].contains("more characters"));
        assert!(lines[1].contains("MISSING") && lines[1].contains(advice.trim_end()));
        assert!(lines[2].contains("not in force"));
    }
}
