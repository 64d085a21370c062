//! The first process of a run: pid 1 of its namespace, trusted, and the parent of the program.
//!
//! A program that were pid 1 itself would be spared its own signals (abort, kill) and could not be judged by them.
//! The first process also makes an account possible: it ends every process of the run and waits for each, so that
//! the CPU time of all of them is known, and only then reports. It has no handle on anything outside but the pipe
//! for that report and the one by which it is told to end the run, and its memory is closed to the program.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;

use super::confine::{self, step};
use super::landlock::Landlock;
use super::warm::Warm;
use super::{artifact, program, tree};
use crate::wire::{Form, Product, Report, RunEnd, RunRequest, Trouble};

/// What a run is started with; the same for all runs of a slot.
pub(super) struct Starter<'a> {
    pub prepared: &'a program::Prepared,
    pub late: &'a tree::LateBinds,
    /// Forks programs where there is one.
    pub warm: Option<&'a Warm>,
    /// See [`crate::wire::SlotPlan::programs_go_first`].
    pub programs_go_first: bool,
    /// Where the kernel has it.
    pub landlock: Option<Landlock>,
}

pub(super) fn main(
    starter: &Starter,
    request: &RunRequest,
    mut descriptors: Vec<OwnedFd>,
    report: OwnedFd,
    asked: OwnedFd,
) -> ! {
    // Not for the program: they stay here.
    let wanted = request.product.as_ref();
    let product = wanted.zip(descriptors.pop_if(|_| wanted.is_some()));
    let files = descriptors.pop_if(|_| request.files);
    let end = match start(starter, request, &descriptors, files) {
        Ok(pid) => {
            drop(descriptors);
            // The launcher's socket: only the launcher itself may keep it open.
            // SAFETY: nothing in this process uses descriptor 0 any more.
            unsafe { libc::close(0) };
            match attend(pid, &asked) {
                Ok(mut report) => {
                    // Everything of the run is dead, so that what lies in /tmp stays as it is.
                    if let Some((plan, file)) = product
                        && (plan.always || report.status == 0)
                    {
                        report.product = artifact::take(plan, file);
                    }
                    RunEnd::Report(report)
                }
                Err(error) => RunEnd::NotStarted(Trouble::new("wait for the program", error)),
            }
        }
        Err(trouble) => RunEnd::NotStarted(trouble),
    };
    let text = serde_json::to_vec(&end).unwrap_or_default();
    let told = File::from(report).write_all(&text);
    // SAFETY: ends the process without running exit handlers, which belong to the launcher.
    unsafe { libc::_exit(i32::from(told.is_err())) }
}

fn start(
    starter: &Starter,
    request: &RunRequest,
    descriptors: &[OwnedFd],
    files: Option<OwnedFd>,
) -> Result<Pid, Trouble> {
    // The launcher's death is ours.
    step(
        "be tied to the launcher",
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL),
    )?;
    if starter.programs_go_first && starter.warm.is_none() {
        // The program inherits it. While /proc is the slot's: the one of the run is read-only.
        step("go before the launcher", confine::go_first())?;
    }
    tree::refresh(starter.late, request.tmp_bytes)?;
    step("go to /tmp", std::env::set_current_dir("/tmp"))?;
    let [source, inside @ ..] = descriptors else {
        return Err(Trouble::new("take the descriptors", nix::Error::EBADF));
    };
    let prepared = starter.prepared;
    let copy = || -> io::Result<()> {
        io::copy(
            &mut File::from(source.try_clone()?),
            &mut File::create(&prepared.file)?,
        )?;
        Ok(())
    };
    let put = match prepared.form {
        Form::Python => copy(),
        Form::File | Form::Folder => artifact::put(source, &prepared.file, prepared.form),
        Form::Executable => Ok(()),
    };
    step("write the program", put)?;
    if let Some(files) = files {
        step(
            "write the program's files",
            artifact::unpack(&files, Path::new("/tmp")),
        )?;
    }
    let rules = starter.landlock.map(|l| l.rules(Path::new("/tmp")));
    let rules = step("make rules for Landlock", rules.transpose())?;
    match starter.warm {
        Some(warm) => warm.spawn(request, inside, rules.as_ref()),
        None => prepared.spawn(request, source, inside, rules.as_ref()),
    }
}

/// Waits for the program or for a request to end (`asked` is closed), ends everything, and counts.
fn attend(program: Pid, asked: &OwnedFd) -> io::Result<Report> {
    let mut children = SigSet::empty();
    children.add(Signal::SIGCHLD);
    let children = SignalFd::with_flags(&children, SfdFlags::SFD_NONBLOCK)?;
    let mut status = None;
    let mut more = false;
    while status.is_none() {
        let patience = if more {
            PollTimeout::ZERO
        } else {
            PollTimeout::NONE
        };
        let mut ready = [
            PollFd::new(children.as_fd(), PollFlags::POLLIN),
            PollFd::new(asked.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut ready, patience) {
            Err(nix::Error::EINTR) => continue,
            other => other?,
        };
        if ready[1].any().unwrap_or(true) {
            break;
        }
        let _ = children.read_signal()?;
        more = reap(program, &mut status, libc::WNOHANG)?;
    }
    // Everything but ourselves, in one step that no fork can outrun.
    let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
    while reap(program, &mut status, 0)? {}
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Report {
        status: status.unwrap_or(libc::SIGKILL),
        cpu_us: u64::try_from(cpu).unwrap_or(0),
        peak_bytes: u64::try_from(usage.max_rss()).unwrap_or(0) * 1024,
        product: Product::Nothing,
    })
}

/// Children waited for in one go: a program that never stops making orphans must not keep a request to end waiting.
const REAPED_AT_ONCE: u32 = 64;

/// Waits for children that have ended (or, without WNOHANG, for any), noting the program's status; whether there may
/// be more.
fn reap(program: Pid, status: &mut Option<i32>, options: i32) -> io::Result<bool> {
    for _ in 0..REAPED_AT_ONCE {
        let mut raw = 0;
        // SAFETY: the status is a valid place to write to.
        let pid = unsafe { libc::waitpid(-1, &raw mut raw, options | libc::__WALL) };
        match pid {
            0 => return Ok(false),
            -1 => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ECHILD) => return Ok(false),
                error if error.raw_os_error() == Some(libc::EINTR) => {}
                error => return Err(error),
            },
            pid if pid == program.as_raw() => *status = Some(raw),
            _ => {}
        }
    }
    Ok(true)
}
