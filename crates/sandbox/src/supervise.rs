//! One run as the supervisor sees it: reads what the program writes, watches the clock and the accounts, ends the
//! run when a limit is passed, and says how it ended. Takes nothing on the program's word.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Gid, Uid, fchown, pipe2};

use crate::artifact::{self, Artifact};
use crate::candidate::{Code, CodeCache};
use crate::capture::Capture;
use crate::cgroup::{Bounds, Group, Killed, Used};
use crate::files::Files;
use crate::launcher::order;
use crate::own::within_own;
use crate::slot::{Slot, sealed};
use crate::usage;
use crate::verdict::{Stop, judge};
use crate::wire::{self, Product, ProductPlan, Reply, Report, RunEnd, RunRequest};
use crate::{Ending, Fault, Limits, Outcome};

/// Shortest and longest pause between two looks at what the run has used. A look costs some 50 µs; short runs end
/// before the first one.
const LOOKS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));
/// After being told to, a launcher ends a run within its own grace of 2 s; this is for one that hangs.
const END_PATIENCE: Duration = Duration::from_secs(20);
/// Open files of each process; an honest program has a handful.
const OPEN_FILES: u64 = 256;
/// Main thread's stack and that of each new thread (soft), and what a program may raise it to (hard).
const STACK_BYTES: (u64, u64) = (8 << 20, 64 << 20);
/// The launcher and the run's first process count as processes of the same user, and so does a warm interpreter.
pub(crate) const OWN_PROCESSES: u64 = 2;
/// The control group counts the warm interpreter and its go-between as well, and is not to be what decides.
const SPARE_TASKS: u64 = 8;
/// Address space where memory itself is bounded: programs map more than they touch, but what asks for much more than
/// there is is better told at once.
const GENEROUS: (u64, u64) = (4, 4 << 30);
/// Room in the private /tmp for the program's own file and the file system's bookkeeping.
const TMP_EXTRA: u64 = 64 << 10;

/// Longer than any run; keeps sums of times from overflowing.
pub(crate) const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// More than any private /tmp can hold; keeps the kernel's rounding from overflowing.
pub(crate) const MOST_BYTES: u64 = 1 << 50;

/// What is run: whatever the slot's [`Form`](wire::Form) says.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Text(&'a str),
    Compiled(&'a Artifact),
}

/// What the language of a program has to say about its limits.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// What an idle program of the language takes by itself.
    pub baseline: Baseline,
    /// Whether address space is bounded where memory itself is not: some runtimes reserve far more than they use.
    pub address_space: bool,
    /// Whether the limit on memory is kept by looking at what is resident where memory itself is not bounded. What is
    /// mapped is then bounded more widely, with room for a stack for each thread.
    pub sampled: bool,
    /// Soft and hard limit of the stack.
    pub stack: (u64, u64),
    /// Processes and threads that the language itself needs.
    pub processes: u32,
    /// What is found in stderr when memory has run out and the program failed for it. Besides Python's error.
    pub out_of_memory: Vec<String>,
}

impl Terms {
    /// Python's, with what an idle interpreter takes.
    pub(crate) fn python(baseline: Baseline) -> Self {
        Self {
            baseline,
            address_space: true,
            sampled: false,
            stack: STACK_BYTES,
            processes: 0,
            out_of_memory: Vec::new(),
        }
    }
}

/// What to run.
pub(crate) struct Job<'a> {
    pub source: Source<'a>,
    pub stdin: &'a [u8],
    /// What is to be done, without what concerns compiled code (`launcher/order.rs`).
    pub mode: u64,
    /// Keeps the compiled program for the next run of the same source.
    pub code: Option<&'a CodeCache>,
    pub limits: &'a Limits,
    pub terms: &'a Terms,
    /// What it finds in /tmp besides itself.
    pub files: Option<&'a Files>,
    /// Arguments for its command line, or further ones. Python programs have theirs in a file.
    pub arguments: &'a [String],
    /// What is taken out of /tmp at its end.
    pub product: Option<&'a ProductPlan>,
}

