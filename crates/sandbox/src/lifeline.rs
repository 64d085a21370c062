//! Being ended when the supervisor dies, also while stopped.
//!
//! A process that reads of the supervisor's death on a socket must run to do so, and one that somebody has stopped
//! (SIGSTOP) does not. So the supervisor keeps the write end of a pipe that nobody ever writes to, and the kernel is asked
//! to send SIGKILL when it closes, which it does to a stopped process as well. The parent-death signal is no way to
//! do this: it comes when the thread that started a process ends, and slots outlive the threads that needed them.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

/// `F_SETSIG` of `asm-generic/fcntl.h`, which not every libc names.
const SET_SIGNAL: libc::c_int = 10;

/// The supervisor's end, which must not outlive it, and the other one's.
pub(crate) fn lifeline() -> io::Result<(OwnedFd, OwnedFd)> {
    let (theirs, ours) = pipe2(OFlag::O_CLOEXEC)?;
    Ok((ours, theirs))
}

/// Has the kernel send SIGKILL to `owner` (a process, or if negative its process group) when the other end of `theirs`
/// closes. The tie lasts as long as anybody holds `theirs` open, and its right to send the signal is that of the caller
/// now: to be repeated by a process that changes its user. Makes system calls only.
pub(crate) fn tie(theirs: RawFd, owner: libc::pid_t) -> io::Result<()> {
    for (command, value) in [
        (libc::F_SETOWN, owner),
        (SET_SIGNAL, libc::SIGKILL),
        (libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK),
    ] {
        // SAFETY: plain numbers; a descriptor that is not open is an error.
        if unsafe { libc::fcntl(theirs, command, value) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    // It may have closed before there was a tie: then there is an end to be read.
    let mut byte = 0_u8;
    // SAFETY: one byte, which is there.
    match unsafe { libc::read(theirs, (&raw mut byte).cast(), 1) } {
        0 => Err(io::ErrorKind::BrokenPipe.into()),
        _ => Ok(()),
    }
}

/// Ties this process itself.
pub(crate) fn tie_self(theirs: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: asks for a number.
    tie(theirs.as_raw_fd(), unsafe { libc::getpid() })
}
