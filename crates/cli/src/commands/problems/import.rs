//! `rlef problems import`: problems of another format become a set.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use rlef_problems::{
    ImportOptions, Imported, LeftOut, Progress, SPLITS, SetWriter, Sink, Summary, import,
};

use crate::args::Import;
use crate::output;
use crate::parts;
use crate::progress::Bar;
use crate::text;

/// Notes, and problems left out, that are shown at the end.
const SHOWN: usize = 10;
/// Longest line of them, in characters.
const LINE: usize = 300;

pub fn run(args: &Import) -> Result<ExitCode> {
    let options = ImportOptions {
        format: args.format,
        skip_bad: args.skip_bad,
        split: args.split.clone(),
        time_limit_s: args.time_limit.map(|limit| limit.as_secs_f64()),
        memory_limit_mb: args.memory_limit,
        generated_as_private: args.generated_as_private,
        tuples_as_lists: args.tuples_as_lists,
        max_test_bytes: args.max_test_bytes,
        ..ImportOptions::default()
    };
    output::room(&args.out, 1)?;
    let stop = parts::stop_flag()?;
    let new = !args.out.exists();
    let result = read(args, &options, &stop);
    if result.is_err() && new {
        // Only if nothing else has been put there.
        let _ = std::fs::remove_dir(&args.out);
    }
    if stop.load(Ordering::SeqCst) && result.is_err() {
        crate::say_err!("stopped; nothing was written");
        return Ok(ExitCode::from(130));
    }
    let (summary, sink) = result?;
    text::print(&said(args, &summary, sink)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Asked when a split gets its first problem, as only the files' names tell their splits.
fn free(folder: &Path, split: &str, force: bool) -> Result<()> {
    let path = folder.join(format!("{split}.jsonl"));
    if path.exists() && !force {
        bail!(
            "{} is there already; --force replaces it, or give another --out",
            path.display()
        );
    }
    Ok(())
}

fn read<'a>(
    args: &'a Import,
    options: &ImportOptions,
    stop: &'a AtomicBool,
) -> Result<(Summary, Counting<'a>)> {
    let writer = SetWriter::create(&args.out)
        .with_context(|| format!("cannot make the folder {}", args.out.display()))?;
    let mut sink = Counting {
        writer,
        args,
        stop,
        splits: BTreeMap::new(),
    };
    let bar = Bar::new("import", 0);
    let result = import(&args.source, options, &mut sink, &mut |now| show(&bar, now));
    bar.finish();
    Ok((result?, sink))
}

/// By problems where their number is known, else by bytes.
fn show(bar: &Bar, now: &Progress) {
    let name = Path::new(&now.file).file_name().unwrap_or_default();
    let name = text::line(&name.to_string_lossy(), 40);
    match now.total_rows {
        Some(total) => {
            bar.resize(total);
            bar.set(now.rows, &format!("problems, {name}"));
        }
        None => {
            bar.resize(now.total_bytes >> 10);
            bar.set(
                now.bytes >> 10,
                &format!("KiB, {} problems, {name}", now.rows),
            );
        }
    }
}

/// Writes the set, counts, and ends the import where it should end.
struct Counting<'a> {
    writer: SetWriter,
    args: &'a Import,
    stop: &'a AtomicBool,
    splits: BTreeMap<String, u64>,
}

impl Counting<'_> {
    fn go_on(&self) -> io::Result<()> {
        if self.stop.load(Ordering::SeqCst) {
            return Err(io::Error::other("stopped"));
        }
        Ok(())
    }
}

impl Sink for Counting<'_> {
    fn problem(&mut self, imported: Imported) -> io::Result<()> {
        self.go_on()?;
        let split = imported.split.as_deref().unwrap_or(SPLITS[0]).to_owned();
        if !self.splits.contains_key(&split) {
            free(&self.args.out, &split, self.args.force).map_err(io::Error::other)?;
        }
        self.writer.problem(imported)?;
        *self.splits.entry(split).or_default() += 1;
        Ok(())
    }

    fn left_out(&mut self, left_out: LeftOut) -> io::Result<()> {
        self.go_on()?;
        self.writer.left_out(left_out)
    }
}

/// What came of it, for people.
fn said(args: &Import, summary: &Summary, sink: Counting) -> Result<String> {
    let (notes, left_out) = (sink.writer.notes.clone(), sink.writer.left_out.clone());
    let unkept = sink.writer.words_dropped();
    sink.writer.finish()?;
    let formats: Vec<&str> = summary.formats.iter().map(|format| format.name()).collect();
    let mut said = format!(
        "{} ({}): {} problems\n",
        args.source.display(),
        formats.join(", "),
        summary.problems
    );
    for (split, count) in &sink.splits {
        let path = args.out.join(format!("{split}.jsonl"));
        writeln!(said, "  {}: {count} problems", path.display())?;
    }
    if summary.skipped > 0 {
        writeln!(said, "  skipped as unreadable: {}", summary.skipped)?;
    }
    for (why, count) in &summary.dropped {
        writeln!(said, "  dropped for having {why}: {count}")?;
    }
    let notes: Vec<String> = notes
        .into_iter()
        .map(|(id, note)| format!("{id}: {note}"))
        .collect();
    for (what, lines) in [("left out", left_out), ("notes", notes)] {
        if lines.is_empty() {
            continue;
        }
        writeln!(said, "{what}")?;
        for line in lines.iter().take(SHOWN) {
            writeln!(said, "  {}", text::line(line, LINE))?;
        }
        if lines.len() > SHOWN {
            writeln!(said, "  … and {} more", lines.len() - SHOWN)?;
        }
    }
    if unkept > 0 {
        writeln!(said, "{unkept} further notes were not kept")?;
    }
    Ok(said)
}
