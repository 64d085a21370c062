//! The loop: episodes × a policy × the judge.
//!
//! Tasks are cut into batches of a fixed size, so that what is computed does not depend on the number of workers;
//! each worker takes a batch, lets the policy answer all its dialogs, runs the programs, and so on until every
//! dialog has ended. While one worker's programs run, another one's dialogs decode.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rlef_env::{Episode, EpisodeConfig, EpisodeError, FeedbackMode, StepError, choose_donor};
use rlef_judge::Judge;
use rlef_problems::Problem;

use crate::rollout::{Author, Outcome, Rollout, Token, Turn};
use crate::seed::dialog_seed;
use crate::{Ask, Full, Policy, PolicyError, Reply, Session};

/// One episode to run.
#[derive(Debug, Clone)]
pub struct Task {
    /// The problem.
    pub problem: Arc<Problem>,
    /// Gives the feedback when it is random.
    pub donor: Option<Arc<Problem>>,
    /// Which rollout of this problem it is: its randomness depends on it.
    pub sample: u64,
}

impl Task {
    /// Rollout `sample` of `problem` in a run of that seed; `split` is what a donor is chosen from where the feedback
    /// is random.
    pub fn new(
        problem: &Arc<Problem>,
        sample: u64,
        split: &[Arc<Problem>],
        episode: &EpisodeConfig,
        seed: u64,
    ) -> Self {
        let donor = match episode.feedback {
            FeedbackMode::Random => choose_donor(
                split,
                &problem.id,
                start(dialog_seed(seed, &problem.id, sample, usize::MAX)),
            ),
            FeedbackMode::Real | FeedbackMode::None => None,
        };
        Self {
            problem: problem.clone(),
            donor,
            sample,
        }
    }

    /// Its episode in a run of that seed.
    ///
    /// # Errors
    /// A setting, the problem or the donor is not usable.
    pub fn episode(&self, config: &EpisodeConfig, seed: u64) -> Result<Episode, EpisodeError> {
        let seed = dialog_seed(seed, &self.problem.id, self.sample, usize::MAX - 1);
        Episode::new(
            self.problem.clone(),
            self.donor.clone(),
            config,
            start(seed),
        )
    }
}

/// The first eight bytes of a seed.
fn start(seed: [u8; 32]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = seed;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// How episodes are run.
#[derive(Debug, Clone)]
pub struct Drive {
    /// Settings of each episode.
    pub episode: EpisodeConfig,
    /// The run's seed.
    pub seed: u64,
    /// Threads.
    pub workers: usize,
    /// Dialogs that are answered together.
    pub batch: usize,
}

/// How far a [`drive`] is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Episodes that have ended.
    pub done: usize,
    /// Episodes in all.
    pub total: usize,
    /// Tokens sampled so far.
    pub sampled: u64,
}

/// Where the workers' time went, summed over workers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    /// Answering.
    pub generate: Duration,
    /// Running programs.
    pub execute: Duration,
}

/// Why a [`drive`] stopped.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// An episode could not be set up.
    #[error(transparent)]
    Episode(#[from] EpisodeError),
    /// The policy cannot answer.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// It was told to stop.
    #[error("stopped")]
    Stopped,
}

/// Tasks for `samples` rollouts of each problem, with donors where the feedback is random.
pub fn tasks(
    problems: &[Arc<Problem>],
    samples: std::ops::Range<u64>,
    episode: &EpisodeConfig,
    seed: u64,
) -> Vec<Task> {
    let mut all = Vec::new();
    for problem in problems {
        for sample in samples.clone() {
            all.push(Task::new(problem, sample, problems, episode, seed));
        }
    }
    all
}

