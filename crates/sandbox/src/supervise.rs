//! One run as the supervisor sees it: reads what the program writes, watches the clock and the accounts, ends the
//! run when a limit is passed, and says how it ended. Takes nothing on the program's word.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Gid, Uid, fchown, pipe2};

use crate::slot::{Slot, sealed};
use crate::usage;
use crate::verdict::{Stop, judge};
use crate::wire::{self, Reply, Report, RunEnd, RunRequest};
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
const OWN_PROCESSES: u64 = 2;
/// Room in the private /tmp for the program's own file and the file system's bookkeeping.
const TMP_EXTRA: u64 = 64 << 10;

/// Longer than any run; keeps sums of times from overflowing.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// More than any private /tmp can hold; keeps the kernel's rounding from overflowing.
const MOST_BYTES: u64 = 1 << 50;

/// What to run.
pub(crate) struct Job<'a> {
    pub source: &'a str,
    pub stdin: &'a [u8],
    pub check: bool,
    pub limits: &'a Limits,
    /// What an idle interpreter maps, in bytes: on top of it comes what the program may use.
    pub baseline: u64,
}

pub(crate) fn run(slot: &Slot, job: &Job) -> Result<Outcome, Fault> {
    let source =
        sealed("source", job.source.as_bytes()).map_err(Fault::system("making a memory file"))?;
    let stdin = sealed("stdin", job.stdin).map_err(Fault::system("making a memory file"))?;
    let (stdout, stdout_end) = pipe(slot)?;
    let (stderr, stderr_end) = pipe(slot)?;
    let descriptors = [
        source.as_raw_fd(),
        stdin.as_raw_fd(),
        stdout_end.as_raw_fd(),
        stderr_end.as_raw_fd(),
    ];
    let start = Instant::now();
    slot.run(request(job, slot.cold.is_none()), &descriptors)
        .map_err(|e| broken("asking for a run", &e.to_string()))?;
    drop((source, stdin, stdout_end, stderr_end));
    let mut run = Run {
        slot,
        limits: job.limits,
        first: None,
        stop: None,
        stopped: None,
        seen: Duration::ZERO,
        output: [
            Capture::new(stdout, job.limits.output_bytes),
            Capture::new(stderr, job.limits.output_bytes),
        ],
    };
    let report = run.attend(start, job.baseline)?;
    let wall = start.elapsed();
    let Run {
        stop,
        output: [stdout, stderr],
        ..
    } = run;
    let cpu = Duration::from_micros(report.cpu_us);
    let ending = if stdout.over || stderr.over {
        Ending::OutputLimit
    } else {
        judge(stop, report.status, cpu, wall, &stderr.bytes, job.limits)?
    };
    Ok(Outcome {
        ending,
        stdout: stdout.bytes,
        stderr: stderr.bytes,
        cpu,
        wall,
        peak_memory_bytes: Some(report.peak_bytes).filter(|b| *b > 0),
    })
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

fn request(job: &Job, warm: bool) -> RunRequest {
    let limits = job.limits;
    let cpu = limits.cpu.min(FOREVER);
    // A backstop should this process die or stall. The kernel counts timer ticks for it, which on a busy or virtual
    // machine run ahead of the exact account by a fifth and more; it must not be what decides.
    let seconds = cpu.as_secs().saturating_mul(2).saturating_add(2);
    let same = |what: u32, value: u64| (what, value, value);
    let limits_of = vec![
        (libc::RLIMIT_CPU, seconds, seconds.saturating_add(1)),
        same(
            libc::RLIMIT_AS,
            job.baseline.saturating_add(limits.memory_bytes),
        ),
        same(libc::RLIMIT_FSIZE, limits.file_bytes),
        same(
            libc::RLIMIT_NPROC,
            u64::from(limits.processes) + OWN_PROCESSES + u64::from(warm),
        ),
        same(libc::RLIMIT_NOFILE, OPEN_FILES),
        (libc::RLIMIT_STACK, STACK_BYTES.0, STACK_BYTES.1),
        // Of a system that pipes core dumps into a program of its own, 0 does not keep it from doing so; 1 does.
        same(libc::RLIMIT_CORE, 1),
        same(libc::RLIMIT_MEMLOCK, 0),
        same(libc::RLIMIT_MSGQUEUE, 0),
        same(libc::RLIMIT_SIGPENDING, OPEN_FILES),
    ];
    RunRequest {
        check: job.check,
        limits: limits_of.into_iter().map(within_own).collect(),
        tmp_bytes: limits
            .file_bytes
            .min(MOST_BYTES)
            .saturating_add(job.source.len() as u64)
            .saturating_add(TMP_EXTRA),
    }
}

/// An ordinary user cannot raise a hard limit: what we have is the most that we can give.
fn within_own((what, soft, hard): (u32, u64, u64)) -> (u32, u64, u64) {
    let mut own = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is valid and the call only fills it in.
    let most = if unsafe { libc::getrlimit(what as _, &raw mut own) } == 0 {
        own.rlim_max
    } else {
        hard
    };
    (what, soft.min(most), hard.min(most))
}

struct Run<'a> {
    slot: &'a Slot,
    limits: &'a Limits,
    first: Option<i32>,
    stop: Option<Stop>,
    stopped: Option<Instant>,
    /// CPU time at the last look.
    seen: Duration,
    output: [Capture; 2],
}

impl Run<'_> {
    fn attend(&mut self, start: Instant, baseline: u64) -> Result<Report, Fault> {
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
                next_look = now + self.look(baseline)?;
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
    fn look(&mut self, baseline: u64) -> Result<Duration, Fault> {
        let Some(first) = self.first else {
            return Ok(LOOKS.0);
        };
        let used = usage::look(first);
        self.seen = used.cpu;
        if used.cpu >= self.limits.cpu {
            self.end(Stop::Cpu)?;
        } else if used.processes > 1
            && used.resident > self.limits.memory_bytes.saturating_add(baseline)
        {
            // One process is held by its address space; several together are not.
            let memory = usage::proportional_memory(first).unwrap_or(0);
            if memory > self.limits.memory_bytes.saturating_add(baseline) {
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
        let open: Vec<usize> = (0..2).filter(|i| self.output[*i].open).collect();
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

/// One of the program's outputs, kept up to the cap.
struct Capture {
    pipe: File,
    bytes: Vec<u8>,
    cap: usize,
    /// More came than may.
    over: bool,
    open: bool,
}

impl Capture {
    fn new(pipe: File, cap: u64) -> Self {
        Self {
            pipe,
            bytes: Vec::new(),
            cap: usize::try_from(cap).unwrap_or(usize::MAX),
            over: false,
            open: true,
        }
    }

    /// Reads once; whether there may be more.
    fn read_some(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 64 << 10];
        match self.pipe.read(&mut chunk) {
            Ok(0) => self.open = false,
            Ok(length) => {
                let room = self.cap - self.bytes.len();
                self.bytes.extend_from_slice(&chunk[..length.min(room)]);
                self.over |= length > room;
                // Nothing beyond the cap is of use, and reading on would keep a flood going.
                self.open = !self.over;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(self.open)
    }
}
