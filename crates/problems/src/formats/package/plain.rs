//! Plain folders: `statement.md`, tests as `public/*.in` with `*.out` or `*.ans`, `private/*` and perhaps `generated/*`
//! alike, and perhaps programs: `solutions/*` that must be accepted, and in folders called like those of packages
//! (`solutions/wrong_answer/*`) that must fail. `problem.json` may name `name`, `time_limit_s`, `memory_limit_mb`,
//! `checker` and `function`, with the meaning that they have in rlef's own format.

use super::files::{Files, join};
use super::submissions::Submissions;
use super::{PackageError, TIME_LIMIT_S, folder_name};
use crate::import::{Found, ImportOptions, Place, id_of};
use crate::{Checker, Problem, TestCase};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;

/// The settings of a problem.
const SETTINGS: &str = "problem.json";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    name: Option<String>,
    time_limit_s: Option<f64>,
    memory_limit_mb: Option<u64>,
    checker: Option<Checker>,
    function: Option<String>,
    #[serde(default)]
    meta: Map<String, Value>,
}

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Found, PackageError> {
    let mut files = Files::open(path, options.max_problem_bytes)?;
    let statement = files
        .text("statement.md")?
        .ok_or_else(|| PackageError::new("statement.md", ".", "is missing"))?;
    let settings = match files.text(SETTINGS)? {
        None => Settings::default(),
        Some(text) => {
            let mut json = serde_json::Deserializer::from_str(&text);
            let read: Result<Settings, _> = serde_path_to_error::deserialize(&mut json);
            read.map_err(|error| {
                PackageError::new(
                    SETTINGS,
                    error.path().to_string(),
                    error.inner().to_string(),
                )
            })?
        }
    };
    let mut notes = Vec::new();
    let mut too_large = 0;
    let [public_tests, private_tests, generated_tests] = ["public", "private", "generated"]
        .map(|folder| tests(&mut files, folder, options.max_test_bytes, &mut too_large));
    let (public_tests, private_tests, generated_tests) =
        (public_tests?, private_tests?, generated_tests?);
    if too_large > 0 {
        notes.push(format!(
            "{too_large} tests are larger than the limit for one and left out"
        ));
    }
    let submissions = Submissions::read_plain(&mut files)?;
    notes.extend(submissions.notes);
    let id = id_of(
        &path
            .canonicalize()
            .ok()
            .as_deref()
            .and_then(folder_name)
            .unwrap_or_default(),
    );
    let title = statement
        .trim_start()
        .strip_prefix("# ")
        .and_then(|rest| rest.lines().next());
    let mut meta = settings.meta;
    let time_limit_s = settings.time_limit_s.unwrap_or_else(|| {
        meta.insert("time_limit_from".to_owned(), "default".into());
        options.time_limit_s.unwrap_or(TIME_LIMIT_S)
    });
    let by_value = Checker::Value {
        abs: 0.0,
        rel: 0.0,
        numbers_by_value: true,
    };
    let checker = match (&settings.function, settings.checker) {
        (_, Some(checker)) => checker,
        (Some(_), None) => by_value,
        (None, None) => Checker::default(),
    };
    Ok(Found {
        place: Place::Whole,
        problem: Problem {
            name: settings
                .name
                .or_else(|| title.map(|title| title.trim().to_owned()))
                .unwrap_or_else(|| id.clone()),
            id,
            statement,
            time_limit_s,
            memory_limit_mb: settings.memory_limit_mb.unwrap_or(options.memory_limit_mb),
            checker,
            function: settings.function,
            public_tests,
            private_tests,
            generated_tests,
            solutions: submissions.right,
            wrong_solutions: submissions.wrong,
            meta,
        },
        notes,
    })
}

fn tests(
    files: &mut Files,
    folder: &str,
    most: Option<u64>,
    too_large: &mut usize,
) -> Result<Vec<TestCase>, PackageError> {
    let names = files.list(folder)?;
    let has = |name: &str| names.iter().any(|(known, _)| known == name);
    let mut tests = Vec::new();
    for (name, is_folder) in &names {
        let Some(stem) = name.strip_suffix(".in").filter(|_| !is_folder) else {
            continue;
        };
        let input = join(folder, name);
        let answer = [".out", ".ans"]
            .iter()
            .map(|end| format!("{stem}{end}"))
            .find(|name| has(name));
        let Some(answer) = answer else {
            let what = format!("has no output; `{stem}.out` or `{stem}.ans` is missing");
            return Err(PackageError::new(input, ".", what));
        };
        let answer = join(folder, &answer);
        let size = files
            .size(&input)?
            .unwrap_or(0)
            .saturating_add(files.size(&answer)?.unwrap_or(0));
        if most.is_some_and(|most| size > most) {
            *too_large += 1;
            continue;
        }
        let missing =
            |path: &str| PackageError::new(path, ".", "cannot be read; does a link lead nowhere?");
        tests.push(TestCase {
            name: join(folder, stem),
            input: files.text(&input)?.ok_or_else(|| missing(&input))?,
            output: files.text(&answer)?.ok_or_else(|| missing(&answer))?,
        });
    }
    // `10` comes after `9`: by length first, as far as names are numbers.
    tests.sort_by_key(|test| {
        let number = test
            .name
            .rsplit('/')
            .next()
            .and_then(|stem| stem.parse::<u64>().ok());
        (number.is_none(), number, test.name.clone())
    });
    Ok(tests)
}
