//! The problems of a set through the judge, program by program on all workers. A few problems are in memory at a time,
//! and the results do not depend on the timing.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rlef_problems::{Problem, TestCase};

use super::AuditConfig;
use super::assess::{Context, Findings, Tally, assess};
use super::finding::{Finding, Kind};
use super::language::is_runnable;
use super::program::{Tried, run};
use super::record::{Record, Verdicts, content_digest, settings_digest};
use super::test_data;
use crate::fault::Fault;
use crate::judge::Judge;

/// A problem to be checked.
#[derive(Debug, Clone)]
pub struct Item {
    /// The caller's number for it.
    pub number: usize,
    /// Its split, if the set has any.
    pub split: Option<String>,
    /// The problem.
    pub problem: Problem,
}

/// What [`check_all`] tells while it works.
#[derive(Debug)]
pub enum Done {
    /// A program was run.
    Program,
    /// A problem was checked.
    Problem {
        /// The caller's number.
        number: usize,
        /// What was found.
        record: Record,
    },
}

/// Checks problems on `workers` threads (0 counts as 1). `done` is told of each program and, in no fixed order, of each
/// problem. Once `stop` is raised no further program is started, and problems that are not through are not reported.
///
/// The judge should not remember outcomes (`cache = false`): a program that is run again is to be run again.
///
/// # Errors
/// The first that `items` or `done` gives.
pub fn check_all<E>(
    judge: &Judge,
    config: &AuditConfig,
    items: impl Iterator<Item = Result<Item, E>>,
    workers: usize,
    stop: &AtomicBool,
    mut done: impl FnMut(Done) -> Result<(), E>,
) -> Result<(), E> {
    let settings = settings_digest(config, judge.config());
    let work = Work {
        judge,
        config,
        settings: &settings,
        stop,
    };
    let workers = workers.max(1);
    let queue = Queue::default();
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        let start = || {
            let sender = sender.clone();
            let (queue, work) = (&queue, &work);
            let thread = std::thread::Builder::new();
            thread.spawn_scoped(scope, move || {
                while let Some(task) = queue.next() {
                    work.run(task, &sender);
                }
            })
        };
        // Where the system gives no more threads, those that there are do the work.
        let started = (0..workers).map_while(|_| start().ok()).count();
        let mut feed = Feed {
            work: &work,
            queue: &queue,
            results: &results,
            sender: &sender,
            alone: started == 0,
            open: 0,
        };
        // Also when `items` or `done` panics: the threads must not wait for ever.
        let open = Open(&queue);
        let result = feed.through(items, workers, &mut done);
        if result.is_err() {
            queue.forget();
        }
        drop(open);
        result
    })
}

/// Closes the queue at its end.
struct Open<'a>(&'a Queue);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.forget();
        }
        self.0.close();
    }
}

/// The caller's side: hands out tasks and takes results.
struct Feed<'a, 'j> {
    work: &'a Work<'j>,
    queue: &'a Queue,
    results: &'a Receiver<Message>,
    sender: &'a Sender<Message>,
    /// Whether there are no other threads.
    alone: bool,
    /// Problems handed out and not yet back.
    open: usize,
}

impl Feed<'_, '_> {
    fn through<E>(
        &mut self,
        items: impl Iterator<Item = Result<Item, E>>,
        workers: usize,
        done: &mut impl FnMut(Done) -> Result<(), E>,
    ) -> Result<(), E> {
        for item in items {
            if self.work.stop.load(Ordering::SeqCst) {
                break;
            }
            let job = Arc::new(self.work.job(item?));
            self.open += 1;
            for program in 0..job.slots() {
                let job = Arc::clone(&job);
                self.queue.add(Task { job, program });
            }
            // Twice as many as workers keep all of them busy.
            while self.open >= 2 * workers {
                self.take(done)?;
            }
        }
        while self.open > 0 {
            self.take(done)?;
        }
        Ok(())
    }

