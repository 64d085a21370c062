//! The warm interpreter of a slot: started once, imports what programs use, and is then forked for each program.
//!
//! It runs in the slot's namespaces beside the launcher, outside of any run's pid namespace, and holds the two
//! capabilities (over the slot's own user namespace) that it needs to put a child into a run's namespaces; the child
//! gives them up before the program. It never runs a program, and no program can see, name or reach it: it has no number
//! in a run's pid namespace, and a child holds no descriptor that leads to it. How the fork is done, and why it is
//! not done in Python: `native/fork.rs`.
//!
//! All that it shares with programs is what it had in memory before the first one came; a program changes its own copy.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, IoSlice, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair,
};
use nix::unistd::{Pid, pipe2};

use super::confine;
use super::order::{Answer, DESCRIPTORS, LIMITS, Limit, Order, READY, STEPS};
use crate::wire::{RunRequest, SlotPlan, Trouble};

/// For importing the modules; a cold disk and a busy machine included. Less than the launcher itself is waited for: one that
/// hangs is to be done without.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// For one fork; longer than the grace of a run that is to end.
const FORK_PATIENCE: Duration = Duration::from_secs(10);
/// Where it finds its socket: above everything that the launcher has open.
const SOCKET: RawFd = 40;
/// Entering a mount namespace, entering a pid namespace and choosing a number in it (linux/capability.h).
const CAPABILITIES: [u32; 2] = [18, 21]; // CAP_SYS_CHROOT, CAP_SYS_ADMIN

/// The launcher's handle on it.
pub(super) struct Warm {
    socket: OwnedFd,
    process: Child,
    number: Cell<u64>,
    /// See [`SlotPlan::programs_go_first`].
    programs_go_first: bool,
}

