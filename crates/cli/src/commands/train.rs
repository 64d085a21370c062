//! `rlef train`: iterations, measurements between them, a table and a plot at the end.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rlef_env::FeedbackMode;
use rlef_eval::{
    Bootstrap, Budget, Condition, NamedDifference, Pool, Score, Summary, difference, measure, score,
};
use rlef_judge::Judge;
use rlef_model::device;
use rlef_policy::{Drive, DriveError, Policy};
use rlef_problems::Problem;
use rlef_rl::{Metrics, TrainConfig, TrainError, Trainer};

use crate::args::Train;
use crate::plot::{Line, curve};
use crate::progress::{Bar, duration};
use crate::settings::{flag, resolve, typed};
use crate::{models, parts};

pub fn run(args: Train) -> Result<ExitCode> {
    let s = &args.settings;
    let mut set = typed(s);
    flag(&mut set, "model", args.model.as_ref());
    flag(&mut set, "iterations", args.iterations);
    let config: TrainConfig = resolve(s.config.as_deref(), &set)?;
    config.check()?;
    if s.dry_run {
        return plan(&config);
    }
    let judge = parts::judge(&config.judge)?;
    let train = parts::problems(&config.problems, &config.train_split, 0)?;
    let valid = if config.eval.every > 0 {
        parts::problems(
            &config.problems,
            &config.eval.valid_split,
            config.eval.valid_problems,
        )?
    } else {
        vec![]
    };
    let test = parts::problems(
        &config.problems,
        &config.eval.test_split,
        config.eval.test_problems,
    )?;
    let device = device::open(&config.device)?;
    let folder = models::open(&config.model, &device)?;
    let out = Out::create(args.out.as_deref(), &config)?;
    let stop = parts::stop_flag()?;
    crate::say!(
        "{} ({} parameters) on {} problems of {}/{}; run folder {}",
        config.model,
        folder.config.num_params(),
        train.len(),
        config.problems,
        config.train_split,
        out.dir.display()
    );
    let trainer = Trainer::new(&config, folder, train)?;
    let mut run = Run {
        config,
        judge,
        trainer,
        valid,
        test,
        out,
        stop,
        history: History::default(),
    };
    run.train()?;
    run.finish()
}