    /// Takes one result; where there are no other threads it is made here.
    fn take<E>(&mut self, done: &mut impl FnMut(Done) -> Result<(), E>) -> Result<(), E> {
        if self.alone
            && let Some(task) = self.queue.try_next()
        {
            self.work.run(task, self.sender);
        }
        let Ok(message) = self.results.recv() else {
            // Not while this end has a sender as well.
            self.open = 0;
            return Ok(());
        };
        match message {
            Message::Program => done(Done::Program),
            Message::Problem(None) => {
                self.open -= 1;
                Ok(())
            }
            Message::Problem(Some((number, record))) => {
                self.open -= 1;
                done(Done::Problem {
                    number,
                    record: *record,
                })
            }
        }
    }
}

enum Message {
    Program,
    /// None: it was stopped.
    Problem(Option<(usize, Box<Record>)>),
}

/// A problem that is being worked on.
struct Job {
    item: Item,
    tests: Vec<TestCase>,
    /// Why there is nothing to run.
    unfit: Option<Finding>,
    /// What came of its programs, the accepted ones first.
    tried: Mutex<Vec<Tried>>,
    left: AtomicUsize,
}

impl Job {
    fn programs(&self) -> usize {
        self.item.problem.solutions.len() + self.item.problem.wrong_solutions.len()
    }

    /// Tasks that it is split into; a problem without programs is one.
    fn slots(&self) -> usize {
        self.programs().max(1)
    }
}

struct Task {
    job: Arc<Job>,
    program: usize,
}

/// What the workers share.
struct Work<'a> {
    judge: &'a Judge,
    config: &'a AuditConfig,
    settings: &'a str,
    stop: &'a AtomicBool,
}