impl<'a> Job<'a> {
    /// One that runs a program which has stdin and nothing else.
    pub(crate) fn new(
        source: Source<'a>,
        stdin: &'a [u8],
        limits: &'a Limits,
        terms: &'a Terms,
    ) -> Self {
        Self {
            source,
            stdin,
            mode: order::RUN,
            code: None,
            limits,
            terms,
            files: None,
            arguments: &[],
            product: None,
        }
    }
}

/// What an idle interpreter takes by itself, in bytes: on top of it comes what the program may use.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Baseline {
    /// Address space.
    pub mapped: u64,
    /// Memory, that which it shares with others included.
    pub resident: u64,
}

/// What a run has come to.
pub(crate) struct Finished {
    pub outcome: Outcome,
    /// What came through the result pipe of a call.
    pub result: Vec<u8>,
    /// What it left behind, if that was wanted.
    pub product: Left,
}

/// What a run left behind.
pub(crate) enum Left {
    Nothing,
    Artifact(Artifact),
    TooLarge,
}

pub(crate) fn run(slot: &Slot, job: &Job) -> Result<Finished, Fault> {
    let done = carry_out(slot, job)?;
    let mut stop = done.stop;
    let (mut cpu, mut peak) = (
        Duration::from_micros(done.report.cpu_us),
        done.report.peak_bytes,
    );
    if let (Some(group), Some(used)) = (&slot.group, &done.used) {
        let lost = |reason| Err(broken("running a program", reason));
        match used.killed {
            Killed::Nobody => {}
            Killed::Elsewhere => {
                return lost(
                    "the machine ran out of memory, and the kernel ended one of its processes",
                );
            }
            // The launcher and the warm interpreter; nothing else is alive between runs.
            Killed::OverBound if group.processes() < 1 + usize::from(slot.cold.is_none()) => {
                return lost("for want of memory the kernel ended a process of the sandbox itself");
            }
            Killed::OverBound if stop == Some(Stop::Cpu) => {}
            Killed::OverBound => stop = Some(Stop::Memory),
        }
        cpu = cpu.max(
            used.cpu
                .map_or(Duration::ZERO, |all| group.without_own(all)),
        );
        peak = group.peak_of_program(used).unwrap_or(peak);
    }
    let mut output = done.output.into_iter();
    let [Some(stdout), Some(stderr)] = [output.next(), output.next()] else {
        return Err(broken("reading a program's output", "it has none"));
    };
    let result = output.next();
    let ending = if stdout.over || stderr.over || result.as_ref().is_some_and(|r| r.over) {
        Ending::OutputLimit
    } else {
        let (status, wall) = (done.report.status, done.wall);
        let signs = &job.terms.out_of_memory;
        judge(stop, status, cpu, wall, &stderr.bytes, job.limits, signs)?
    };
    let outcome = Outcome {
        ending,
        stdout: stdout.bytes,
        stderr: stderr.bytes,
        cpu,
        wall: done.wall,
        peak_memory_bytes: Some(peak).filter(|b| *b > 0),
    };
    Ok(Finished {
        outcome,
        result: result.map(|r| r.bytes).unwrap_or_default(),
        product: done.product,
    })
}

/// A run that is over, before anything is made of it.
pub(crate) struct Done {
    pub report: Report,
    /// What its control group says, where there is one.
    pub used: Option<Used>,
    stop: Option<Stop>,
    wall: Duration,
    /// stdout, stderr, and the result pipe of a call.
    output: Vec<Capture>,
    product: Left,
}

