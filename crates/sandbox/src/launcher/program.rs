//! From the first process to the program: descriptors, limits, system-call filter, exec.
//!
//! The child shares the first process's memory until `exec` (so that nothing is copied only to be thrown away) while
//! its parent waits; hence everything is prepared before and the child makes system calls only.

use std::ffi::{CString, c_char, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use nix::unistd::Pid;

use crate::wire::{RunRequest, SlotPlan, Trouble};

/// Stack of the child; it calls a dozen thin wrappers.
const STACK_BYTES: usize = 64 << 10;

/// Everything about starting a program that is the same in every run.
pub(super) struct Prepared {
    pub(super) file: PathBuf,
    executable: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    filter: Vec<libc::sock_filter>,
}

/// What the child works from.
struct Orders {
    stdio: [RawFd; 3],
    limits: Vec<(u32, libc::rlimit)>,
    filter: libc::sock_fprog,
    executable: *const c_char,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    /// Set by the child before it gives up: which step, and why.
    failed: (usize, i32),
}

/// The child's steps, by number.
const STEPS: [&str; 6] = [
    "",
    "connect stdin, stdout and stderr",
    "set a limit",
    "load the system-call filter",
    "start the interpreter",
    "begin a session of its own",
];

impl Prepared {
    pub(super) fn new(plan: &SlotPlan) -> io::Result<Self> {
        let text = |s: &str| CString::new(s).map_err(io::Error::from);
        let executable = CString::new(plan.executable.as_os_str().as_encoded_bytes())?;
        let mut arguments = vec![executable.clone()];
        for argument in &plan.arguments {
            arguments.push(text(argument)?);
        }
        let environment = plan
            .environment
            .iter()
            .map(|(k, v)| text(&format!("{k}={v}")))
            .collect::<Result<_, _>>()?;
        let instruction = |&(code, jt, jf, k): &_| libc::sock_filter { code, jt, jf, k };
        let filter = plan.filter.iter().map(instruction).collect();
        Ok(Self {
            file: PathBuf::from("/tmp").join(&plan.file),
            executable,
            arguments,
            environment,
            filter,
        })
    }

    /// Starts the program; returns when it has become the interpreter, or has failed to.
    pub(super) fn spawn(&self, request: &RunRequest, stdio: &[OwnedFd]) -> Result<Pid, Trouble> {
        let [stdin, stdout, stderr] = stdio else {
            return Err(Trouble::new(STEPS[1], nix::Error::EBADF));
        };
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|t| t.as_ptr()).collect()
        };
        let mut arguments = pointers(&self.arguments);
        if request.check {
            arguments.push(c"check".as_ptr());
        }
        arguments.push(std::ptr::null());
        let mut environment = pointers(&self.environment);
        environment.push(std::ptr::null());
        let limit = |&(what, soft, hard): &_| {
            (
                what,
                libc::rlimit {
                    rlim_cur: soft,
                    rlim_max: hard,
                },
            )
        };
        let filter = libc::sock_fprog {
            len: u16::try_from(self.filter.len()).unwrap_or(u16::MAX),
            // The kernel only reads it.
            filter: self.filter.as_ptr().cast_mut(),
        };
        let mut orders = Orders {
            stdio: [stdin.as_raw_fd(), stdout.as_raw_fd(), stderr.as_raw_fd()],
            limits: request.limits.iter().map(limit).collect(),
            filter,
            executable: self.executable.as_ptr(),
            arguments,
            environment,
            failed: (0, 0),
        };
        let mut stack = vec![0_u128; STACK_BYTES / size_of::<u128>()];
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: `become_program` gets a stack of its own (its end, as stacks grow downwards, and aligned), and a
        // pointer to `orders`; stack, orders and all they point to live until this call returns, which because of
        // CLONE_VFORK is when the child no longer uses this memory.
        let pid = unsafe {
            let top = stack.as_mut_ptr().add(stack.len());
            libc::clone(
                become_program,
                top.cast::<c_void>(),
                flags,
                (&raw mut orders).cast::<c_void>(),
            )
        };
        if pid == -1 {
            return Err(Trouble::new(
                "start the program",
                io::Error::last_os_error(),
            ));
        }
        // SAFETY: the child is done with it; it may have written here behind the compiler's back.
        let (step, errno) = unsafe { std::ptr::read_volatile(&raw const orders.failed) };
        if step != 0 {
            return Err(Trouble {
                step: STEPS[step.min(STEPS.len() - 1)].into(),
                errno,
            });
        }
        Ok(Pid::from_raw(pid))
    }
}

extern "C" fn become_program(orders: *mut c_void) -> i32 {
    // SAFETY: `spawn` passes a pointer to its `Orders`, which nobody else touches while it waits for this child.
    let orders = unsafe { &mut *orders.cast::<Orders>() };
    // SAFETY: see `follow`.
    let step = unsafe { follow(orders) };
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    orders.failed = (step, errno);
    // SAFETY: ends the child, and only the child.
    unsafe { libc::_exit(127) }
}

/// Returns only on failure, with the number of the step that failed (and errno set).
///
/// # Safety
/// Must run in a child that shares memory with a waiting parent. Makes system calls only: no allocation, no locks.
unsafe fn follow(orders: &Orders) -> usize {
    for (wanted, &from) in (0..).zip(&orders.stdio) {
        // SAFETY: plain numbers. No source is below 3 (0 is the launcher's socket, 1 and 2 were open before), so
        // none is overwritten before its turn; the copies stay open across exec.
        if unsafe { libc::dup2(from, wanted) } == -1 {
            return 1;
        }
    }
    // SAFETY: closes descriptors of this child only (the table is not shared).
    if unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) } == -1 {
        return 1;
    }
    // Signals to a process group reach its members in every pid namespace: the launcher's is not to be its own.
    // SAFETY: concerns this child only.
    if unsafe { libc::setsid() } == -1 {
        return 5;
    }
    for (what, limit) in &orders.limits {
        // SAFETY: the structure is valid; limits are those of this child only.
        if unsafe { libc::setrlimit(*what as _, limit) } == -1 {
            return 2;
        }
    }
    // SAFETY: an empty set on the own stack; both calls change this child only.
    unsafe {
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
    // SAFETY: the filter's length and pointer belong together; no_new_privs is set since the launcher.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const orders.filter,
        )
    };
    if answer != 0 {
        return 3;
    }
    // SAFETY: NUL-terminated strings in NULL-terminated lists, all alive.
    unsafe {
        libc::execve(
            orders.executable,
            orders.arguments.as_ptr(),
            orders.environment.as_ptr(),
        )
    };
    4
}