impl Work<'_> {
    fn job(&self, item: Item) -> Job {
        let problem = &item.problem;
        let further = problem.private_tests.iter().chain(&problem.generated_tests);
        let tests = problem
            .public_tests
            .iter()
            .chain(further)
            .cloned()
            .collect();
        let job = Job {
            unfit: self.unfit(problem),
            tests,
            tried: Mutex::default(),
            left: AtomicUsize::new(0),
            item,
        };
        lock(&job.tried).resize_with(job.programs(), || Tried::NotRunnable);
        job.left.store(job.slots(), Ordering::SeqCst);
        job
    }

    /// Whether programs for the problem can be judged: if not, for a reason of its own or of this machine.
    fn unfit(&self, problem: &Problem) -> Option<Finding> {
        let fault = self.judge.ready(problem).err()?;
        let own = matches!(fault, Fault::Checker { .. } | Fault::Validator { .. })
            || self.judge.config().limits_for(problem).is_err();
        let kind = if own {
            Kind::CannotBeJudged
        } else {
            Kind::NotChecked
        };
        Some(Finding::new(kind, fault.to_string()))
    }

    fn run(&self, task: Task, sender: &Sender<Message>) {
        let job = &task.job;
        if task.program < job.programs() {
            let tried = caught(&job.item.problem, || self.tried(job, task.program))
                .unwrap_or_else(Tried::Fault);
            if let Some(slot) = lock(&job.tried).get_mut(task.program) {
                *slot = tried;
            }
            let _ = sender.send(Message::Program);
        }
        if job.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            let stopped = self.stop.load(Ordering::SeqCst)
                && lock(&job.tried)
                    .iter()
                    .any(|tried| matches!(tried, Tried::Stopped));
            let record = || {
                let record = caught(&job.item.problem, || self.record(job));
                record.unwrap_or_else(|fault| {
                    let finding = Finding::new(Kind::NotChecked, fault.to_string());
                    self.record_with(job, Verdicts::default(), None, vec![finding])
                })
            };
            let record = (!stopped).then(|| (job.item.number, Box::new(record())));
            let _ = sender.send(Message::Problem(record));
        }
    }

    fn tried(&self, job: &Job, program: usize) -> Tried {
        let problem = &job.item.problem;
        let (solution, at, repeats) = match problem.solutions.get(program) {
            Some(solution) => (Some(solution), program, self.config.repeats),
            None => {
                let at = program - problem.solutions.len();
                (problem.wrong_solutions.get(at), at, 1)
            }
        };
        match solution {
            Some(_) if self.stop.load(Ordering::SeqCst) => Tried::Stopped,
            Some(solution) if !is_runnable(self.judge, &solution.language) => Tried::NotRunnable,
            _ if self.config.programs.is_some_and(|most| at >= most) => Tried::LeftOut,
            Some(solution) if job.unfit.is_none() => run(
                self.judge,
                problem,
                solution,
                &job.tests,
                repeats,
                self.config,
                self.stop,
            ),
            _ => Tried::LeftOut,
        }
    }

    /// CPU seconds that programs have.
    fn limit_s(&self, problem: &Problem) -> f64 {
        let limits = self.judge.config().limits_for(problem);
        limits.map_or(problem.time_limit_s, |limits| limits.cpu.as_secs_f64())
    }

    fn record(&self, job: &Job) -> Record {
        let problem = &job.item.problem;
        let mut findings = Findings::default();
        test_data::look(problem, self.config, &mut findings);
        let (verdicts, slowest_s) = match &job.unfit {
            Some(finding) => {
                findings.add(finding.clone());
                (Verdicts::default(), None)
            }
            None => {
                let tried = lock(&job.tried);
                let programs = problem.solutions.iter().chain(&problem.wrong_solutions);
                let mut accepted: Vec<Tally> = programs
                    .zip(tried.iter())
                    .map(|(solution, tried)| Tally { solution, tried })
                    .collect();
                let wrong = accepted.split_off(problem.solutions.len());
                let names = test_data::names(problem);
                let about = Context {
                    config: self.config,
                    tests: &names,
                    limit_s: self.limit_s(problem),
                };
                assess(&about, &accepted, &wrong, &mut findings)
            }
        };
        self.record_with(job, verdicts, slowest_s, findings.finish())
    }

    fn record_with(
        &self,
        job: &Job,
        verdicts: Verdicts,
        slowest_s: Option<f64>,
        findings: Vec<Finding>,
    ) -> Record {
        let problem = &job.item.problem;
        Record {
            problem: problem.id.clone(),
            split: job.item.split.clone(),
            digest: content_digest(problem),
            settings: self.settings.to_owned(),
            tests: [
                problem.public_tests.len(),
                problem.private_tests.len(),
                problem.generated_tests.len(),
            ],
            verdicts,
            slowest_s,
            limit_s: self.limit_s(problem),
            findings,
        }
    }
}

/// What came of it, or that it panicked: what waits for its result must not wait for ever.
fn caught<T>(problem: &Problem, work: impl FnOnce() -> T) -> Result<T, Fault> {
    // Whatever it has left half done belongs to this problem, which is then not judged.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let texts = [
            panic.downcast_ref::<String>().map(String::as_str),
            panic.downcast_ref::<&str>().copied(),
        ];
        Fault::Panicked {
            problem: problem.id.clone(),
            what: texts
                .into_iter()
                .flatten()
                .next()
                .unwrap_or("no reason given")
                .to_owned(),
        }
    })
}

/// Tasks for the workers, in order.
#[derive(Default)]
struct Queue {
    tasks: Mutex<(VecDeque<Task>, bool)>,
    changed: Condvar,
}

impl Queue {
    fn add(&self, task: Task) {
        lock(&self.tasks).0.push_back(task);
        self.changed.notify_one();
    }

    /// The next task, as soon as there is one; none: there will be none.
    fn next(&self) -> Option<Task> {
        let mut tasks = lock(&self.tasks);
        loop {
            if let Some(task) = tasks.0.pop_front() {
                return Some(task);
            }
            if tasks.1 {
                return None;
            }
            tasks = self
                .changed
                .wait(tasks)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn try_next(&self) -> Option<Task> {
        lock(&self.tasks).0.pop_front()
    }

    fn forget(&self) {
        lock(&self.tasks).0.clear();
    }

    fn close(&self) {
        lock(&self.tasks).1 = true;
        self.changed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
