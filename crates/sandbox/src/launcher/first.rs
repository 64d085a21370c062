//! The first process of a run: pid 1 of its namespace, trusted, and the parent of the program.
//!
//! A program that were pid 1 itself would be spared its own signals (abort, kill) and could not be judged by them.
//! The first process also makes an account possible: it ends every process of the run and waits for each, so that
//! the CPU time of all of them is known, and only then reports. It has no handle on anything outside but the pipe
//! for that report, and its memory is closed to the program.

use std::fs::File;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;

use super::confine::{self, step};
use super::warm::Warm;
use super::{program, tree};
use crate::wire::{Report, RunEnd, RunRequest, Trouble};

/// What a run is started with; the same for all runs of a slot.
pub(super) struct Starter<'a> {
    pub prepared: &'a program::Prepared,
    pub late: &'a tree::LateBinds,
    /// Forks programs where there is one.
    pub warm: Option<&'a Warm>,
    /// See [`crate::wire::SlotPlan::programs_go_first`].
    pub programs_go_first: bool,
}

pub(super) fn main(
    starter: &Starter,
    request: &RunRequest,
    descriptors: Vec<OwnedFd>,
    report: OwnedFd,
) -> ! {
    let end = match start(starter, request, &descriptors) {
        Ok(pid) => {
            drop(descriptors);
            // The launcher's socket: only the launcher itself may keep it open.
            // SAFETY: nothing in this process uses descriptor 0 any more.
            unsafe { libc::close(0) };
            match attend(pid) {
                Ok(report) => RunEnd::Report(report),
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

fn start(starter: &Starter, request: &RunRequest, descriptors: &[OwnedFd]) -> Result<Pid, Trouble> {
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
    let copy = || -> io::Result<()> {
        io::copy(
            &mut File::from(source.try_clone()?),
            &mut File::create(&starter.prepared.file)?,
        )?;
        Ok(())
    };
    step("write the program", copy())?;
    match starter.warm {
        Some(warm) => warm.spawn(request, inside),
        None => starter.prepared.spawn(request, inside),
    }
}

/// Waits for the program or for a request to end, ends everything, and counts.
fn attend(program: Pid) -> io::Result<Report> {
    let mut status = None;
    while status.is_none() {
        // SAFETY: plain memory that the call fills in.
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let awaited = super::awaited();
        // SAFETY: both pointers are valid for the call.
        let signal =
            unsafe { libc::sigwaitinfo(std::ptr::from_ref(awaited.as_ref()), info.as_mut_ptr()) };
        // SAFETY: zeroed above, which is a valid value, and perhaps filled in by the kernel.
        let (info, sender) = unsafe { (info.assume_init(), info.assume_init().si_pid()) };
        // A sender outside the namespace has no number in it. Of signals sent with `kill` the kernel fills in the
        // sender, so the program cannot pass for one.
        if signal == libc::SIGTERM && info.si_code == libc::SI_USER && sender == 0 {
            break;
        }
        reap(program, &mut status, libc::WNOHANG)?;
    }
    // Everything but ourselves, in one step that no fork can outrun.
    let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
    reap(program, &mut status, 0)?;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Report {
        status: status.unwrap_or(libc::SIGKILL),
        cpu_us: u64::try_from(cpu).unwrap_or(0),
        peak_bytes: u64::try_from(usage.max_rss()).unwrap_or(0) * 1024,
    })
}

/// Waits for all children that have ended (or, without WNOHANG, for all), noting the program's status.
fn reap(program: Pid, status: &mut Option<i32>, options: i32) -> io::Result<()> {
    loop {
        let mut raw = 0;
        // SAFETY: the status is a valid place to write to.
        let pid = unsafe { libc::waitpid(-1, &raw mut raw, options | libc::__WALL) };
        match pid {
            0 => return Ok(()),
            -1 => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ECHILD) => return Ok(()),
                error if error.raw_os_error() == Some(libc::EINTR) => {}
                error => return Err(error),
            },
            pid if pid == program.as_raw() => *status = Some(raw),
            _ => {}
        }
    }
}
