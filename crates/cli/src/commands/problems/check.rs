//! `rlef problems check`: the audit of a set. The set is read twice, as it may be larger than the memory: for its
//! statements, and to run its programs; and once more to write what is clean.

mod clean;
mod results;
mod show;

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use rlef_judge::JudgeConfig;
use rlef_judge::audit::{
    AuditConfig, Calibration, Done, Finding, Item, Record, SolveRates, Wording, check_all,
    content_digest, settings_digest,
};
use rlef_problems::{ProblemStream, Similarity};

use crate::args::Check;
use crate::output;
use crate::parts;
use crate::progress::Bar;
use results::Results;

/// What is seen of an output when two runs are compared: its length and so much of its start, in bytes.
const COMPARED: usize = 1 << 20;

/// What the first reading of the set tells.
struct Survey {
    /// Findings about statements, by the number of the problem.
    wording: HashMap<usize, Vec<Finding>>,
    /// Problems of the set, whatever their split.
    total: usize,
    /// Problems to be checked, and programs in them.
    problems: u64,
    programs: u64,
}

pub fn run(args: &Check) -> Result<ExitCode> {
    let rates = args.eval.as_deref().map(SolveRates::read).transpose()?;
    let stream = ProblemStream::open(&args.set, args.split.as_deref())?;
    drop(stream);
    let mut results = Results::open(args.out.as_deref())?;
    if let Some(folder) = &args.write_clean {
        clean::check(folder, &args.set)?;
        output::room(folder, 1)?;
    }
    let config = AuditConfig {
        repeats: args.repeats,
        programs: args.programs.map(|most| most as usize),
        margin: args.margin,
        ..AuditConfig::default()
    };
    let judge_config = JudgeConfig {
        // What is run again is to be run again.
        cache: false,
        kept_stdout_bytes: COMPARED,
        ..JudgeConfig::default()
    };
    let judge = match parts::judge(&judge_config) {
        Ok(judge) => judge,
        Err(error) => return Ok(crate::commands::fault(&error)),
    };
    let stop = parts::stop_flag()?;
    let Some(survey) = survey(args, &stop)? else {
        return interrupted(args, 0);
    };
    let calibration = Calibration {
        floor: args.floor,
        ..Calibration::default()
    };
    let of_set = |number: usize, id: &str| -> Vec<Finding> {
        let wording = survey.wording.get(&number).cloned().unwrap_or_default();
        let rate = rates.as_ref().and_then(|r| r.finding(id, &calibration));
        wording.into_iter().chain(rate).collect()
    };
    let settings = settings_digest(&config, judge.config());
    let workers = args.workers.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        usize::from,
    );
    let bar = Bar::new("check", survey.programs.max(survey.problems));
    let mut records: Vec<Option<Record>> = vec![None; survey.total];
    let (mut programs, mut errors, mut reused) = (0u64, 0u64, 0usize);
    // What is known already is taken over while the set is read, and only the rest goes to the judge.
    let known = std::cell::RefCell::new(vec![]);
    let items = own(args)?.filter_map(|read| match read {
        Err(error) => Some(Err(error)),
        Ok((_, _, false, _)) => None,
        Ok((number, split, true, problem)) => {
            match results.known(&problem.id, &content_digest(&problem), &settings) {
                Some(record) => {
                    let ran = problem.solutions.len() + problem.wrong_solutions.len();
                    known.borrow_mut().push((number, split, record, ran as u64));
                    None
                }
                None => Some(Ok(Item {
                    number,
                    split: split.map(str::to_owned),
                    problem,
                })),
            }
        }
    });
    let journal = results.journal()?;
    let done = check_all(&judge, &config, items, workers, &stop, |done| {
        match done {
            Done::Program => programs += 1,
            Done::Problem { number, mut record } => {
                record.set_findings(of_set(number, &record.problem));
                journal.write(&record)?;
                errors += u64::from(record.has_errors());
                if let Some(place) = records.get_mut(number) {
                    *place = Some(record);
                }
            }
        }
        let before: u64 = known.borrow().iter().map(|k| k.3).sum();
        bar.set(
            programs + before,
            &format!("programs, {errors} problems with errors"),
        );
        Ok(())
    });
    bar.finish();
    for (number, split, mut record, _) in known.into_inner() {
        record.split = split.map(str::to_owned);
        record.set_findings(of_set(number, &record.problem));
        reused += 1;
        if let Some(place) = records.get_mut(number) {
            *place = Some(record);
        }
    }
    let records: Vec<Record> = records.into_iter().flatten().collect();
    let stopped = stop.load(Ordering::SeqCst);
    results.finish(&records, stopped || done.is_err())?;
    done?;
    if stopped {
        return interrupted(args, records.len());
    }
    let summary = show::Summary::new(args, &records, reused, rates.as_ref());
    crate::text::print(&if args.json {
        serde_json::to_string_pretty(&summary.json(&records))? + "\n"
    } else {
        summary.table(&records)
    })?;
    if let Some(folder) = &args.write_clean {
        clean::write(folder, args, &records)?;
    }
    let errors = records.iter().any(Record::has_errors);
    Ok(ExitCode::from(u8::from(errors)))
}

