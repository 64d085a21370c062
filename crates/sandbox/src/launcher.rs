//! The launcher: a small process of its own for each sandbox slot, from which programs are forked.
//!
//! Why a process: the caller may be huge and have many threads. Forking it would copy its page tables for every run
//! and leave its memory (which may hold the answers) in the child; `clone` with shared memory would put code that
//! builds file trees into the caller's address space. The launcher is this same executable started afresh, so it
//! holds nothing of the caller, has one thread, and costs a fraction of a millisecond to fork.
//!
//! How it starts: the loader calls [`at_start`] before `main` in every program that links this crate; without the
//! mark in the environment and a packet socket on descriptor 0 it returns at once. The supervisor asks for it by
//! starting `/proc/self/exe` with both. It never returns to `main`.
//!
//! What it does: takes one plan, becomes an unprivileged user in namespaces of its own with the private root, then
//! serves one run at a time until the socket closes. That is also how it learns of the caller's death, however
//! that comes: it then kills the run and ends; should it die itself, the kernel kills the run's first process, and
//! with it its namespace's whole process tree. Should it have been stopped, so that it learns nothing, the lifeline
//! (`lifeline.rs`) ends it.

mod artifact;
mod confine;
mod first;
mod landlock;
pub(crate) mod order;
mod program;
mod tree;
mod warm;

use std::ffi::c_int;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::lifeline::tie_self;
use crate::wire::{Reply, Request, RunEnd, RunRequest, SlotPlan, Trouble, receive, send};

pub(crate) use confine::FIXED_ADDRESSES;
pub(crate) use landlock::STEP as LANDLOCK;

/// Environment variable that makes a program of this crate a launcher.
pub(crate) const MARK: &str = "RLEF_SANDBOX_LAUNCHER";

/// How long the run's first process may take to end its tree before it is killed itself (which ends the tree as
/// well, but without a report).
const GRACE: Duration = Duration::from_secs(2);

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

/// Makes the linker keep [`AT_START`].
pub(crate) fn present() -> bool {
    std::hint::black_box(&raw const AT_START) as usize != 0
}

extern "C" fn at_start() {
    // SAFETY: getenv on a constant string, before any thread exists that could change the environment.
    let marked = unsafe { !libc::getenv(c"RLEF_SANDBOX_LAUNCHER".as_ptr()).is_null() };
    if !marked {
        return;
    }
    // SAFETY: descriptor 0 is only borrowed, and only in this function, which closes nothing.
    let socket = unsafe { BorrowedFd::borrow_raw(0) };
    use nix::sys::socket::{SockType, getsockopt, sockopt};
    if getsockopt(&socket, sockopt::SockType) != Ok(SockType::SeqPacket) {
        return;
    }
    let code = c_int::from(serve(socket).is_err());
    // SAFETY: ends the process; nothing of the program that links this crate has run yet.
    unsafe { libc::_exit(code) }
}

fn serve(socket: BorrowedFd) -> io::Result<()> {
    // SAFETY: as for the socket.
    let lifeline = unsafe { BorrowedFd::borrow_raw(1) };
    // Where the kernel has no such signal, the socket tells of the caller's death as long as nobody stops this process.
    let _ = tie_self(&lifeline);
    // Away from the caller's terminal: Ctrl-C there is the caller's to handle.
    let _ = nix::unistd::setsid();
    // What the caller left open for its children in general is not meant for this one.
    // SAFETY: nothing in this process has opened a descriptor yet that is used later.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    confine::reset_signals()?;
    // Whatever the caller's: folders of the private root must be readable to the unprivileged user.
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
    let Some((Request::Setup, descriptors)) = receive(&socket)? else {
        return Ok(());
    };
    let mut text = Vec::new();
    for descriptor in descriptors {
        File::from(descriptor).read_to_end(&mut text)?;
    }
    let plan: SlotPlan = serde_json::from_slice(&text)?;
    let prepared = program::Prepared::new(&plan)?;
    let (mut missing, warm) = match confine::set_up(&plan) {
        Ok(done) => done,
        Err(trouble) => return send(&socket, &Reply::Unsupported(trouble), &[]),
    };
    // Once more as the user that it has become: in a container, the one that it was may not signal that one.
    let _ = tie_self(&lifeline);
    let (warm, cold) = match warm {
        Ok(warm) => (Some(warm), None),
        Err(reason) => (None, Some(reason)),
    };
    let landlock = landlock::Landlock::find()
        .map_err(|error| missing.push(Trouble::new(LANDLOCK, error)))
        .ok();
    send(&socket, &Reply::Ready { missing, cold }, &[])?;
    let late = tree::LateBinds::of(&plan.root);
    while let Some((request, descriptors)) = receive(&socket)? {
        // A Kill that crossed the end of its run is of no account.
        if let Request::Run(request) = request {
            let extras = order::extras(request.mode).iter().filter(|e| **e).count();
            let files = usize::from(request.files);
            let wanted = 4 + extras + files + usize::from(request.product.is_some());
            let end = match descriptors.len() == wanted {
                true => {
                    let starter = first::Starter {
                        prepared: &prepared,
                        late: &late,
                        warm: warm.as_ref(),
                        programs_go_first: plan.programs_go_first,
                        landlock,
                    };
                    run(socket, &starter, &request, descriptors)?
                }
                false => {
                    RunEnd::NotStarted(Trouble::new("take the descriptors", nix::Error::EBADMSG))
                }
            };
            send(&socket, &Reply::Ended(end), &[])?;
        }
    }
    Ok(())
}