pub(crate) fn carry_out(slot: &Slot, job: &Job) -> Result<Done, Fault> {
    let counting = |e: io::Error| broken("using a control group", &e.to_string());
    if let Some(group) = &slot.group {
        group.begin(bounds(job, group)).map_err(counting)?;
    }
    let code = match job.code {
        Some(cache) => cache
            .take_up()
            .map_err(Fault::system("making a memory file"))?,
        None => Code::None,
    };
    let called = job.mode == order::CALL;
    let memory_file = Fault::system("making a memory file");
    let source = match job.source {
        Source::Text(text) => sealed("source", text.as_bytes()),
        Source::Compiled(artifact) => artifact.for_run(slot.identity),
    };
    let source = source.map_err(memory_file)?;
    let stdin = sealed("stdin", job.stdin).map_err(Fault::system("making a memory file"))?;
    let product = job.product.map(|_| artifact::empty()).transpose();
    let product = product.map_err(Fault::system("making a memory file"))?;
    let (stdout, stdout_end) = pipe(slot)?;
    let (stderr, stderr_end) = pipe(slot)?;
    let (result, result_end) = match called {
        true => {
            let (result, end) = pipe(slot)?;
            (Some(result), Some(end))
        }
        false => (None, None),
    };
    let mut descriptors = vec![
        source.as_raw_fd(),
        stdin.as_raw_fd(),
        stdout_end.as_raw_fd(),
        stderr_end.as_raw_fd(),
    ];
    descriptors.extend(result_end.iter().map(AsRawFd::as_raw_fd));
    descriptors.extend(code.file().map(AsRawFd::as_raw_fd));
    descriptors.extend(job.files.map(|files| files.file.as_raw_fd()));
    descriptors.extend(product.iter().map(AsRawFd::as_raw_fd));
    let start = Instant::now();
    slot.run(request(job, code.mode(), slot), &descriptors)
        .map_err(|e| broken("asking for a run", &e.to_string()))?;
    drop((source, stdin, stdout_end, stderr_end, result_end));
    let mut run = Run {
        slot,
        limits: job.limits,
        terms: job.terms,
        first: None,
        stop: None,
        stopped: None,
        seen: Duration::ZERO,
        output: [Some(stdout), Some(stderr), result]
            .into_iter()
            .flatten()
            .map(|pipe| Capture::new(pipe, job.limits.output_bytes))
            .collect(),
    };
    let report = run.attend(start)?;
    let wall = start.elapsed();
    if let (Some(cache), Code::Save(file)) = (job.code, code) {
        // The run's processes are dead, so that nobody can write to it any more.
        cache.keep(file);
    }
    let used = slot.group.as_ref().map(Group::used);
    let product = match (report.product, product) {
        (Product::Taken, Some(file)) => Artifact::keep(&file)
            .map(Left::Artifact)
            .map_err(Fault::system("keeping a compiled program"))?,
        (Product::TooLarge, _) => Left::TooLarge,
        _ => Left::Nothing,
    };
    Ok(Done {
        product,
        report,
        used: used.transpose().map_err(counting)?,
        stop: run.stop,
        wall,
        output: run.output,
    })
}

/// What a slot's group may hold during a run.
fn bounds(job: &Job, group: &Group) -> Bounds {
    let limits = job.limits;
    Bounds {
        // Files in /tmp are memory, and those that it is given are none of its doing.
        memory: (group.own.get().memory)
            .saturating_add(limits.memory_bytes)
            .saturating_add(job.files.map_or(0, |files| files.bytes)),
        tasks: u64::from(limits.processes)
            + u64::from(job.terms.processes)
            + OWN_PROCESSES
            + SPARE_TASKS,
    }
}

