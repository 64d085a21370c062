//! Somebody else's isolation: a command line (a virtual machine, gVisor, bubblewrap …) that is given the program's file.
//!
//! For people who trust another wall more than this crate's, or need one against bugs in the kernel. What is kept here is
//! what can be kept from outside: input, capped outputs, the wall clock, the CPU time of the command and all that it has
//! waited for, and that everything in its process group is dead at the end. What the program may see, reach and use is
//! the command's business, memory included.

use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::capture::Capture;
use crate::lifeline::{lifeline, tie};
use crate::usage::{self, Usage};
use crate::{Ending, Fault, Limits, Outcome};

/// Stands for the program's file in a command.
const FILE: &str = "{file}";
/// How often the clock and the account are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Runs programs by an external command.
#[derive(Debug, Clone)]
pub struct External {
    command: Vec<String>,
}

impl External {
    /// `command` is a program and its arguments; `{file}` among them stands for the file with the program to run. It is
    /// tried once with a program that answers.
    ///
    /// # Errors
    /// [`Fault::External`] if it has no `{file}`, cannot be started, or does not run the program.
    pub fn new(command: Vec<String>) -> Result<Self, Fault> {
        let wrong = |what: &str| Fault::External {
            command: command.join(" "),
            what: what.to_owned(),
        };
        if command.is_empty() {
            return Err(wrong("is empty"));
        }
        if !command[1..].iter().any(|part| part.contains(FILE)) {
            return Err(wrong("does not say where the program's file goes: {file}"));
        }
        let external = Self {
            command: command.clone(),
        };
        let limits = Limits::with_cpu(Duration::from_secs(20));
        let tried = external.run("print(input()[::-1])", b"abc", &limits)?;
        if tried.ending != Ending::Exited(0) || tried.stdout != b"cba\n" {
            let said = String::from_utf8_lossy(&tried.stderr);
            let what = format!(
                "does not run a Python program: {}, {}",
                tried.ending,
                said.trim_end().lines().last().unwrap_or("nothing said")
            );
            return Err(wrong(&what));
        }
        Ok(external)
    }

    /// Runs `source` with `stdin` and waits for its end. Of the limits, CPU time (of each process, and of all that were
    /// waited for), wall-clock time and the size of the outputs are kept; the others are the command's business.
    ///
    /// # Errors
    /// A fault says nothing about the program.
    pub fn run(&self, source: &str, stdin: &[u8], limits: &Limits) -> Result<Outcome, Fault> {
        let folder = tempfile::tempdir().map_err(Fault::system("making a folder"))?;
        let write = |name: &str, bytes: &[u8]| -> io::Result<_> {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes)?;
            Ok(path)
        };
        let file =
            write("main.py", source.as_bytes()).map_err(Fault::system("writing a program"))?;
        let input = write("input", stdin).map_err(Fault::system("writing an input"))?;
        let input = File::open(input).map_err(Fault::system("opening an input"))?;
        let start = Instant::now();
        let (mut child, lifeline) =
            self.start(&file, input, limits)
                .map_err(|error| Fault::External {
                    command: self.command.join(" "),
                    what: format!("cannot be started: {error}"),
                })?;
        let ended = attend(&mut child, start, limits);
        // Whatever is left of its group, which nobody else can have joined.
        let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
        let (stop, outputs) = ended.map_err(Fault::system("attending to an external command"))?;
        let (status, cpu) = wait(&child).map_err(Fault::system("waiting for a command"))?;
        group_is_gone(Pid::from_raw(child.id() as i32));
        drop(lifeline);
        let wall = start.elapsed();
        let [stdout, stderr] = outputs;
        let status = std::process::ExitStatus::from_raw(status);
        let ending = match (stop, status.code(), status.signal()) {
            _ if stdout.over || stderr.over => Ending::OutputLimit,
            (Some(Over::Cpu), _, _) => Ending::CpuLimit,
            _ if cpu >= limits.cpu => Ending::CpuLimit,
            // It was ready to run for a good part of the time but got no CPU: with one it might have ended in time.
            (Some(Over::Wall(used)), _, _) if used.waited > limits.wall / 4 => {
                let (cpu, waited) = (used.cpu, used.waited);
                return Err(Fault::Overloaded { wall, cpu, waited });
            }
            (Some(Over::Wall(_)), _, _) => Ending::WallLimit,
            (_, Some(code), _) => Ending::Exited(code),
            (_, None, Some(libc::SIGXCPU)) => Ending::CpuLimit,
            (_, None, signal) => Ending::Signalled(signal.unwrap_or(libc::SIGKILL)),
        };
        Ok(Outcome {
            ending,
            stdout: stdout.bytes,
            stderr: stderr.bytes,
            cpu,
            wall,
            peak_memory_bytes: None,
        })
    }

    /// The child, and what must be kept for as long as it is to live.
    fn start(&self, file: &Path, input: File, limits: &Limits) -> io::Result<(Child, OwnedFd)> {
        let file = file.to_string_lossy();
        let mut parts = self.command.iter().map(|part| part.replace(FILE, &file));
        let mut command = Command::new(parts.next().unwrap_or_default());
        command
            .args(parts)
            .stdin(Stdio::from(input))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // Should this process be killed, everything in the group goes, stopped or not, as long as somebody in it keeps
        // the other end open: not closed at `exec`, though the command may do so.
        let (ours, theirs) = lifeline()?;
        let tied = theirs.as_raw_fd();
        // Twice the limit, as a backstop for processes that nobody waits for.
        let seconds = limits.cpu.as_secs().saturating_mul(2).saturating_add(2);
        // SAFETY: system calls only, no allocation; the descriptor is open until this function returns.
        unsafe {
            command.pre_exec(move || {
                nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
                // It has just become the leader of its group. Where the kernel has no such signal, it goes alone.
                let _ = tie(tied, -libc::getpid());
                if libc::fcntl(tied, libc::F_SETFD, 0) == -1 {
                    return Err(io::Error::last_os_error());
                }
                Ok(setrlimit(Resource::RLIMIT_CPU, seconds, seconds)?)
            });
        }
        Ok((command.spawn()?, ours))
    }
}

