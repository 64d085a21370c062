//! `rlef problems`: generate, list, show; the longer ones are files of their own.

mod check;
mod export;
mod import;

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use rlef_problems::{
    Checker, Numbers, Problem, ProblemSet, SPLITS, TestCase, WhiteSpace, jsonl, micro,
};

use crate::args::{Family, Generate, List, Problems, ProblemsCommand, Show};
use crate::parts;
use crate::text;

/// The sets that need no file.
const BUNDLED: [&str; 2] = ["basics", "micro"];

/// How much of an input or output is shown, in characters.
const SHOWN: usize = 4000;

pub fn run(args: Problems) -> Result<ExitCode> {
    match args.command {
        ProblemsCommand::Generate(a) => generate(&a)?,
        ProblemsCommand::List(a) => list(&a)?,
        ProblemsCommand::Show(a) => show(&a)?,
        ProblemsCommand::Import(a) => return import::run(&a),
        ProblemsCommand::Export(a) => return export::run(&a),
        ProblemsCommand::Check(a) => return check::run(&a),
    }
    Ok(ExitCode::SUCCESS)
}

fn generate(args: &Generate) -> Result<()> {
    let set = match args.family {
        Family::Micro => micro::generate(args.seed)?,
    };
    let splits = [&set.train, &set.valid, &set.test];
    let paths = SPLITS.map(|name| args.out.join(format!("{name}.jsonl")));
    // Before anything is written: half a family of one seed and half of another would look whole.
    if let Some(path) = paths.iter().find(|path| path.exists() && !args.force) {
        bail!(
            "{} is there already; --force replaces it, or give another --out",
            path.display()
        );
    }
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot make the folder {}", args.out.display()))?;
    let mut said = String::new();
    for (path, problems) in paths.iter().zip(splits) {
        jsonl::write_file(path, problems)?;
        writeln!(said, "{}: {} problems", path.display(), problems.len())?;
    }
    text::print(&said)
}

fn list(args: &List) -> Result<()> {
    let Some(name) = &args.set else {
        return text::print(&bundled()?);
    };
    let set = ProblemSet::open(name)?;
    let splits: Vec<&str> = match &args.split {
        Some(split) => vec![split],
        // `all` is last; where it is not the only one, the others make it up.
        None => {
            let known: Vec<&str> = set.splits().collect();
            let named = known.len().saturating_sub(1);
            known[if named > 0 { 0..named } else { 0..1 }].to_vec()
        }
    };
    let mut rows = vec![];
    for split in splits {
        for problem in set.split(split)? {
            rows.push(vec![
                problem.id.clone(),
                split.to_owned(),
                format!(
                    "{}+{} tests",
                    problem.public_tests.len(),
                    problem.private_tests.len()
                ),
                text::line(title(problem), 70),
            ]);
        }
    }
    text::print(&text::columns(&rows, ""))
}

/// The bundled sets with their splits.
fn bundled() -> Result<String> {
    let mut rows = vec![];
    for name in BUNDLED {
        let set = ProblemSet::open(name)?;
        let splits: Result<Vec<String>> = set
            .splits()
            .map(|split| Ok(format!("{split} {}", set.split(split)?.len())))
            .collect();
        rows.push(vec![name.to_owned(), splits?.join(", ")]);
    }
    Ok(text::columns(&rows, ""))
}

/// What a list calls a problem: its statement says more than a title does, if it is short.
fn title(problem: &Problem) -> &str {
    let first = problem.statement.trim().lines().next().unwrap_or_default();
    if first.chars().count() <= 70 || problem.name.is_empty() {
        first
    } else {
        &problem.name
    }
}

fn show(args: &Show) -> Result<()> {
    let (set, problem) = match &args.problems {
        Some(set) => parts::problem(&args.id, &[set])?,
        None => parts::problem(&args.id, &BUNDLED)?,
    };
    let mut shown = format!("{} ({})", problem.id, set.name());
    if !problem.name.is_empty() {
        write!(shown, ": {}", text::line(&problem.name, 200))?;
    }
    write!(
        shown,
        "\n\n{}\n{} s CPU, {} MiB, compared by {}; {} right and {} wrong solutions\n",
        text::block(&problem.statement, "", 100_000),
        problem.time_limit_s,
        problem.memory_limit_mb,
        checker(&problem.checker),
        problem.solutions.len(),
        problem.wrong_solutions.len()
    )?;
    shown.push_str(&tests("public", &problem.public_tests));
    if args.private {
        shown.push_str(&tests("private", &problem.private_tests));
    } else {
        writeln!(
            shown,
            "\n{} private tests (--private shows them)",
            problem.private_tests.len()
        )?;
    }
    text::print(&shown)
}

fn checker(rule: &Checker) -> String {
    match rule {
        Checker::Lines => "lines".into(),
        Checker::Exact => "bytes".into(),
        Checker::Tokens {
            case_sensitive,
            white_space,
            numbers,
        } => format!(
            "tokens{}{}{}",
            letters(*case_sensitive),
            match white_space {
                WhiteSpace::Lines => "",
                WhiteSpace::Any => ", white space only separates",
                WhiteSpace::Exact => ", white space exact",
            },
            numbers.as_ref().map(within).unwrap_or_default()
        ),
        Checker::AnyOrder { case_sensitive } => {
            format!("lines in any order{}", letters(*case_sensitive))
        }
        Checker::Float {
            abs,
            rel,
            case_sensitive,
        } => format!(
            "numbers within {abs} absolute or {rel} relative{}",
            letters(*case_sensitive)
        ),
        Checker::Value {
            abs,
            rel,
            numbers_by_value,
        } => {
            let kind = if *numbers_by_value {
                ""
            } else {
                ", 2 is not 2.0"
            };
            format!("the returned value (numbers within {abs} or {rel} × the expected one{kind})")
        }
        Checker::ByGroup { otherwise, groups } => {
            let groups = groups.iter();
            let groups = groups.map(|(name, rule)| format!("; {name}: {}", checker(rule)));
            format!("{}{}", checker(otherwise), groups.collect::<String>())
        }
        Checker::Validator(validator) => format!("its output validator ({})", validator.language),
        Checker::Custom(_) => "a program of its own (cannot be judged)".into(),
    }
}

fn within(numbers: &Numbers) -> String {
    let whole = if numbers.integers_exact {
        ", whole ones exact"
    } else {
        ""
    };
    format!(
        ", numbers within {} or {} × the expected one{whole}",
        numbers.abs, numbers.rel
    )
}

fn letters(case_sensitive: bool) -> &'static str {
    if case_sensitive {
        ""
    } else {
        ", letter case ignored"
    }
}

/// Inputs and outputs.
pub fn tests(kind: &str, tests: &[TestCase]) -> String {
    let mut shown = String::new();
    for (i, test) in tests.iter().enumerate() {
        let name = match test.name.as_str() {
            "" => format!("{kind}/{}", i + 1),
            name => text::line(name, 80),
        };
        shown.push_str(&format!(
            "\n{name}: input\n{}{name}: output\n{}",
            text::block(&test.input, "  ", SHOWN),
            text::block(&test.output, "  ", SHOWN)
        ));
    }
    shown
}