impl Warm {
    /// Starts it and waits until it is ready. To be called while the launcher still has its bounding set.
    pub(super) fn start(plan: &SlotPlan) -> Result<Self, String> {
        let told = |doing: &'static str| move |error: io::Error| format!("{doing}: {error}");
        let Some(warm) = &plan.warm else {
            return Err("switched off".into());
        };
        if plan.executable.starts_with("/tmp") {
            return Err("the interpreter lies below /tmp, which each run has for itself".into());
        }
        let system = told("make descriptors");
        let descriptors = || -> io::Result<_> {
            let (socket, theirs) = socketpair(
                AddressFamily::Unix,
                SockType::SeqPacket,
                None,
                SockFlag::SOCK_CLOEXEC,
            )?;
            // The same kinds as a run's: Python's objects for them are made now and keep what they find.
            let stdin = memfd_create("stdin", MFdFlags::MFD_CLOEXEC)?;
            let stdout = pipe2(OFlag::O_CLOEXEC)?;
            let stderr = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
            Ok((socket, theirs, stdin, stdout, stderr))
        };
        let (socket, theirs, stdin, stdout, (errors, stderr)) = descriptors().map_err(system)?;
        let mut command = Command::new(&plan.executable);
        command
            .args(&plan.arguments)
            .arg("warm")
            .arg(SOCKET.to_string())
            .args(&warm.modules)
            .env_clear()
            .envs(plan.environment.iter().cloned())
            .current_dir("/tmp")
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout.1))
            .stderr(Stdio::from(stderr));
        let (limit, end) = (warm.stack, theirs.as_raw_fd());
        // SAFETY: this process has one thread, so its child may use all of the library.
        unsafe { command.pre_exec(move || confine_parent(end, limit)) };
        let process = command.spawn().map_err(told("start the interpreter"))?;
        drop((command, theirs));
        let warm = Self {
            socket,
            process,
            number: Cell::new(READY),
            programs_go_first: plan.programs_go_first,
        };
        let filter: Vec<u8> = plan
            .filter
            .iter()
            .flat_map(|&(code, jt, jf, k)| {
                let [a, b] = code.to_ne_bytes();
                let [c, d, e, f] = k.to_ne_bytes();
                [a, b, jt, jf, c, d, e, f]
            })
            .collect();
        let ready = warm
            .tell(&filter, &[])
            .and_then(|()| warm.answer(READY, START_PATIENCE));
        let Err(error) = ready else { return Ok(warm) };
        let mut said = Vec::new();
        // What came before an error, or before there is nothing more for now, is what there is.
        let _ = File::from(errors).take(4096).read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        Err(format!(
            "{error} {}",
            said.lines().last().unwrap_or_default()
        ))
    }

    /// To be called by the launcher before each run.
    pub(super) fn next(&self) {
        self.number.set(self.number.get() + 1);
    }

    /// Has the program of a run forked. To be called by the run's first process, whose child the program becomes.
    /// `inside` is what it is to have: stdin, stdout, stderr, and what its mode needs.
    /// `rules`: Landlock's.
    pub(super) fn spawn(
        &self,
        request: &RunRequest,
        inside: &[OwnedFd],
        rules: Option<&OwnedFd>,
    ) -> Result<Pid, Trouble> {
        let mut order = Order {
            number: self.number.get(),
            mode: request.mode,
            goes_first: u64::from(self.programs_go_first),
            landlock: u64::from(rules.is_some()),
            count: request.limits.len().min(LIMITS) as u64,
            ..Order::default()
        };
        for (place, &(what, soft, hard)) in order.limits.iter_mut().zip(&request.limits) {
            let what = u64::from(what);
            *place = Limit { what, soft, hard };
        }
        // Only this process may open these: to the warm interpreter it is closed.
        let space = |kind: &str| {
            File::open(format!("/proc/self/ns/{kind}"))
                .map(OwnedFd::from)
                .map_err(|error| Trouble::new(format!("open its {kind} namespace"), error))
        };
        let (mount, pid) = (space("mnt")?, space("pid")?);
        let Some((stdio, extras)) = inside.split_at_checked(DESCRIPTORS - 2) else {
            return Err(Trouble::new(STEPS[5], nix::Error::EBADF));
        };
        let beside: Vec<RawFd> = stdio
            .iter()
            .chain([&mount, &pid])
            .chain(extras)
            .chain(rules)
            .map(AsRawFd::as_raw_fd)
            .collect();
        let name = |error| Trouble::new("ask the warm interpreter", error);
        self.tell(bytes(&order), &beside).map_err(name)?;
        let answer = self.answer(order.number, FORK_PATIENCE).map_err(name)?;
        match (usize::try_from(answer.step), i32::try_from(answer.pid)) {
            (Ok(0), Ok(pid)) if pid > 1 => Ok(Pid::from_raw(pid)),
            (Ok(step), _) => Err(Trouble {
                step: STEPS.get(step).copied().unwrap_or_default().into(),
                errno: answer.errno as i32,
            }),
            (Err(_), _) => Err(name(io::ErrorKind::InvalidData.into())),
        }
    }

    fn tell(&self, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<()> {
        let beside = [ControlMessage::ScmRights(descriptors)];
        let beside: &[_] = if descriptors.is_empty() { &[] } else { &beside };
        sendmsg::<()>(
            self.socket.as_raw_fd(),
            &[IoSlice::new(bytes)],
            beside,
            MsgFlags::MSG_NOSIGNAL,
            None,
        )?;
        Ok(())
    }

    fn answer(&self, number: u64, patience: Duration) -> io::Result<Answer> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut ready = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, timeout) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Err(nix::Error::EINTR) => continue,
                other => other?,
            };
            let mut buffer = [0_u64; size_of::<Answer>() / size_of::<u64>()];
            let place = buffer.as_mut_ptr().cast::<libc::c_void>();
            // SAFETY: the buffer is as long as said and lives during the call.
            let length = unsafe {
                libc::recv(
                    self.socket.as_raw_fd(),
                    place,
                    size_of_val(&buffer),
                    libc::MSG_DONTWAIT,
                )
            };
            let [known, pid, step, errno] = buffer;
            let answer = Answer {
                number: known,
                pid: pid as i64,
                step,
                errno: errno as i64,
            };
            match usize::try_from(length) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) if length != size_of::<Answer>() => {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                Ok(_) if answer.number == number => return Ok(answer),
                // An answer to a run that was ended while it began.
                Ok(_) => {}
                Err(_) => return Err(io::Error::last_os_error()),
            }
        }
    }
}

impl Drop for Warm {
    fn drop(&mut self) {
        // It has nothing to save. Waited for, so that its CPU time is counted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn bytes(order: &Order) -> &[u8] {
    // SAFETY: the structure is made of u64 only, so it has no padding and every byte is initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(order).cast(), size_of::<Order>()) }
}

/// Between fork and `exec`.
fn confine_parent(socket: RawFd, (soft, hard): (u64, u64)) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    SigSet::empty().thread_set_mask()?;
    // SAFETY: plain numbers; the copy stays open across exec.
    if unsafe { libc::dup2(socket, SOCKET) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // Decides where memory is mapped and how large stacks of threads are: as for programs.
    let stack = libc::rlimit {
        rlim_cur: soft,
        rlim_max: hard,
    };
    // SAFETY: the structure is valid; the limit is that of this process.
    if unsafe { libc::setrlimit(libc::RLIMIT_STACK, &raw const stack) } == -1 {
        return Err(io::Error::last_os_error());
    }
    confine::keep_across_exec(&CAPABILITIES)?;
    confine::drop_bounding_set().map_err(|trouble| trouble.error())
}