/// A clock that has run out.
enum Over {
    Cpu,
    Wall(Usage),
}

/// Reads the outputs until the command has ended or passed a limit. Which it passed, and what it wrote.
fn attend(
    child: &mut Child,
    start: Instant,
    limits: &Limits,
) -> io::Result<(Option<Over>, [Capture; 2])> {
    let capture = |pipe: Option<std::os::fd::OwnedFd>| -> io::Result<Capture> {
        let pipe = File::from(pipe.ok_or(io::ErrorKind::BrokenPipe)?);
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Capture::new(pipe, limits.output_bytes))
    };
    let mut outputs = [
        capture(child.stdout.take().map(Into::into))?,
        capture(child.stderr.take().map(Into::into))?,
    ];
    loop {
        let ended = has_ended(child)?;
        for output in &mut outputs {
            while output.open && output.read_some()? {}
        }
        if ended || outputs.iter().any(|o| o.over) {
            return Ok((None, outputs));
        }
        if usage::look(child.id() as i32).cpu >= limits.cpu {
            return Ok((Some(Over::Cpu), outputs));
        }
        if start.elapsed() >= limits.wall {
            let used = usage::look_closely(child.id() as i32);
            return Ok((Some(Over::Wall(used)), outputs));
        }
        let mut ready: Vec<PollFd> = outputs
            .iter()
            .filter(|o| o.open)
            .map(|o| PollFd::new(o.pipe.as_fd(), PollFlags::POLLIN))
            .collect();
        let timeout = PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::MAX);
        match poll(&mut ready, timeout) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        // A closed pipe is always ready; the clock must not run on without a pause.
        if ready.is_empty() {
            std::thread::sleep(LOOK);
        }
    }
}

/// Waits until nobody of a killed group is left, which takes the kernel a moment; only a process that it cannot end at
/// once (in the middle of a slow disk's answer) is not waited for.
fn group_is_gone(group: Pid) {
    let patience = Instant::now() + Duration::from_secs(2);
    while killpg(group, None).is_ok() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether it has ended, without taking its status away.
fn has_ended(child: &Child) -> io::Result<bool> {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let status = waitid(Id::Pid(Pid::from_raw(child.id() as i32)), flags)?;
    Ok(status != WaitStatus::StillAlive)
}

/// Waits for it; its status, and the CPU time of it and all that it has waited for.
fn wait(child: &Child) -> io::Result<(i32, Duration)> {
    let mut status = 0;
    // SAFETY: plain numbers, for which zero is a valid value.
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    loop {
        // SAFETY: both places are valid for the call. Nobody else waits for this child: it is never waited for through
        // its handle.
        let answer = unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage) };
        if answer >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let time = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec.unsigned_abs())
            + Duration::from_micros(t.tv_usec.unsigned_abs())
    };
    Ok((status, time(usage.ru_utime) + time(usage.ru_stime)))
}
