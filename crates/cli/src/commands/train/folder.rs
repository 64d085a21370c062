//! The folder of a run: its settings, its metrics, what was rolled out, its checkpoints.
//!
//! `metrics.jsonl` has what the same run gives again, to the last digit; what depends on the machine and the moment is
//! in `timing.jsonl`. The files for TensorBoard and trackio are views of both, made anew when a run is resumed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use rlef_rl::{Checkpoints, Metrics, Record, TrainConfig};
use serde_json::{Map, Value};

use super::tensorboard::Events;
use super::trackio::Trackio;
use super::trajectories;
use crate::output::room;

/// Its presence says that the folder holds a run, and that all that belongs to one is there.
pub const METRICS: &str = "metrics.jsonl";
/// Seconds and tokens a second of every iteration.
const TIMING: &str = "timing.jsonl";
/// The settings.
pub const CONFIG: &str = "config.toml";
/// Held by the process that writes the folder.
const LOCK: &str = "lock";

/// An open run folder.
pub struct RunFolder {
    dir: PathBuf,
    metrics: File,
    /// All that was written to `metrics.jsonl`, which goes into every checkpoint.
    log: String,
    timing: File,
    events: Option<Events>,
    trackio: Option<Trackio>,
    /// The settings as they are written.
    config: String,
    /// What could not be written, each said once.
    warned: BTreeSet<&'static str>,
    _lock: File,
}

/// What of a run is there when it goes on.
#[derive(Default)]
pub struct Past {
    /// Iterations done.
    pub step: usize,
    /// The lines of the metrics up to there.
    pub log: String,
    /// The lines of the times.
    pub timing: String,
}

impl Past {
    /// What a checkpoint of the run in `dir` remembers.
    ///
    /// # Errors
    /// Metrics that cannot be read.
    pub fn of(dir: &Path, checkpoints: &Checkpoints, step: usize) -> Result<Self> {
        let path = checkpoints.path(step).join(METRICS);
        let log =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        // Times are never needed again: without them there is only less to look at.
        let timing = fs::read_to_string(dir.join(TIMING)).unwrap_or_default();
        let before = |line: &&str| Line::read(line).is_some_and(|l| l.step <= step);
        let timing = timing.lines().filter(before).map(|l| format!("{l}\n"));
        Ok(Self {
            step,
            log,
            timing: timing.collect(),
        })
    }
}

/// A line of the metrics or of the times.
pub struct Line {
    /// The iteration.
    pub step: usize,
    /// The numbers.
    pub metrics: Metrics,
}

impl Line {
    /// `None` if it is none.
    pub fn read(text: &str) -> Option<Self> {
        let map: Map<String, Value> = serde_json::from_str(text).ok()?;
        let step = map.get("step")?.as_u64()?;
        let metrics = map.iter().filter(|(name, _)| *name != "step");
        Some(Self {
            step: usize::try_from(step).ok()?,
            metrics: metrics
                .filter_map(|(name, x)| Some((name.clone(), x.as_f64()?)))
                .collect(),
        })
    }
}

fn line(step: usize, metrics: &Metrics) -> String {
    let mut line = Map::new();
    line.insert("step".into(), step.into());
    for (name, &x) in metrics {
        // JSON has no NaN; a number that is not finite is left out rather than written as something else.
        if let Some(x) = serde_json::Number::from_f64(x) {
            line.insert(name.clone(), x.into());
        }
    }
    format!("{}\n", Value::Object(line))
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |d| d.as_secs_f64())
}