type Own = (usize, Option<&'static str>, bool, rlef_problems::Problem);

/// The problems of the set with their numbers, and whether they are in the split that was asked for.
fn own(args: &Check) -> Result<impl Iterator<Item = Result<Own>>> {
    let stream = ProblemStream::open(&args.set, None)?;
    let wanted = args.split.clone().filter(|split| split != "all");
    Ok(stream.enumerate().map(move |(number, read)| {
        let (split, problem) = read?;
        let chosen = wanted.is_none() || wanted.as_deref() == split;
        Ok((number, split, chosen, problem))
    }))
}

/// Reads the statements of the set and of those it is compared with. None: it was stopped.
fn survey(args: &Check, stop: &AtomicBool) -> Result<Option<Survey>> {
    let bar = Bar::new("read", 0);
    let mut wording = Wording::new(Similarity::default());
    let (mut total, mut problems, mut programs) = (0, 0, 0);
    for read in own(args)? {
        let (_, split, chosen, problem) = read?;
        wording.add_own(split, &problem.id, &problem.statement);
        total += 1;
        if chosen {
            problems += 1;
            programs += (problem.solutions.len() + problem.wrong_solutions.len()) as u64;
        }
        if stop.load(Ordering::SeqCst) {
            return Ok(None);
        }
        bar.resize(total);
        bar.set(total, &format!("problems of {}", args.set));
    }
    let mut others = 0;
    for set in &args.against {
        if same_place(set, &args.set) {
            bail!(
                "--against {set} is the set that is checked; its splits are compared with each other anyway"
            );
        }
        for read in ProblemStream::open(set, None).with_context(|| format!("--against {set}"))? {
            let (split, problem) = read.with_context(|| format!("--against {set}"))?;
            wording.add_other(set, split, &problem.id, &problem.statement);
            if stop.load(Ordering::SeqCst) {
                return Ok(None);
            }
            others += 1;
            bar.resize(others);
            bar.set(others, &format!("problems to compare with, {set}"));
        }
    }
    bar.finish();
    Ok(Some(Survey {
        wording: wording.findings(),
        total: total as usize,
        problems,
        programs,
    }))
}

fn same_place(one: &str, other: &str) -> bool {
    let place = |set: &str| Path::new(set).canonicalize().ok();
    one == other || place(one).is_some_and(|path| place(other) == Some(path))
}

fn interrupted(args: &Check, checked: usize) -> Result<ExitCode> {
    let kept = match &args.out {
        Some(path) => format!(
            "their results are in {}; the same command goes on from there",
            path.display()
        ),
        None => "nothing is kept, as there is no --out".to_owned(),
    };
    crate::say_err!("stopped after {checked} problems; {kept}");
    Ok(ExitCode::from(130))
}
