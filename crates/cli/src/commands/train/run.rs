//! A run in progress: iterations, measurements and checkpoints between them, a table and a plot at the end.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rlef_judge::Judge;
use rlef_policy::DriveError;
use rlef_problems::Problem;
use rlef_rl::{CheckpointError, Iteration, Metrics, TrainConfig, TrainError, Trainer};

use super::folder::{CONFIG, METRICS, RunFolder, write};
use super::history::History;
use super::measure::Measure;
use super::setup::Parts;
use crate::progress::{Bar, duration};
use crate::text::{error, quoted};

/// Writes what a checkpoint holds.
pub fn fill(trainer: &Trainer, out: &RunFolder, dir: &Path) -> Result<(), TrainError> {
    trainer.write_checkpoint(dir)?;
    for (name, text) in [(METRICS, out.metrics()), (CONFIG, out.config())] {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|e| CheckpointError::Write {
            path,
            why: e.to_string(),
        })?;
    }
    Ok(())
}

/// A run.
pub struct Run {
    config: TrainConfig,
    judge: Judge,
    trainer: Trainer,
    valid: Vec<Arc<Problem>>,
    test: Vec<Arc<Problem>>,
    out: RunFolder,
    stop: Arc<AtomicBool>,
    history: History,
}

impl Run {
    /// What `out` already holds is taken up.
    pub fn new(
        config: TrainConfig,
        parts: Parts,
        trainer: Trainer,
        out: RunFolder,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let mut history = History::default();
        for line in out.lines() {
            history.add(&line, config.episode.max_turns);
        }
        history.seconds = out.seconds();
        Self {
            config,
            judge: parts.judge,
            trainer,
            valid: parts.valid,
            test: parts.test,
            out,
            stop,
            history,
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The iterations. Returns early, without error, when it is told to stop.
    ///
    /// # Errors
    /// An iteration or a measurement that failed; what there is of the run is saved.
    pub fn train(&mut self) -> Result<()> {
        let bar = Bar::new("train", self.config.iterations as u64);
        if self.is_due(self.trainer.iteration()) {
            self.validate(&bar)?;
        }
        while self.trainer.iteration() < self.config.iterations && !self.stopped() {
            let start = Instant::now();
            let i = self.trainer.iteration();
            let result = self.trainer.step(&self.judge, &self.stop, &|p| {
                bar.note(&format!("rollouts {}/{}", p.done, p.total));
            });
            let Iteration {
                metrics,
                times,
                records,
            } = match result {
                Ok(done) => done,
                Err(TrainError::Drive(DriveError::Stopped)) => break,
                Err(why) => {
                    bar.finish();
                    let kept = self.keep();
                    return Err(why)
                        .context(format!("training stopped in iteration {}; {kept}", i + 1));
                }
            };
            self.history.seconds += start.elapsed().as_secs_f64();
            let done = self.trainer.iteration();
            if self.config.trajectories {
                self.out.record(done, &records);
            }
            self.out.log(done, &metrics);
            self.out.log_times(done, &times);
            let get = |k: &str| {
                let x = metrics.get(k).or(times.get(k));
                x.copied().unwrap_or(f64::NAN)
            };
            self.history.solved.push((done as f64, get("solved")));
            self.history
                .first
                .push((done as f64, get("solved_first_turn")));
            let note = format!(
                "reward {:+.2}, solved {:.2} (first turn {:.2}), {:.0} tokens/s",
                get("reward"),
                get("solved"),
                get("solved_first_turn"),
                get("perf/throughput")
            );
            bar.set(done as u64, &note);
            if self.is_due(done) {
                self.validate(&bar)?;
            }
            if self.config.checkpoint_every > 0 && done.is_multiple_of(self.config.checkpoint_every)
            {
                // A checkpoint on the way is a precaution; not having it is no reason to lose the run.
                if let Err(why) = self.checkpoint() {
                    bar.line(&format!("warning: {}; going on without it", error(&why)));
                }
            }
        }
        bar.finish();
        Ok(())
    }

    /// Whether the valid split is still to be measured after iteration `done`.
    fn is_due(&self, done: usize) -> bool {
        let every = self.config.eval.every;
        let measured = |x: &(f64, f64)| x.0 == done as f64;
        every > 0 && done.is_multiple_of(every) && !self.history.valid.iter().any(measured)
    }

    /// Writes a checkpoint to go on from, and removes those that are not to be kept.
    fn checkpoint(&self) -> Result<()> {
        let all = self.out.checkpoints();
        let done = self.trainer.iteration();
        let written = all.write(done, |dir| fill(&self.trainer, &self.out, dir));
        if let Err(why) = written {
            let last = match all.last_good(usize::MAX) {
                Some(step) => format!("the last good one is {}", all.path(step).display()),
                None => "there is none yet".into(),
            };
            bail!("checkpoint {}: {why}; {last}", all.path(done).display());
        }
        let saved = all.steps();
        let best = self
            .history
            .valid
            .iter()
            .filter(|(step, _)| saved.contains(&(*step as usize)))
            .fold(None, |best: Option<(f64, f64)>, &x| match best {
                Some(b) if b.1 >= x.1 => Some(b),
                _ => Some(x),
            });
        all.prune(self.config.checkpoint_keep, best.map(|b| b.0 as usize))
            .context("cannot remove old checkpoints")
    }

    fn measure(&self) -> Measure<'_> {
        Measure {
            config: &self.config,
            judge: &self.judge,
            stop: &self.stop,
        }
    }

    /// Measures on the valid split and says so in a line.
    fn validate(&mut self, bar: &Bar) -> Result<()> {
        if self.valid.is_empty() || self.stopped() {
            return Ok(());
        }
        let policy = self.trainer.policy(self.config.eval_sampling());
        let turns = self.config.episode.max_turns;
        let feedback = self.config.episode.feedback;
        let measure = self.measure();
        let pool = match measure.pool(&policy, &self.valid, turns, feedback, 1) {
            Ok(pool) => pool,
            Err(_) if self.stopped() => return Ok(()),
            Err(e) => return Err(e),
        };
        let done = self.trainer.iteration();
        let mut metrics = Metrics::new();
        let mut said = vec![];
        for (k, s) in (1..).zip(measure.scores(&pool)?) {
            metrics.insert(format!("val/1@{k}"), s.estimate.value);
            said.push(format!("1@{k} {:.2}", s.estimate.value));
        }
        self.history
            .valid
            .push((done as f64, metrics[&format!("val/1@{turns}")]));
        self.out.log(done, &metrics);
        bar.line(&format!(
            "iteration {done}/{}: {} on {} valid problems; {} of training so far{}",
            self.config.iterations,
            said.join(", "),
            self.valid.len(),
            duration(self.history.seconds),
            bar.left(done as u64)
        ));
        Ok(())
    }

    fn save(&self, name: &str) -> Result<()> {
        let dir = self.out.dir().join(name);
        self.trainer
            .save(&dir)
            .with_context(|| format!("cannot save {}", dir.display()))
    }

    /// Keeps what there is of a run that cannot go on, and says where: the weights after the last whole iteration,
    /// the curve, the table so far.
    fn keep(&self) -> String {
        let mut kept = match self.save("checkpoint") {
            Ok(()) => format!(
                "the weights after iteration {} are in {}",
                self.trainer.iteration(),
                self.out.dir().join("checkpoint").display()
            ),
            Err(e) => format!("the weights so far could not be saved: {}", error(&e)),
        };
        let earlier = self.out.dir().join("checkpoints");
        if earlier.is_dir() {
            kept.push_str(&format!(", earlier ones in {}", earlier.display()));
        }
        if let Err(e) = self.plot() {
            crate::say_err!("warning: {}", error(&e));
        }
        if let Some(table) = self.history.table(self.config.episode.max_turns) {
            crate::say!("\n{table}");
        }
        kept
    }

    fn plot(&self) -> Result<()> {
        let title = format!("{} on {}", self.config.model, self.config.problems);
        let curve = self.out.dir().join("curve.svg");
        self.history
            .plot(&curve, &title, self.config.episode.max_turns)
    }

    /// Checkpoint, curve, table. What fails is said at the end; the rest is done all the same.
    ///
    /// # Errors
    /// What could not be measured or written.
    pub fn finish(&mut self) -> Result<ExitCode> {
        let dir = self.out.dir().to_owned();
        let (checkpoint, curve) = (dir.join("checkpoint"), dir.join("curve.svg"));
        let saved = self.save("checkpoint");
        // Where a later command goes on: after ctrl-C, or with more iterations.
        let there_already = self
            .out
            .checkpoints()
            .steps()
            .contains(&self.trainer.iteration());
        let saved = match saved {
            Ok(()) if self.trainer.iteration() > 0 && !there_already => self.checkpoint(),
            other => other,
        };
        if let Err(why) = &saved {
            crate::say_err!("warning: {}", error(why));
        }
        let turns = self.config.episode.max_turns;
        let drawn = self.plot();
        let done = self.trainer.iteration();
        // Only what is there is named.
        let mut there = String::new();
        if saved.is_ok() {
            there.push_str(&format!("; checkpoint {}", checkpoint.display()));
        } else if let Some(step) = self.out.checkpoints().last_good(usize::MAX) {
            let last = self.out.checkpoints().path(step);
            there.push_str(&format!("; the last checkpoint is {}", last.display()));
        }
        if drawn.is_ok() {
            there.push_str(&format!(", curve {}", curve.display()));
        }
        crate::say!(
            "{done} of {} iterations, {} of training{there}",
            self.config.iterations,
            duration(self.history.seconds),
        );
        let summary = if self.stopped() {
            None
        } else {
            let base = self.trainer.base(self.config.eval_sampling());
            let trained = self.trainer.policy(self.config.eval_sampling());
            Some(self.measure().summary(&base, &trained, &self.test))
        };
        let summary = match summary {
            Some(Ok(summary)) => summary,
            Some(Err(why)) if !self.stopped() => return Err(why),
            _ => {
                if let Some(table) = self.history.table(turns) {
                    crate::say!("\n{table}");
                }
                let split = &self.config.eval.test_split;
                // With the run's own settings: others would measure something else.
                let how = if saved.is_ok() {
                    format!(
                        "; `rlef eval --config {} --model {} --split {} --k {turns}` does that",
                        quoted(&dir.join("config.toml").display().to_string()),
                        quoted(&checkpoint.display().to_string()),
                        quoted(split),
                    )
                } else {
                    String::new()
                };
                crate::say!("stopped before the {split} split was measured{how}");
                if saved.is_ok() && done > 0 {
                    crate::say!(
                        "`rlef train --resume {}` goes on",
                        quoted(&dir.display().to_string())
                    );
                }
                saved.and(drawn)?;
                return Ok(ExitCode::from(130));
            }
        };
        let table = summary.table();
        crate::say!(
            "\n{} problems of {}/{}:\n\n{table}",
            self.test.len(),
            self.config.problems,
            self.config.eval.test_split
        );
        let json = serde_json::to_vec_pretty(&summary)?;
        let written = write(&dir.join("results.md"), table.as_bytes())
            .and(write(&dir.join("results.json"), &json));
        saved.and(drawn).and(written)?;
        Ok(ExitCode::SUCCESS)
    }
}