/// Runs every task; outcomes in the order of the tasks.
///
/// `stop` ends it at the next turn; `progress` is called after every turn of a batch.
///
/// # Errors
/// A task that cannot be set up, a policy that cannot answer, or [`DriveError::Stopped`]. A fault of the machinery
/// under one program is no error here but an [`Outcome::Lost`].
pub fn drive(
    policy: &dyn Policy,
    judge: &Judge,
    tasks: &[Task],
    config: &Drive,
    stop: &AtomicBool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(Vec<Outcome>, Timing), DriveError> {
    let batch = config.batch.max(1);
    let batches = tasks.len().div_ceil(batch);
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let shared = Shared {
        judge,
        config,
        stop,
        failed: &failed,
        progress,
        total: tasks.len(),
        done: AtomicUsize::new(0),
        sampled: AtomicU64::new(0),
        generate: AtomicU64::new(0),
        execute: AtomicU64::new(0),
    };
    let slots: Vec<Slot> = (0..batches).map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= batches || failed.load(Ordering::Relaxed) {
                return;
            }
            let part = &tasks[i * batch..tasks.len().min((i + 1) * batch)];
            let result = shared.batch(policy, part);
            if result.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            if let Ok(mut slot) = slots[i].lock() {
                *slot = Some(result);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..config.workers.clamp(1, batches.max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let mut outcomes = Vec::with_capacity(tasks.len());
    let mut stopped = false;
    for slot in slots {
        match slot.into_inner().ok().flatten() {
            Some(Ok(part)) => outcomes.extend(part),
            Some(Err(DriveError::Stopped)) | None => stopped = true,
            Some(Err(e)) => return Err(e),
        }
    }
    if stopped {
        return Err(DriveError::Stopped);
    }
    let timing = Timing {
        generate: Duration::from_nanos(shared.generate.load(Ordering::Relaxed)),
        execute: Duration::from_nanos(shared.execute.load(Ordering::Relaxed)),
    };
    Ok((outcomes, timing))
}

/// What a batch came to, once it has.
type Slot = Mutex<Option<Result<Vec<Outcome>, DriveError>>>;

struct Shared<'a> {
    judge: &'a Judge,
    config: &'a Drive,
    stop: &'a AtomicBool,
    failed: &'a AtomicBool,
    progress: &'a (dyn Fn(Progress) + Sync),
    total: usize,
    done: AtomicUsize,
    sampled: AtomicU64,
    generate: AtomicU64,
    execute: AtomicU64,
}

struct Open {
    task: Task,
    episode: Episode,
    rollout: Rollout,
    lost: Option<String>,
}

impl Open {
    /// Ends a dialog that has grown too long for the model. What came before stands: its last answer was its last.
    ///
    /// # Errors
    /// If there is no answer yet: a prompt that is too long by itself is no dialog.
    fn end_full(&mut self, full: Full, judge: &Judge) -> Result<(), PolicyError> {
        let Some(turn) = self.rollout.turns.last_mut() else {
            return Err(PolicyError::Full {
                problem: self.task.problem.id.clone(),
                full,
            });
        };
        match self.episode.end(judge) {
            Ok(step) => {
                turn.step = step.unwrap_or_else(|| turn.step.clone());
                self.rollout.full = true;
            }
            Err(fault) => self.lost = Some(fault.to_string()),
        }
        Ok(())
    }
}

impl Shared<'_> {
    fn batch(&self, policy: &dyn Policy, tasks: &[Task]) -> Result<Vec<Outcome>, DriveError> {
        let mut session = policy.open();
        let mut open = Vec::new();
        for task in tasks {
            let episode = task.episode(&self.config.episode, self.config.seed)?;
            let rollout = Rollout {
                problem: task.problem.clone(),
                sample: task.sample,
                tokens: vec![],
                turns: vec![],
                messages: vec![],
                full: false,
            };
            open.push(Open {
                task: task.clone(),
                episode,
                rollout,
                lost: None,
            });
        }
        for turn in 0.. {
            let going: Vec<usize> = (0..open.len())
                .filter(|&i| open[i].lost.is_none() && !open[i].episode.is_done())
                .collect();
            if going.is_empty() {
                break;
            }
            if self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed) {
                return Err(DriveError::Stopped);
            }
            self.turn(&mut *session, &mut open, &going, turn)?;
        }
        Ok(open
            .into_iter()
            .map(|o| match o.lost {
                Some(why) => Outcome::Lost {
                    problem: o.task.problem.id.clone(),
                    sample: o.task.sample,
                    why,
                },
                None => {
                    let mut rollout = o.rollout;
                    rollout.messages = o.episode.messages().to_vec();
                    Outcome::Done(Box::new(rollout))
                }
            })
            .collect())
    }

    fn turn(
        &self,
        session: &mut dyn Session,
        open: &mut [Open],
        going: &[usize],
        turn: usize,
    ) -> Result<(), DriveError> {
        let start = Instant::now();
        let asks: Vec<Ask> = going
            .iter()
            .map(|&i| Ask {
                dialog: i,
                problem: &open[i].task.problem,
                messages: open[i].episode.messages(),
                turn,
                seed: dialog_seed(
                    self.config.seed,
                    &open[i].task.problem.id,
                    open[i].task.sample,
                    turn,
                ),
            })
            .collect();
        let replies = session.answer(&asks)?;
        self.generate
            .fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        let start = Instant::now();
        for (&i, reply) in going.iter().zip(replies) {
            let o = &mut open[i];
            let answer = match reply {
                Reply::Answer(answer) => answer,
                Reply::Full(full) => {
                    o.end_full(full, self.judge)?;
                    self.done.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
            };
            let env = |id| Token {
                id,
                author: Author::Environment,
                logprob: 0.0,
                version: 0,
            };
            o.rollout.tokens.extend(answer.prompt.into_iter().map(env));
            let from = o.rollout.tokens.len();
            let version = answer.version;
            self.sampled
                .fetch_add(answer.tokens.len() as u64, Ordering::Relaxed);
            o.rollout
                .tokens
                .extend(answer.tokens.into_iter().map(|(id, logprob)| Token {
                    id,
                    author: Author::Policy,
                    logprob,
                    version,
                }));
            match o.episode.step(&answer.text, self.judge) {
                Ok(step) => {
                    if step.done {
                        self.done.fetch_add(1, Ordering::Relaxed);
                    }
                    let to = o.rollout.tokens.len();
                    o.rollout.turns.push(Turn {
                        answer: from..to,
                        finished: answer.finished,
                        step,
                    });
                }
                Err(error @ (StepError::Fault(_) | StepError::Ended { .. })) => {
                    self.done.fetch_add(1, Ordering::Relaxed);
                    o.lost = Some(error.to_string());
                }
            }
        }
        self.execute
            .fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        (self.progress)(Progress {
            done: self.done.load(Ordering::Relaxed),
            total: self.total,
            sampled: self.sampled.load(Ordering::Relaxed),
        });
        Ok(())
    }
}
