//! The folder of a run: its settings, its metrics, its checkpoints.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rlef_rl::{Metrics, TrainConfig};

use crate::output::room;

/// An open run folder.
pub struct RunFolder {
    dir: PathBuf,
    metrics: fs::File,
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
                let held = if dir.join("metrics.jsonl").exists() {
                    "already holds a run"
                } else {
                    "is not empty"
                };
                bail!("{} {held}; give another --out, or remove it", dir.display());
            }
        }
        Ok(dir)
    }

    /// Makes the folder and writes the settings into it.
    pub fn create(typed: Option<&Path>, bytes: u64, config: &TrainConfig) -> Result<Self> {
        let dir = Self::name(typed, bytes)?;
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let version = format!("# rlef {}\n", env!("CARGO_PKG_VERSION"));
        write(
            &dir.join("config.toml"),
            (version + &toml::to_string(config)?).as_bytes(),
        )?;
        let path = dir.join("metrics.jsonl");
        let metrics =
            fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self {
            dir,
            metrics,
            warned: false,
        })
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
        if let Err(error) = writeln!(self.metrics, "{}", serde_json::Value::Object(line))
            && !std::mem::replace(&mut self.warned, true)
        {
            let path = self.dir.join("metrics.jsonl");
            crate::say_err!(
                "warning: cannot write {}: {error}; going on without",
                path.display()
            );
        }
    }
}

/// Writes a file, naming it when that fails.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
