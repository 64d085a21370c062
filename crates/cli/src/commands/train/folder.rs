//! The folder of a run: its settings, its metrics, its checkpoints.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rlef_rl::{Metrics, TrainConfig};

use crate::output::room;

/// Its presence says that the folder holds a run.
const METRICS: &str = "metrics.jsonl";

/// An open run folder.
pub struct RunFolder {
    dir: PathBuf,
    metrics: fs::File,
    /// The settings as they are written.
    config: String,
    warned: bool,
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

    /// Makes the folder and writes the settings into it. Of two runs that want the same folder, one has it.
    pub fn create(typed: Option<&Path>, bytes: u64, config: &TrainConfig) -> Result<Self> {
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
            let path = dir.join(METRICS);
            let metrics = match fs::File::create_new(&path) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                    bail!(
                        "another run has begun in {}; give another --out",
                        dir.display()
                    )
                }
                made => made.with_context(|| format!("cannot write {}", path.display()))?,
            };
            let version = format!("# rlef {}\n", env!("CARGO_PKG_VERSION"));
            let config = version + &toml::to_string(config)?;
            write(&dir.join("config.toml"), config.as_bytes())?;
            return Ok(Self {
                dir,
                metrics,
                config,
                warned: false,
            });
        }
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Appends a line to `metrics.jsonl`. A line that cannot be written is said once and does not end the run.
    pub fn log(&mut self, iteration: usize, metrics: &Metrics) {
        let mut line = serde_json::Map::new();
        line.insert("step".into(), iteration.into());
        for (name, &x) in metrics {
            // JSON has no NaN; a number that is not finite is left out rather than written as something else.
            if let Some(x) = serde_json::Number::from_f64(x) {
                line.insert(name.clone(), x.into());
            }
        }
        self.put_back();
        if let Err(error) = writeln!(self.metrics, "{}", serde_json::Value::Object(line))
            && !std::mem::replace(&mut self.warned, true)
        {
            let path = self.dir.join(METRICS);
            crate::say_err!(
                "warning: cannot write {}: {error}; going on without",
                path.display()
            );
        }
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
            fs::write(self.dir.join("config.toml"), &self.config)?;
            fs::File::options().create(true).append(true).open(&path)
        });
        match made {
            Ok(file) => {
                crate::say_err!(
                    "warning: {} was removed; it is made again, without what was in it",
                    self.dir.display()
                );
                self.metrics = file;
            }
            Err(error) if !std::mem::replace(&mut self.warned, true) => crate::say_err!(
                "warning: {} was removed and cannot be made again: {error}",
                self.dir.display()
            ),
            Err(_) => {}
        }
    }
}

/// Writes a file, naming it when that fails.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