/// One run, from the fork of its first process to the end of its last.
fn run(
    socket: BorrowedFd,
    starter: &first::Starter,
    request: &RunRequest,
    descriptors: Vec<OwnedFd>,
) -> io::Result<RunEnd> {
    if let Some(warm) = starter.warm {
        warm.next();
    }
    let (report, write_end) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    // Closing it asks the first process to end the run. No signal: the program can send the same one, and of two that
    // wait to be taken the kernel keeps the first.
    let (asked, end) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::SIGCHLD;
    // SAFETY: like fork (no shared memory, no stack given); this process has one thread, so the child may go on
    // with all of the library. The raw call is used because only clone takes namespace flags.
    let answer = unsafe { libc::syscall(libc::SYS_clone, flags as libc::c_ulong, 0, 0, 0, 0) };
    let pid = match answer {
        -1 => {
            return Ok(RunEnd::NotStarted(Trouble::new(
                "start a process",
                io::Error::last_os_error(),
            )));
        }
        0 => {
            drop(end);
            first::main(starter, request, descriptors, write_end, asked)
        }
        pid => Pid::from_raw(pid as i32),
    };
    drop((descriptors, write_end, asked));
    // From here on the run must not outlive an error.
    let watched = send(&socket, &Reply::Started { pid: pid.as_raw() }, &[])
        .and_then(|()| watch(socket, &report, pid, end));
    if watched.is_err() {
        let _ = kill(pid, Signal::SIGKILL);
    }
    let status = loop {
        // The kernel has ended every process of the namespace before its first one can be waited for.
        match waitpid(pid, None) {
            Err(nix::Error::EINTR) => {}
            other => break other?,
        }
    };
    watched?;
    let mut text = Vec::new();
    File::from(report).read_to_end(&mut text)?;
    Ok(
        serde_json::from_slice(&text).unwrap_or(RunEnd::Lost(match status {
            nix::sys::wait::WaitStatus::Signaled(_, signal, _) => signal as i32,
            nix::sys::wait::WaitStatus::Exited(_, code) => code << 8,
            _ => 0,
        })),
    )
}

/// Waits until the first process has closed its report, passing on a request to end it.
fn watch(socket: BorrowedFd, report: &OwnedFd, pid: Pid, end: OwnedFd) -> io::Result<()> {
    let mut end = Some(end);
    let mut deadline: Option<Instant> = None;
    loop {
        let patience = match deadline {
            None => PollTimeout::NONE,
            Some(at) => {
                let left = at.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    let _ = kill(pid, Signal::SIGKILL);
                    return Ok(());
                }
                PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
            }
        };
        let mut ready = [
            PollFd::new(socket, PollFlags::POLLIN),
            PollFd::new(report.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut ready, patience) {
            Err(nix::Error::EINTR) => continue,
            other => other?,
        };
        let [asked, reported] = ready.map(|r| r.any().unwrap_or(true));
        if asked {
            match receive::<Request>(&socket)? {
                // The caller is gone.
                None => return Err(io::ErrorKind::BrokenPipe.into()),
                Some((Request::Kill, _)) => {
                    drop(end.take());
                    deadline.get_or_insert(Instant::now() + GRACE);
                }
                Some(_) => {}
            }
        }
        if reported {
            return Ok(());
        }
    }
}

/// Blocked from the beginning: SIGCHLD, so that the first process loses none; SIGTERM, because a caller that is asked
/// to end decides itself what becomes of its runs.
fn blocked() -> SigSet {
    let mut set = SigSet::empty();
    set.add(Signal::SIGCHLD);
    set.add(Signal::SIGTERM);
    set
}