/// A pipe whose ends the sandbox's user owns: only then can the program open /dev/stdout by name.
fn pipe(slot: &Slot) -> Result<(File, OwnedFd), Fault> {
    let (read, write) = pipe2(OFlag::O_CLOEXEC).map_err(Fault::errno("making a pipe"))?;
    fcntl(&read, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
        .map_err(Fault::errno("setting up a pipe"))?;
    if slot.identity.drop {
        let (uid, gid) = (
            Uid::from_raw(slot.identity.uid),
            Gid::from_raw(slot.identity.gid),
        );
        fchown(&write, Some(uid), Some(gid)).map_err(Fault::errno("setting up a pipe"))?;
    }
    Ok((File::from(read), write))
}

/// Soft and hard limit of the stack of everything in a sandbox.
pub(crate) fn stack() -> (u64, u64) {
    let (_, soft, hard) = within_own((libc::RLIMIT_STACK, STACK_BYTES.0, STACK_BYTES.1));
    (soft, hard)
}

fn request(job: &Job, code: u64, slot: &Slot) -> RunRequest {
    let (limits, terms) = (job.limits, job.terms);
    let warm = slot.cold.is_none();
    let space = match &slot.group {
        Some(group) if group.bounds_memory() => {
            let (times, more) = GENEROUS;
            limits
                .memory_bytes
                .saturating_mul(times)
                .saturating_add(more)
        }
        _ if terms.sampled => {
            let stacks = u64::from(limits.processes).saturating_mul(terms.stack.0);
            limits.memory_bytes.saturating_add(stacks)
        }
        _ => limits.memory_bytes,
    };
    let cpu = limits.cpu.min(FOREVER);
    // A backstop should this process die or stall. The kernel counts timer ticks for it, which on a busy or virtual
    // machine run ahead of the exact account by a fifth and more; it must not be what decides.
    let seconds = cpu.as_secs().saturating_mul(2).saturating_add(2);
    let same = |what: u32, value: u64| (what, value, value);
    let mapped = terms.baseline.mapped.saturating_add(space);
    // Runtimes that reserve address space without end are bounded in what they map to be written to. Both are always set:
    // one that was only inherited would be charged to the program.
    let all = match terms.address_space {
        true => mapped,
        false => libc::RLIM_INFINITY,
    };
    let limits_of = vec![
        (libc::RLIMIT_CPU, seconds, seconds.saturating_add(1)),
        same(libc::RLIMIT_AS, all),
        same(libc::RLIMIT_DATA, mapped),
        same(libc::RLIMIT_FSIZE, limits.file_bytes),
        same(
            libc::RLIMIT_NPROC,
            u64::from(limits.processes)
                + u64::from(terms.processes)
                + OWN_PROCESSES
                + u64::from(warm),
        ),
        same(libc::RLIMIT_NOFILE, OPEN_FILES),
        (libc::RLIMIT_STACK, terms.stack.0, terms.stack.1),
        // Of a system that pipes core dumps into a program of its own, 0 does not keep it from doing so; 1 does.
        same(libc::RLIMIT_CORE, 1),
        same(libc::RLIMIT_MEMLOCK, 0),
        same(libc::RLIMIT_MSGQUEUE, 0),
        same(libc::RLIMIT_SIGPENDING, OPEN_FILES),
    ];
    RunRequest {
        mode: job.mode | code,
        limits: limits_of.into_iter().map(within_own).collect(),
        tmp_bytes: limits
            .file_bytes
            .min(MOST_BYTES)
            .saturating_add(job.source.bytes())
            .saturating_add(job.files.map_or(0, |files| files.bytes))
            .saturating_add(TMP_EXTRA),
        memory_bytes: limits.memory_bytes,
        arguments: job.arguments.to_vec(),
        files: job.files.is_some(),
        product: job.product.cloned(),
    }
}

impl Source<'_> {
    /// What it takes in /tmp, at most.
    fn bytes(self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Compiled(artifact) => artifact.unpacked_bytes(),
        }
    }
}

struct Run<'a> {
    slot: &'a Slot,
    limits: &'a Limits,
    terms: &'a Terms,
    first: Option<i32>,
    stop: Option<Stop>,
    stopped: Option<Instant>,
    /// CPU time at the last look.
    seen: Duration,
    /// stdout, stderr, and the result pipe of a call.
    output: Vec<Capture>,
}

