//! The rollouts of a run on disk: one file an iteration, one episode a line, compressed (`zstd -dc`, `zstdcat`).

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rlef_rl::Record;

/// The folder within a run's.
pub const TRAJECTORIES: &str = "trajectories";

/// The file of an iteration.
pub fn path(run: &Path, step: usize) -> PathBuf {
    run.join(TRAJECTORIES)
        .join(format!("step_{step}.jsonl.zst"))
}

/// Writes the episodes of an iteration.
///
/// # Errors
/// If they cannot be written; then there is no such file.
pub fn write(run: &Path, step: usize, records: &[Record]) -> Result<()> {
    let path = path(run, step);
    let part = path.with_extension("part");
    let wrong = || format!("cannot write {}", path.display());
    let fill = || -> Result<()> {
        fs::create_dir_all(run.join(TRAJECTORIES))?;
        let mut out = BufWriter::new(zstd::Encoder::new(File::create(&part)?, 0)?);
        for record in records {
            serde_json::to_writer(&mut out, record)?;
            out.write_all(b"\n")?;
        }
        out.into_inner()
            .map_err(|e| e.into_error())?
            .finish()?
            .flush()?;
        Ok(fs::rename(&part, &path)?)
    };
    fill().with_context(wrong).inspect_err(|_| {
        let _ = fs::remove_file(&part);
    })
}

/// Reads the episodes of an iteration.
///
/// # Errors
/// A file that is not there or not whole.
pub fn read(run: &Path, step: usize) -> Result<Vec<Record>> {
    let path = path(run, step);
    let wrong = || format!("cannot read {}", path.display());
    let file = File::open(&path).with_context(wrong)?;
    let lines = BufReader::new(zstd::Decoder::new(file).with_context(wrong)?);
    let mut records = vec![];
    for (i, line) in (1..).zip(lines.lines()) {
        let line = line.with_context(wrong)?;
        let record = serde_json::from_str(&line)
            .with_context(|| format!("line {i} of {} is no rollout", path.display()))?;
        records.push(record);
    }
    if records.is_empty() {
        bail!("{} holds no rollouts", path.display());
    }
    Ok(records)
}

/// The iterations whose episodes are there, the first one first.
pub fn steps(run: &Path) -> Vec<usize> {
    let names = fs::read_dir(run.join(TRAJECTORIES))
        .into_iter()
        .flatten()
        .flatten();
    let mut steps: Vec<usize> = names
        .filter_map(|e| {
            let name = e.file_name();
            let step = name.to_str()?.strip_prefix("step_")?;
            step.strip_suffix(".jsonl.zst")?.parse().ok()
        })
        .collect();
    steps.sort_unstable();
    steps
}

/// Removes those of iterations after `step`, and what was half-written.
///
/// # Errors
/// A file that cannot be removed.
pub fn cut(run: &Path, step: usize) -> Result<()> {
    for entry in fs::read_dir(run.join(TRAJECTORIES))
        .into_iter()
        .flatten()
        .flatten()
    {
        if entry.path().extension().is_some_and(|e| e == "part") {
            fs::remove_file(entry.path())?;
        }
    }
    for later in steps(run).into_iter().filter(|&s| s > step) {
        let path = path(run, later);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}
