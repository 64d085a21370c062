//! `rlef train`: iterations, measurements between them, a table and a plot at the end.

mod folder;
mod history;
mod measure;

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use rlef_judge::Judge;
use rlef_model::{ModelFolder, device};
use rlef_policy::DriveError;
use rlef_problems::{Problem, ProblemSet};
use rlef_rl::{Metrics, TrainConfig, TrainError, Trainer, ValueKind};

use crate::args::Train;
use crate::progress::{Bar, duration};
use crate::settings::{flag, resolve, typed};
use crate::text::{error, quoted};
use crate::{models, parts};

use folder::{RunFolder, write};
use history::History;
use measure::Measure;

pub fn run(args: Train) -> Result<ExitCode> {
    let s = &args.settings;
    let mut set = typed(s);
    flag(&mut set, "model", args.model.as_ref());
    flag(&mut set, "iterations", args.iterations);
    let config: TrainConfig = resolve(s.config.as_deref(), &set)?;
    config.check()?;
    if s.dry_run {
        // First what was decided, then whether this machine can do it.
        crate::text::print(&toml::to_string(&config)?)?;
        let parts = Parts::open(&config)?;
        let out = RunFolder::name(args.out.as_deref(), parts.bytes(&config))?;
        crate::say!("\n{}; run folder {}", parts.plan(&config), out.display());
        return Ok(ExitCode::SUCCESS);
    }
    let parts = Parts::open(&config)?;
    let out = RunFolder::create(args.out.as_deref(), parts.bytes(&config), &config)?;
    let stop = parts::stop_flag()?;
    crate::say!(
        "{} ({} parameters) on {} problems of {}/{}; run folder {}",
        config.model,
        parts.folder.config.num_params(),
        parts.train.len(),
        config.problems,
        config.train_split,
        out.dir().display()
    );
    let trainer = Trainer::new(&config, parts.folder, parts.train)?;
    let mut run = Run {
        config,
        judge: parts.judge,
        trainer,
        valid: parts.valid,
        test: parts.test,
        out,
        stop,
        history: History::default(),
    };
    run.train()?;
    run.finish()
}

/// Everything a run needs, found and read before it begins: what is missing is said at once, not at its end.
struct Parts {
    judge: Judge,
    train: Vec<Arc<Problem>>,
    valid: Vec<Arc<Problem>>,
    test: Vec<Arc<Problem>>,
    folder: ModelFolder,
}

impl Parts {
    fn open(config: &TrainConfig) -> Result<Self> {
        let judge = parts::judge(&config.judge)?;
        let set = ProblemSet::open(&config.problems)?;
        let split = |name: &str, limit| parts::problems(&set, name, limit);
        let eval = &config.eval;
        let train = split(&config.train_split, 0)?;
        let valid = if eval.every > 0 {
            split(&eval.valid_split, eval.valid_problems)?
        } else {
            vec![]
        };
        let test = split(&eval.test_split, eval.test_problems)?;
        let device = device::open(&config.device)?;
        // Before anything is loaded or even fetched.
        if config.device == "cpu" {
            super::plan::possible(config)?;
        }
        let folder = models::open(&config.model, &device)?;
        for problems in [&train, &valid, &test] {
            parts::fits(config, &judge, &folder, problems)?;
        }
        let parts = Self {
            judge,
            train,
            valid,
            test,
            folder,
        };
        for (split, problems) in [
            (&eval.valid_split, &parts.valid),
            (&eval.test_split, &parts.test),
        ] {
            if let Some(shared) = parts.learned_from(problems) {
                crate::say_err!(
                    "warning: {shared} of the {} problems of split {split} are also learned from; what is measured \
                     on it then says nothing about new problems",
                    problems.len()
                );
            }
        }
        Ok(parts)
    }

    /// How many of `problems` are also learned from, if any.
    fn learned_from(&self, problems: &[Arc<Problem>]) -> Option<usize> {
        let learned: HashSet<&str> = self.train.iter().map(|p| p.id.as_str()).collect();
        let shared = problems.iter().filter(|p| learned.contains(&*p.id)).count();
        (shared > 0).then_some(shared)
    }

    /// What the run will write, in bytes: the checkpoint at the end and those on the way, weights in f32.
    fn bytes(&self, config: &TrainConfig) -> u64 {
        let on_the_way = match config.checkpoint_every {
            0 => 0,
            every => config.iterations / every,
        };
        let networks = match config.ppo.value {
            ValueKind::Head => 1,
            ValueKind::Separate => 2,
        };
        (self.folder.config.num_params() as u64)
            .saturating_mul(4 * networks)
            .saturating_mul(1 + on_the_way as u64)
    }

    fn plan(&self, config: &TrainConfig) -> String {
        let episodes = config.rollout.problems * config.rollout.per_problem;
        format!(
            "# {} parameters, {} problems; an iteration: {episodes} episodes of up to {} turns, then {} updates; \
             {} iterations, {} episodes in all; measured on {} problems at the end",
            self.folder.config.num_params(),
            self.train.len(),
            config.episode.max_turns,
            config.ppo.minibatches * config.ppo.passes,
            config.iterations,
            episodes * config.iterations,
            self.test.len()
        )
    }
}

struct Run {
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
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The iterations. Returns early, without error, when it is told to stop.
    fn train(&mut self) -> Result<()> {
        let bar = Bar::new("train", self.config.iterations as u64);
        self.validate(&bar)?;
        while self.trainer.iteration() < self.config.iterations && !self.stopped() {
            let start = Instant::now();
            let i = self.trainer.iteration();
            let result = self.trainer.step(&self.judge, &self.stop, &|p| {
                bar.note(&format!("rollouts {}/{}", p.done, p.total));
            });
            let metrics = match result {
                Ok(m) => m,
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
            self.out.log(done, &metrics);
            let get = |k: &str| metrics.get(k).copied().unwrap_or(f64::NAN);
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
            if self.config.eval.every > 0 && done.is_multiple_of(self.config.eval.every) {
                self.validate(&bar)?;
            }
            if self.config.checkpoint_every > 0 && done.is_multiple_of(self.config.checkpoint_every)
            {
                // A checkpoint on the way is a precaution; not having it is no reason to lose the run.
                if let Err(why) = self.save(&format!("checkpoints/step_{done}")) {
                    bar.line(&format!(
                        "warning: {}; going on without this checkpoint",
                        error(&why)
                    ));
                }
            }
        }
        bar.finish();
        Ok(())
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

    /// The latest checkpoint on the way that is there.
    fn last_saved(&self, done: usize) -> Option<PathBuf> {
        let at = |step: usize| self.out.dir().join(format!("checkpoints/step_{step}"));
        let whole = |dir: &PathBuf| dir.join(rlef_model::folder::WEIGHTS).exists();
        (1..=done).rev().map(at).find(whole)
    }

    fn plot(&self) -> Result<()> {
        let title = format!("{} on {}", self.config.model, self.config.problems);
        let curve = self.out.dir().join("curve.svg");
        self.history
            .plot(&curve, &title, self.config.episode.max_turns)
    }

    /// Checkpoint, curve, table. What fails is said at the end; the rest is done all the same.
    fn finish(&mut self) -> Result<ExitCode> {
        let dir = self.out.dir().to_owned();
        let (checkpoint, curve) = (dir.join("checkpoint"), dir.join("curve.svg"));
        let saved = self.save("checkpoint");
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
        } else if let Some(last) = self.last_saved(done) {
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