/// What `--dry-run` prints.
fn plan(config: &TrainConfig) -> Result<ExitCode> {
    let device = device::open(&config.device)?;
    let folder = models::open(&config.model, &device)?;
    let problems = parts::problems(&config.problems, &config.train_split, 0)?;
    let episodes = config.rollout.problems * config.rollout.per_problem;
    crate::say!(
        "# {} parameters, {} problems; an iteration: {episodes} episodes of up to {} turns, then {} updates; \
         {} iterations, {} episodes in all",
        folder.config.num_params(),
        problems.len(),
        config.episode.max_turns,
        config.ppo.minibatches * config.ppo.passes,
        config.iterations,
        episodes * config.iterations
    );
    crate::text::print(&toml::to_string(config)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The run folder.
struct Out {
    dir: PathBuf,
    metrics: fs::File,
    warned: bool,
}

impl Out {
    fn create(typed: Option<&Path>, config: &TrainConfig) -> Result<Self> {
        let dir = match typed {
            Some(dir) => dir.to_owned(),
            None => (1..)
                .map(|n| PathBuf::from(format!("runs/train-{n}")))
                .find(|d| !d.exists())
                .context("no free run folder")?,
        };
        if dir.join("metrics.jsonl").exists() {
            bail!(
                "{} already holds a run; give another --out, or remove it",
                dir.display()
            );
        }
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let version = format!("# rlef {}\n", env!("CARGO_PKG_VERSION"));
        let path = dir.join("config.toml");
        fs::write(&path, version + &toml::to_string(config)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let path = dir.join("metrics.jsonl");
        let metrics =
            fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self {
            dir,
            metrics,
            warned: false,
        })
    }

    /// Appends a line to `metrics.jsonl`. A line that cannot be written is said once and does not end the run.
    fn log(&mut self, iteration: usize, metrics: &Metrics) {
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

/// What the curve shows.
#[derive(Default)]
struct History {
    solved: Vec<(f64, f64)>,
    first: Vec<(f64, f64)>,
    valid: Vec<(f64, f64)>,
    seconds: f64,
}

struct Run {
    config: TrainConfig,
    judge: Judge,
    trainer: Trainer,
    valid: Vec<Arc<Problem>>,
    test: Vec<Arc<Problem>>,
    out: Out,
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
                Err(error) => {
                    bar.finish();
                    let saved = match self.save("checkpoint") {
                        Ok(()) => format!(
                            "the weights so far are in {}",
                            self.out.dir.join("checkpoint").display()
                        ),
                        Err(e) => format!("the weights so far could not be saved: {e:#}"),
                    };
                    return Err(error)
                        .context(format!("training stopped in iteration {}; {saved}", i + 1));
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
                if let Err(error) = self.save(&format!("checkpoints/step_{done}")) {
                    bar.line(&format!(
                        "warning: {error:#}; going on without this checkpoint"
                    ));
                }
            }
        }
        bar.finish();
        Ok(())
    }

    fn drive(&self, max_turns: usize, feedback: FeedbackMode) -> Drive {
        let mut episode = self.config.episode.clone();
        episode.max_turns = max_turns;
        episode.feedback = feedback;
        Drive {
            episode,
            seed: self.config.seed ^ EVAL,
            workers: self.config.workers,
            batch: self.config.rollout.batch,
        }
    }

    fn pool(
        &self,
        policy: &dyn Policy,
        problems: &[Arc<Problem>],
        turns: usize,
        feedback: FeedbackMode,
        rollouts: u64,
    ) -> Result<Pool> {
        let drive = self.drive(turns, feedback);
        Ok(measure(
            policy,
            &self.judge,
            problems,
            rollouts,
            &drive,
            &self.stop,
            &|_| {},
        )?
        .0)
    }

    fn score(&self, pool: &Pool, n: usize, k: usize) -> Result<Score> {
        let budget = Budget::new(n, k, pool.turn_limit)?;
        Ok(score(
            pool,
            &budget,
            &Bootstrap {
                seed: self.config.seed,
                ..Bootstrap::default()
            },
        )?)
    }

    /// Measures on the valid split and says so in a line.
    fn validate(&mut self, bar: &Bar) -> Result<()> {
        if self.valid.is_empty() || self.stopped() {
            return Ok(());
        }
        let policy = self.trainer.policy(self.config.eval_sampling());
        let turns = self.config.episode.max_turns;
        let pool = match self.pool(&policy, &self.valid, turns, self.config.episode.feedback, 1) {
            Ok(pool) => pool,
            Err(_) if self.stopped() => return Ok(()),
            Err(e) => return Err(e),
        };
        let done = self.trainer.iteration();
        let mut metrics = Metrics::new();
        let mut said = vec![];
        for k in 1..=turns {
            let s = self.score(&pool, 1, k)?;
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
        let dir = self.out.dir.join(name);
        self.trainer
            .save(&dir)
            .with_context(|| format!("cannot save {}", dir.display()))
    }

    /// Checkpoint, curve, table. What fails is said at the end; the rest is done all the same.
    fn finish(&mut self) -> Result<ExitCode> {
        let dir = self.out.dir.clone();
        let (checkpoint, curve) = (dir.join("checkpoint"), dir.join("curve.svg"));
        let saved = self.save("checkpoint");
        if let Err(error) = &saved {
            crate::say_err!("warning: {error:#}");
        }
        let drawn = self.curve();
        let done = self.trainer.iteration();
        crate::say!(
            "{done} of {} iterations, {} of training; checkpoint {}, curve {}",
            self.config.iterations,
            duration(self.history.seconds),
            checkpoint.display(),
            curve.display()
        );
        let summary = if self.stopped() {
            None
        } else {
            Some(self.summary())
        };
        let summary = match summary {
            Some(Ok(summary)) => summary,
            Some(Err(error)) if !self.stopped() => return Err(error),
            _ => {
                self.table_so_far();
                crate::say!(
                    "stopped before the {} split was measured; `rlef eval --model {}` does that",
                    self.config.eval.test_split,
                    checkpoint.display()
                );
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

    fn table_so_far(&self) {
        if self.history.valid.is_empty() && self.history.solved.is_empty() {
            return;
        }
        crate::say!("\niteration  1@{} (valid)", self.config.episode.max_turns);
        for (i, x) in &self.history.valid {
            crate::say!("{i:>9}  {x:.2}");
        }
        if let Some((i, x)) = self.history.solved.last() {
            crate::say!("{i:>9}  {x:.2} (rollouts of the last iteration)");
        }
    }

    fn curve(&self) -> Result<()> {
        let h = &self.history;
        let turns = self.config.episode.max_turns;
        let lines = [
            Line {
                name: format!("rollouts, within {turns} turns"),
                points: h.solved.clone(),
                colour: (150, 190, 230),
                marked: false,
            },
            Line {
                name: "rollouts, first turn".into(),
                points: h.first.clone(),
                colour: (190, 190, 190),
                marked: false,
            },
            Line {
                name: format!("valid 1@{turns}"),
                points: h.valid.clone(),
                colour: (20, 90, 170),
                marked: true,
            },
        ];
        let title = format!("{} on {}", self.config.model, self.config.problems);
        curve(&self.out.dir.join("curve.svg"), &title, &lines)
    }

    /// The conditions of the final table, on the test split.
    fn summary(&mut self) -> Result<Summary> {
        let turns = self.config.episode.max_turns;
        let rollouts = self.config.eval.rollouts.max(1);
        let mode = self.config.episode.feedback;
        let base = self.trainer.base(self.config.eval_sampling());
        let trained = self.trainer.policy(self.config.eval_sampling());
        let bar = Bar::new("test", 5);
        let mut done = 0;
        let mut conditions = vec![];
        let mut pools = vec![];
        // A single-turn table has neither dialogs to compare nor feedback to falsify.
        let mut wanted: Vec<(&str, &dyn Policy, usize, FeedbackMode)> = vec![
            ("base", &base, turns, mode),
            ("trained", &trained, turns, mode),
        ];
        if turns > 1 {
            wanted.push(("base, independent tries", &base, 1, mode));
            wanted.push(("trained, independent tries", &trained, 1, mode));
            if self.test.len() > 1 {
                wanted.push((
                    "trained, random feedback",
                    &trained,
                    turns,
                    FeedbackMode::Random,
                ));
            }
        }
        for (name, policy, turns_here, feedback) in wanted {
            let each = rollouts * (turns / turns_here) as u64;
            let pool = self.pool(policy, &self.test, turns_here, feedback, each)?;
            let scores = (1..=turns)
                .map(|k| self.score(&pool, 1, k))
                .collect::<Result<Vec<_>>>()?;
            conditions.push(Condition {
                name: name.into(),
                scores,
            });
            pools.push(pool);
            done += 1;
            bar.set(done, name);
        }
        bar.finish();
        let mut differences = vec![];
        let pairs: &[(&str, usize, usize)] = &[
            ("trained − base", 1, 0),
            ("base: dialog − independent tries", 0, 2),
            ("trained: dialog − independent tries", 1, 3),
            ("trained: random feedback − base", 4, 0),
        ];
        for &(name, a, b) in pairs {
            if let (Some(x), Some(y)) = (pools.get(a), pools.get(b)) {
                let budget = |p: &Pool| Budget::new(1, turns, p.turn_limit);
                let bootstrap = Bootstrap {
                    seed: self.config.seed,
                    ..Bootstrap::default()
                };
                let difference = difference((x, &budget(x)?), (y, &budget(y)?), &bootstrap)?;
                differences.push(NamedDifference {
                    name: name.into(),
                    difference,
                });
            }
        }

        Ok(Summary {
            conditions,
            differences,
        })
    }
}

/// Sets the randomness of measurements apart from that of the rollouts learned from.
const EVAL: u64 = 0x6576_616c;

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