impl RunFolder {
    /// The folder that [`RunFolder::create`] would make.
    ///
    /// # Errors
    /// If the folder that was typed already holds something, or could not be made or take `bytes`.
    pub fn name(typed: Option<&Path>, bytes: u64) -> Result<PathBuf> {
        let dir = match typed {
            Some(dir) => dir.to_owned(),
            None => (1..)
                .map(|n| PathBuf::from(format!("runs/train-{n}")))
                .find(|d| !d.exists())
                .context("no free run folder")?,
        };
        room(&dir, bytes).context("the run folder")?;
        // Whatever is there, a run's files must not come between it or take its place.
        if dir.is_dir() {
            let mut entries =
                fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))?;
            if entries.next().is_some() {
                let held = if dir.join(METRICS).exists() {
                    "already holds a run"
                } else {
                    "is not empty"
                };
                bail!("{} {held}; give another --out, or remove it", dir.display());
            }
        }
        Ok(dir)
    }

    /// Makes the folder and writes the settings into it; `origin` says where the run comes from, and `past` what of it
    /// is already there. Of two runs that want the same folder, one has it.
    pub fn create(
        typed: Option<&Path>,
        bytes: u64,
        config: &TrainConfig,
        origin: Option<&str>,
        past: &Past,
    ) -> Result<Self> {
        loop {
            let dir = Self::name(typed, bytes)?;
            if let Some(above) = dir.parent() {
                fs::create_dir_all(above)
                    .with_context(|| format!("cannot make {}", above.display()))?;
            }
            match fs::create_dir(&dir) {
                Ok(()) => {}
                // An empty one is as good, if it was asked for.
                Err(e) if e.kind() == ErrorKind::AlreadyExists && typed.is_some() => {}
                // Another run was faster: the next number.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(e).with_context(|| format!("cannot make {}", dir.display())),
            }
            let lock = lock(&dir)?;
            // Another run may have begun and ended meanwhile.
            if dir.join(METRICS).exists() {
                bail!(
                    "another run has begun in {}; give another --out",
                    dir.display()
                );
            }
            let origin = origin.map_or(String::new(), |o| format!(", from {o}"));
            let version = format!("# rlef {}{origin}\n", env!("CARGO_PKG_VERSION"));
            let text = version + &toml::to_string(config)?;
            // Whole or not at all: half of it would be other settings.
            let part = dir.join(format!("{CONFIG}.part"));
            write(&part, text.as_bytes())?;
            fs::rename(&part, dir.join(CONFIG))
                .with_context(|| format!("cannot write {}", dir.join(CONFIG).display()))?;
            return Self::begin(dir, lock, text, config, past);
        }
    }

    /// Goes on with the run in `dir`, from `past`: what was written after it is removed. `lock` is [`lock`]'s.
    ///
    /// # Errors
    /// What cannot be removed or written.
    pub fn resume(dir: &Path, lock: File, config: &TrainConfig, past: &Past) -> Result<Self> {
        let path = dir.join(CONFIG);
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        trajectories::cut(dir, past.step)?;
        Self::begin(dir.to_owned(), lock, text, config, past)
    }

    fn begin(
        dir: PathBuf,
        lock: File,
        text: String,
        config: &TrainConfig,
        past: &Past,
    ) -> Result<Self> {
        let begun = |name: &str, content: &str| -> Result<File> {
            let path = dir.join(name);
            write(&path, content.as_bytes())?;
            File::options()
                .append(true)
                .open(&path)
                .with_context(|| format!("cannot write {}", path.display()))
        };
        let part = format!("{METRICS}.part");
        let mut folder = Self {
            metrics: begun(&part, &past.log)?,
            timing: begun(TIMING, &past.timing)?,
            log: past.log.clone(),
            events: None,
            trackio: None,
            config: text,
            warned: BTreeSet::new(),
            _lock: lock,
            dir: dir.clone(),
        };
        folder.views(config, past);
        // Last, since its presence says that all the rest is there.
        let path = dir.join(METRICS);
        fs::rename(dir.join(&part), &path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(folder)
    }

    /// Makes the files for TensorBoard and trackio.
    fn views(&mut self, config: &TrainConfig, past: &Past) {
        let dir = self.dir.join("tensorboard");
        let made = fs::create_dir_all(&dir)
            .and_then(|()| Events::create(&dir.join("events.out.tfevents.rlef"), now()));
        match made {
            Ok(events) => self.events = Some(events),
            Err(e) => self.warn("the TensorBoard file", &e.to_string()),
        }
        let name = self.dir.file_name().unwrap_or(self.dir.as_os_str());
        let name = name.to_string_lossy().into_owned();
        let settings = serde_json::to_value(config).unwrap_or_default();
        match Trackio::create(&self.dir.join("trackio"), &name, &settings, now()) {
            Ok(trackio) => self.trackio = Some(trackio),
            Err(e) => self.warn("the trackio database", &e.to_string()),
        }
        let mut times = BTreeMap::new();
        for line in past.timing.lines().filter_map(Line::read) {
            if let Some(&time) = line.metrics.get("time") {
                times.insert(line.step, time);
            }
        }
        for line in past.log.lines().filter_map(Line::read) {
            let time = times.get(&line.step).copied().unwrap_or_else(now);
            self.show(line.step, time, &line.metrics);
        }
        for line in past.timing.lines().filter_map(Line::read) {
            self.show_times(line.step, line.metrics);
        }
    }

    fn show(&mut self, step: usize, time: f64, metrics: &Metrics) {
        if let Some(Err(e)) = self.events.as_mut().map(|f| f.add(step, time, metrics)) {
            self.warn("the TensorBoard file", &e.to_string());
        }
        if let Some(Err(e)) = self.trackio.as_mut().map(|f| f.add(step, time, metrics)) {
            self.warn("the trackio database", &e.to_string());
        }
    }

    fn show_times(&mut self, step: usize, mut times: Metrics) {
        let time = times.remove("time").unwrap_or_else(now);
        self.show(step, time, &times);
    }

    fn warn(&mut self, what: &'static str, why: &str) {
        if self.warned.insert(what) {
            crate::say_err!(
                "warning: cannot write {what} of {}: {why}; going on without",
                self.dir.display()
            );
        }
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its checkpoints.
    pub fn checkpoints(&self) -> Checkpoints {
        Checkpoints::new(self.dir.join("checkpoints"))
    }

    /// All lines of the metrics so far.
    pub fn lines(&self) -> impl Iterator<Item = Line> {
        self.log.lines().filter_map(Line::read)
    }

    /// The settings, as they are written.
    pub fn config(&self) -> &str {
        &self.config
    }

    /// Seconds of the iterations so far.
    pub fn seconds(&self) -> f64 {
        let text = fs::read_to_string(self.dir.join(TIMING)).unwrap_or_default();
        let lines = text.lines().filter_map(Line::read);
        lines
            .filter_map(|l| l.metrics.get("timing_s/step").copied())
            .sum()
    }

    /// The metrics so far, as they are written.
    pub fn metrics(&self) -> &str {
        &self.log
    }

    /// Appends a line to `metrics.jsonl`. A line that cannot be written is said once and does not end the run.
    pub fn log(&mut self, step: usize, metrics: &Metrics) {
        let line = line(step, metrics);
        self.log.push_str(&line);
        self.put_back();
        if let Err(e) = self.metrics.write_all(line.as_bytes()) {
            self.warn(METRICS, &e.to_string());
        }
        self.show(step, now(), metrics);
    }

    /// Appends a line to `timing.jsonl`.
    pub fn log_times(&mut self, step: usize, times: &Metrics) {
        let mut times = times.clone();
        times.insert("time".into(), now());
        if let Err(e) = self.timing.write_all(line(step, &times).as_bytes()) {
            self.warn(TIMING, &e.to_string());
        }
        self.show_times(step, times);
    }

    /// Writes the rollouts of an iteration.
    pub fn record(&mut self, step: usize, records: &[Record]) {
        if let Err(e) = trajectories::write(&self.dir, step, records) {
            self.warn(trajectories::TRAJECTORIES, &crate::text::error(&e));
        }
    }
}

/// Keeps other processes from writing the folder of a run for as long as the file lives.
///
/// # Errors
/// Another process has it.
pub fn lock(dir: &Path) -> Result<File> {
    let path = dir.join(LOCK);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!(
            "another process is training in {}; wait for it or end it first",
            dir.display()
        ),
        // A file system without locks: then nobody is kept out.
        Err(TryLockError::Error(_)) => Ok(file),
    }
}

impl RunFolder {
    /// Somebody may have removed the folder of a run that is going on: what it holds from here on is held all the same.
    fn put_back(&mut self) {
        if self.metrics.metadata().is_ok_and(|m| m.nlink() > 0) {
            return;
        }
        let path = self.dir.join(METRICS);
        let made = fs::create_dir_all(&self.dir).and_then(|()| {
            fs::write(self.dir.join(CONFIG), &self.config)?;
            File::options().create(true).append(true).open(&path)
        });
        match made {
            Ok(file) => {
                crate::say_err!(
                    "warning: {} was removed; it is made again, without what was in it",
                    self.dir.display()
                );
                self.metrics = file;
            }
            Err(error) => {
                let why = format!("it was removed and cannot be made again: {error}");
                self.warn("the folder", &why);
            }
        }
    }
}

/// Writes a file, naming it when that fails.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
