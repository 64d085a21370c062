//! Which checkpoint of which run: `RUN` or `RUN@STEP`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use rlef_rl::Checkpoints;

use super::folder::{CONFIG, METRICS};

/// A run, and a point of it if one was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// The run's folder.
    pub run: PathBuf,
    /// The iteration.
    pub step: Option<usize>,
}

impl Point {
    /// Reads `RUN` or `RUN@STEP`. A folder may have an `@` in its name.
    ///
    /// # Errors
    /// Something that is no run.
    pub fn read(text: &str) -> Result<Self> {
        let whole = Path::new(text);
        let (run, step) = match text.rsplit_once('@') {
            Some((run, step)) if !whole.is_dir() => match step.parse() {
                Ok(step) => (Path::new(run), Some(step)),
                Err(_) => bail!("{text:?}: after @ comes an iteration, as in {run}@50"),
            },
            _ => (whole, None),
        };
        if !run.is_dir() {
            bail!("there is no run folder {}", run.display());
        }
        if !run.join(CONFIG).exists() || !run.join(METRICS).exists() {
            bail!(
                "{} holds no run: it has no {CONFIG} or no {METRICS}",
                run.display()
            );
        }
        Ok(Self {
            run: run.to_owned(),
            step,
        })
    }

    /// The file of its settings.
    pub fn config(&self) -> PathBuf {
        self.run.join(CONFIG)
    }

    /// Its checkpoints.
    pub fn checkpoints(&self) -> Checkpoints {
        Checkpoints::new(self.run.join("checkpoints"))
    }

    /// The checkpoint to resume from; `None`: there is none, the run begins anew.
    ///
    /// # Errors
    /// A damaged checkpoint, or an earlier one than need be.
    pub fn to_resume(&self) -> Result<Option<usize>> {
        let all = self.checkpoints();
        let Some(&last) = all.steps().last() else {
            return match self.step {
                Some(step) if step > 0 => bail!("{} has no checkpoints", self.run.display()),
                _ => Ok(None),
            };
        };
        let step = self.step.unwrap_or(last);
        if step > 0 {
            self.check(step)?;
        }
        // What came after it would be lost, and is good.
        if let Some(later) = all.last_good(usize::MAX).filter(|&later| later > step) {
            bail!(
                "{} has a later checkpoint that is whole, of iteration {later}: --resume {} goes on from there, and \
                 --from {}@{step} begins another run here",
                self.run.display(),
                self.run.display(),
                self.run.display()
            );
        }
        Ok((step > 0).then_some(step))
    }

    /// The checkpoint to begin another run from.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub fn to_fork(&self) -> Result<usize> {
        let steps = self.checkpoints().steps();
        let Some(step) = self.step.or(steps.last().copied()) else {
            bail!("{} has no checkpoints", self.run.display());
        };
        if !steps.contains(&step) {
            bail!(
                "{} has no checkpoint of iteration {step}, only of {}",
                self.run.display(),
                listed(&steps)
            );
        }
        self.check(step)?;
        Ok(step)
    }

    /// Checks one; the error names the last good one.
    fn check(&self, step: usize) -> Result<()> {
        let all = self.checkpoints();
        let Err(why) = all.verify(step) else {
            return Ok(());
        };
        match all.last_good(usize::MAX) {
            Some(good) => bail!(
                "{why}; the last good one is {} (`--resume {}@{good}` or `--from {}@{good}`)",
                all.path(good).display(),
                self.run.display(),
                self.run.display()
            ),
            None => bail!(
                "{why}; none of the run's checkpoints is good, and `--resume {}@0` begins it anew",
                self.run.display()
            ),
        }
    }
}

/// "2, 4 and 6".
pub fn listed(steps: &[usize]) -> String {
    let all: Vec<String> = steps.iter().map(usize::to_string).collect();
    match all.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "none".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_and_a_point() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("a@3");
        std::fs::create_dir(&run).unwrap();
        let name = run.display().to_string();
        assert!(
            Point::read(&name)
                .unwrap_err()
                .to_string()
                .contains("no run")
        );
        for file in [CONFIG, METRICS] {
            std::fs::write(run.join(file), "").unwrap();
        }
        let read = |text: &str| Point::read(text).map(|p| p.step);
        assert_eq!(read(&name).unwrap(), None);
        assert_eq!(read(&format!("{name}@12")).unwrap(), Some(12));
        for wrong in [format!("{name}@x"), format!("{name}x@12")] {
            assert!(read(&wrong).is_err(), "{wrong}");
        }
        let point = Point::read(&name).unwrap();
        assert_eq!(point.to_resume().unwrap(), None);
        assert!(point.to_fork().is_err());
    }

    #[test]
    fn numbers_are_listed() {
        assert_eq!(listed(&[2, 4, 6]), "2, 4 and 6");
        assert_eq!(listed(&[2]), "2");
        assert_eq!(listed(&[]), "none");
    }
}
