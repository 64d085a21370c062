//! Harbor task folders: the problem as a task in a container, tests that are uploaded after the agent has finished, and a
//! script that writes the reward.
//!
//! In the container the tests run as another user than the answers belong to, so that a program cannot read them. Only
//! Python programs are asked for, and outputs are compared by `check.py`, which follows [`Checker::compare`].

use super::ExportError;
use crate::{Checker, Problem, TestCase};
use serde_json::json;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const CHECK: &str = include_str!("harbor/check.py");

/// Files that are the same for all tasks.
const TEST_SH: &str = "#!/bin/sh\n# Writes 1 or 0 to /logs/verifier/reward.txt.\nexec python3 \"$(dirname \"$0\")/check.py\"\n";
const SOLVE_SH: &str = "#!/bin/sh\ncp \"$(dirname \"$0\")/solution.py\" /app/solution.py\n";
const DOCKERFILE: &str = "FROM python:3.12-slim\nWORKDIR /app\nCOPY public /app/public\n";

/// Seconds for the agent, and for building its container.
const AGENT_S: u64 = 1800;
const BUILD_S: u64 = 600;

/// Writes a problem as a task folder below `folder`, which is made if it is not there; the task's folder. It is whole or
/// not there: it is written under another name first.
///
/// # Errors
/// When the problem cannot be a task, a task of that name is there already, or it cannot be written.
pub fn write_harbor_task(folder: &Path, problem: &Problem) -> Result<PathBuf, ExportError> {
    let unfit = |why: &str| ExportError::Unfit {
        id: problem.id.clone(),
        why: why.to_owned(),
    };
    if problem.function.is_some() {
        return Err(unfit(
            "its tests call a function, and the task's script runs programs",
        ));
    }
    if matches!(
        problem.checker,
        Checker::Validator(_) | Checker::Custom(_) | Checker::Value { .. }
    ) {
        return Err(unfit(
            "a program of its own checks its outputs, which the task's script does not run",
        ));
    }
    if matches!(problem.checker, Checker::ByGroup { .. }) {
        return Err(unfit(
            "groups of its tests have rules of their own, and the task's script has one for all",
        ));
    }
    let name: String = problem
        .id
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '-'
            }
        })
        .collect();
    let name = name.trim_start_matches('.').to_owned();
    if name.is_empty() {
        return Err(unfit("its id makes no name for a folder"));
    }
    let place = folder.join(&name);
    let fail = |file: &Path, source| ExportError::Io {
        file: file.display().to_string(),
        source,
    };
    if place.exists() {
        return Err(fail(
            &place,
            io::Error::other("is there already; remove it or write elsewhere"),
        ));
    }
    let unfinished = folder.join(format!(".{name}.{}.part", std::process::id()));
    let written = write(&unfinished, problem).and_then(|()| fs::rename(&unfinished, &place));
    if let Err(source) = written {
        let _ = fs::remove_dir_all(&unfinished);
        return Err(fail(&place, source));
    }
    Ok(place)
}

fn write(task: &Path, problem: &Problem) -> io::Result<()> {
    let put = |name: &str, text: &str| {
        let path = task.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, text)?;
        if name.ends_with(".sh") {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        Ok::<(), io::Error>(())
    };
    put("instruction.md", &instruction(problem))?;
    put("task.toml", &settings(problem))?;
    put("environment/Dockerfile", DOCKERFILE)?;
    tests(task, "environment/public", &problem.public_tests)?;
    put("tests/test.sh", TEST_SH)?;
    put("tests/check.py", CHECK)?;
    let checker = serde_json::to_value(&problem.checker)?;
    let config = json!({
        "checker": checker, "time_limit_s": problem.time_limit_s, "memory_limit_mb": problem.memory_limit_mb,
    });
    put("tests/config.json", &format!("{config:#}\n"))?;
    tests(task, "tests/private", &problem.private_tests)?;
    let python = |language: &str| {
        matches!(
            language.to_ascii_lowercase().as_str(),
            "python" | "python3" | "py"
        )
    };
    if let Some(solution) = problem
        .solutions
        .iter()
        .find(|solution| python(&solution.language))
    {
        put("solution/solve.sh", SOLVE_SH)?;
        put("solution/solution.py", &solution.code)?;
    }
    Ok(())
}

fn tests(task: &Path, folder: &str, tests: &[TestCase]) -> io::Result<()> {
    let folder = task.join(folder);
    fs::create_dir_all(&folder)?;
    for (at, test) in tests.iter().enumerate() {
        fs::write(folder.join(format!("{}.in", at + 1)), &test.input)?;
        fs::write(folder.join(format!("{}.out", at + 1)), &test.output)?;
    }
    Ok(())
}

fn instruction(problem: &Problem) -> String {
    format!(
        "{}\n\n---\n\nWrite a Python 3 program to `/app/solution.py` that reads from standard input and writes to standard \
         output. It may use {} s of CPU time and {} MiB of memory on each test. Examples are in `/app/public`: `1.in` is an \
         input, `1.out` its output.\n",
        problem.statement.trim_end(),
        problem.time_limit_s,
        problem.memory_limit_mb
    )
}

fn settings(problem: &Problem) -> String {
    // Tests that take their time, and one that waits as long as `check.py` lets it.
    let verifier = problem.private_tests.len() as f64 * (problem.time_limit_s * 3.0 + 2.0)
        + problem.time_limit_s * 10.0
        + 90.0;
    let memory = problem.memory_limit_mb.max(512).saturating_add(512);
    let id = toml_text(&problem.id);
    format!(
        "version = \"1.0\"\n\n[metadata]\nname = {id}\n\n[verifier]\ntimeout_sec = {verifier:.1}\n\n[agent]\n\
         timeout_sec = {AGENT_S}.0\n\n[environment]\nbuild_timeout_sec = {BUILD_S}.0\ncpus = 1\nmemory = \"{memory}M\"\n\
         allow_internet = false\n"
    )
}

/// A basic string of TOML; JSON's escapes are among those it has.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