impl Run<'_> {
    fn attend(&mut self, start: Instant) -> Result<Report, Fault> {
        let deadline = start + self.limits.wall.min(FOREVER);
        let mut next_look = start + self.limits.cpu.clamp(LOOKS.0, LOOKS.1);
        loop {
            let now = Instant::now();
            if let Some(stopped) = self.stopped {
                if now > stopped + END_PATIENCE {
                    return Err(broken("ending a run", "the launcher does not answer"));
                }
            } else if now >= deadline {
                // Not even begun: all of the time was spent waiting for a CPU.
                let none = usage::Usage {
                    waited: now - start,
                    ..Default::default()
                };
                let used = self.first.map_or(none, usage::look_closely);
                self.end(Stop::Wall {
                    cpu: used.cpu,
                    waited: used.waited,
                })?;
            } else if now >= next_look {
                next_look = now + self.look()?;
            }
            let until = self
                .stopped
                .map_or(deadline.min(next_look), |at| at + END_PATIENCE);
            if let Some(report) = self.step(until.saturating_duration_since(now))? {
                return Ok(report);
            }
        }
    }

    /// Checks the accounts; says when to check again.
    fn look(&mut self) -> Result<Duration, Fault> {
        let Some(first) = self.first else {
            return Ok(LOOKS.0);
        };
        let group = self.slot.group.as_ref();
        let grouped = group.is_some_and(Group::bounds_memory);
        let mut used = usage::Usage::default();
        let counted = group.and_then(Group::program_cpu);
        if counted.is_none() || !grouped {
            used = usage::look(first);
        }
        used.cpu = counted.unwrap_or(used.cpu);
        self.seen = used.cpu;
        if used.cpu >= self.limits.cpu {
            self.end(Stop::Cpu)?;
        } else if grouped {
            if group.is_some_and(Group::over_bound) {
                self.end(Stop::Memory)?;
            }
        } else if used.processes > 1 || self.terms.sampled {
            // One process is held by its address space, where that is bounded; several together are not. What they share
            // with the warm interpreter is counted for each in its part, so that all of them have no more of it than one
            // has.
            let own = self.terms.baseline.resident;
            let most = self.limits.memory_bytes.saturating_add(own);
            if used.resident > most && usage::proportional_memory(first).is_some_and(|m| m > most) {
                self.end(Stop::Memory)?;
            }
        }
        let left = self.limits.cpu.saturating_sub(used.cpu);
        Ok((left / 2).clamp(LOOKS.0, LOOKS.1))
    }

    fn end(&mut self, why: Stop) -> Result<(), Fault> {
        if self.stop.is_none() {
            self.stop = Some(why);
            self.stopped = Some(Instant::now());
            self.slot
                .kill()
                .map_err(|e| broken("ending a run", &e.to_string()))?;
        }
        Ok(())
    }

    /// Waits for news for at most `patience`; the report, when everything has ended.
    fn step(&mut self, patience: Duration) -> Result<Option<Report>, Fault> {
        // Rounded up: waking just before the deadline would only mean another round.
        let timeout =
            PollTimeout::try_from(patience + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        let mut ready = vec![PollFd::new(self.slot.as_fd(), PollFlags::POLLIN)];
        let open: Vec<usize> = (0..self.output.len())
            .filter(|i| self.output[*i].open)
            .collect();
        ready.extend(
            open.iter()
                .map(|i| PollFd::new(self.output[*i].pipe.as_fd(), PollFlags::POLLIN)),
        );
        match poll(&mut ready, timeout) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(Fault::errno("waiting for a program")(error)),
        }
        let news: Vec<bool> = ready.iter().map(|r| r.any().unwrap_or(true)).collect();
        for (index, _) in open.iter().zip(&news[1..]).filter(|(_, news)| **news) {
            self.output[*index]
                .read_some()
                .map_err(Fault::system("reading a program's output"))?;
        }
        if self.output.iter().any(|o| o.over) {
            self.end(Stop::Output)?;
        }
        if !news[0] {
            return Ok(None);
        }
        let lost = |reason: &str| broken("running a program", reason);
        match wire::receive::<Reply>(self.slot).map_err(|e| lost(&e.to_string()))? {
            Some((Reply::Started { pid }, _)) => {
                self.first = Some(pid);
                Ok(None)
            }
            Some((Reply::Ended(end), _)) => {
                // All writers are dead: what is in the pipes now is all there will ever be.
                for output in &mut self.output {
                    while output.open
                        && output
                            .read_some()
                            .map_err(Fault::system("reading a program's output"))?
                    {
                    }
                }
                match end {
                    RunEnd::Report(report) => Ok(Some(report)),
                    RunEnd::NotStarted(trouble) => {
                        Err(lost(&format!("{}: {}", trouble.step, trouble.error())))
                    }
                    // It had no time left to tell, but the reason for the end is ours and known.
                    RunEnd::Lost(status) if self.stop.is_some() => Ok(Some(Report {
                        status,
                        cpu_us: u64::try_from(self.seen.as_micros()).unwrap_or(u64::MAX),
                        peak_bytes: 0,
                        product: Product::Nothing,
                    })),
                    RunEnd::Lost(status) => Err(lost(&format!(
                        "its first process was killed from outside (status {status})"
                    ))),
                }
            }
            Some(_) => Err(lost("the launcher answered out of turn")),
            None => Err(lost("the launcher is gone")),
        }
    }
}

fn broken(doing: &'static str, reason: &str) -> Fault {
    Fault::Broken {
        doing,
        reason: reason.into(),
    }
}
