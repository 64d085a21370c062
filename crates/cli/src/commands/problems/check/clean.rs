//! The set without the problems that have errors.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use rlef_judge::audit::Record;
use rlef_problems::{Imported, SPLITS, SetWriter, Sink};

use super::own;
use crate::args::Check;

/// A clean set never takes the place of anything.
pub fn check(folder: &Path, set: &str) -> Result<()> {
    if super::same_place(&folder.display().to_string(), set) {
        bail!(
            "--write-clean {} is the set itself; give a new folder",
            folder.display()
        );
    }
    for split in SPLITS {
        let path = folder.join(format!("{split}.jsonl"));
        if path.exists() {
            bail!(
                "{} is there already; a clean set is written to a new folder",
                path.display()
            );
        }
    }
    Ok(())
}

/// Writes it, each problem to its split; those of a set without splits to the one that the set's name begins with, else
/// to `train`.
pub fn write(folder: &Path, args: &Check, records: &[Record]) -> Result<()> {
    let wrong: HashSet<&str> = records
        .iter()
        .filter(|record| record.has_errors())
        .map(|record| record.problem.as_str())
        .collect();
    let stem = Path::new(&args.set).file_stem().unwrap_or_default();
    let named = SPLITS.into_iter().find(|split| *split == stem);
    let mut writer = SetWriter::create(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let mut count = 0u64;
    for read in own(args)? {
        let (_, split, chosen, problem) = read?;
        if !chosen || wrong.contains(problem.id.as_str()) {
            continue;
        }
        writer.problem(Imported {
            problem,
            split: split.or(named).map(str::to_owned),
            notes: vec![],
        })?;
        count += 1;
    }
    if count == 0 {
        bail!("every problem has errors; {} gets none", folder.display());
    }
    let files = writer.finish()?;
    let names: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    crate::say_err!(
        "{count} problems without errors in {}, {} left out",
        names.join(", "),
        wrong.len()
    );
    Ok(())
}
