//! From the first process to the program: descriptors, limits, system-call filter, exec.
//!
//! The child shares the first process's memory until `exec` (so that nothing is copied only to be thrown away) while
//! its parent waits; hence everything is prepared before and the child makes system calls only.

use std::ffi::{CStr, CString, c_char, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use nix::fcntl::{FcntlArg, fcntl};
use nix::unistd::Pid;

use super::order::{self, EXTRA_NUMBERS};
use crate::wire::{Form, RunRequest, SlotPlan, Trouble};

/// Stack of the child; it calls a dozen thin wrappers.
const STACK_BYTES: usize = 64 << 10;

/// Above every number that a program has open.
const ABOVE: RawFd = 20;

/// Where the child has a binary that is not in the file tree, until it is started.
const BINARY: RawFd = 3;

/// Stands for the run's memory limit in an argument or a variable, in mebibytes.
const MEMORY: &str = "{memory_mb}";

/// Everything about starting a program that is the same in every run.
pub(super) struct Prepared {
    pub(super) file: PathBuf,
    pub(super) form: Form,
    executable: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    filter: Vec<libc::sock_filter>,
}

/// What the child works from.
struct Orders {
    /// What the program is to have open, and under which number.
    open: Vec<(RawFd, RawFd)>,
    /// A binary to be started from its descriptor.
    binary: Option<RawFd>,
    /// The lowest number that is to be closed.
    close_from: RawFd,
    limits: Vec<(u32, libc::rlimit)>,
    /// Landlock's rules, or -1.
    rules: RawFd,
    filter: libc::sock_fprog,
    executable: *const c_char,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    /// Set by the child before it gives up: which step, and why.
    failed: (usize, i32),
}

/// The child's steps, by number.
const STEPS: [&str; 7] = [
    "",
    "connect stdin, stdout and stderr",
    "set a limit",
    "load the system-call filter",
    "start the program's file",
    "begin a session of its own",
    "be put under Landlock",
];

/// The step that starts the program's file.
const EXEC: usize = 4;

/// Stands for the further arguments of a run.
const SOURCES: &str = "{sources}";

/// Why `exec` fails for reasons that are not in the file: memory, processes and descriptors that the system lacks.
const OUR_WANTS: [i32; 4] = [libc::ENOMEM, libc::EAGAIN, libc::EMFILE, libc::ENFILE];

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
            form: plan.form,
            executable,
            arguments,
            environment,
            filter,
        })
    }

    /// Starts the program; returns when `exec` has been done, or has failed. `source` is what is run if it is a binary,
    /// `inside` what the program is to have: stdin, stdout, stderr, and what its mode needs; `rules`: Landlock's.
    pub(super) fn spawn(
        &self,
        request: &RunRequest,
        source: &OwnedFd,
        inside: &[OwnedFd],
        rules: Option<&OwnedFd>,
    ) -> Result<Pid, Trouble> {
        let extras = EXTRA_NUMBERS.iter().zip(order::extras(request.mode));
        let numbers: Vec<RawFd> = (0..3)
            .chain(extras.filter_map(|(n, has)| has.then_some(*n)))
            .collect();
        if numbers.len() != inside.len() {
            return Err(Trouble::new(STEPS[1], nix::Error::EBADF));
        }
        // Copies above every number that is to be taken, so that none is overwritten before its turn.
        let above = |fd: &OwnedFd| fcntl(fd, FcntlArg::F_DUPFD_CLOEXEC(ABOVE));
        let binary = (self.form == Form::Executable).then_some(source);
        let wanted = inside.iter().chain(binary);
        let copies = wanted.map(above).collect::<Result<Vec<_>, _>>();
        // SAFETY: the copies are new and nobody else's.
        let own = |n: RawFd| unsafe { OwnedFd::from_raw_fd(n) };
        let copies: Vec<OwnedFd> = match copies {
            Ok(numbers) => numbers.into_iter().map(own).collect(),
            Err(error) => return Err(Trouble::new(STEPS[1], error)),
        };
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|t| t.as_ptr()).collect()
        };
        let mut filled: Vec<CString> = self.arguments.iter().map(|a| fill(a, request)).collect();
        let further = request.arguments.iter().map(|a| CString::new(a.as_str()));
        let further = further.collect::<Result<Vec<_>, _>>();
        let further =
            further.map_err(|_| Trouble::new("take the arguments", nix::Error::EINVAL))?;
        let place = filled
            .iter()
            .position(|a| a.to_bytes() == SOURCES.as_bytes());
        let place = place.map_or(filled.len()..filled.len(), |at| at..at + 1);
        filled.splice(place, further);
        let mut arguments = pointers(&filled);
        let mode = CString::new(request.mode.to_string()).unwrap_or_default();
        if self.form == Form::Python {
            arguments.push(c"mode".as_ptr());
            arguments.push(mode.as_ptr());
        }
        arguments.push(std::ptr::null());
        let variables: Vec<CString> = (self.environment.iter())
            .map(|v| fill(v, request))
            .collect();
        let mut environment = pointers(&variables);
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
            open: copies
                .iter()
                .map(AsRawFd::as_raw_fd)
                .zip(numbers.iter().copied())
                .collect(),
            binary: binary.and_then(|_| copies.last()).map(AsRawFd::as_raw_fd),
            close_from: numbers
                .iter()
                .chain(binary.is_some().then_some(&BINARY))
                .max()
                .map_or(3, |n| n + 1),
            limits: request.limits.iter().map(limit).collect(),
            rules: rules.map_or(-1, AsRawFd::as_raw_fd),
            filter,
            executable: self.executable.as_ptr(),
            arguments,
            environment,
            failed: (0, 0),
        };
        // Not set to zero: pages that the child does not touch need not exist.
        let mut stack = Vec::<u128>::with_capacity(STACK_BYTES / size_of::<u128>());
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: `become_program` gets a stack of its own (its end, as stacks grow downwards, and aligned), and a
        // pointer to `orders`; stack, orders and all they point to live until this call returns, which because of
        // CLONE_VFORK is when the child no longer uses this memory.
        let pid = unsafe {
            let top = stack.as_mut_ptr().add(stack.capacity());
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
        // A text can make a compiler link what the kernel will not start. That is no fault of ours, and its process has
        // ended as if a shell had tried.
        let unstartable = step == EXEC && binary.is_some() && !OUR_WANTS.contains(&errno);
        if step != 0 && !unstartable {
            return Err(Trouble {
                step: STEPS[step.min(STEPS.len() - 1)].into(),
                errno,
            });
        }
        Ok(Pid::from_raw(pid))
    }
}

/// An argument or a variable of this run.
fn fill(argument: &CStr, request: &RunRequest) -> CString {
    let Some(text) = argument.to_str().ok().filter(|t| t.contains(MEMORY)) else {
        return argument.into();
    };
    let megabytes = (request.memory_bytes >> 20).max(1);
    CString::new(text.replace(MEMORY, &megabytes.to_string())).unwrap_or_default()
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
    // First, while they are open; what follows changes no file. no_new_privs is set since the launcher.
    if orders.rules >= 0 {
        // SAFETY: plain numbers; concerns this child only.
        let answer =
            unsafe { libc::syscall(libc::SYS_landlock_restrict_self, orders.rules, 0_u32) };
        if answer == -1 {
            return 6;
        }
    }
    let mut next = 0;
    for &(from, wanted) in &orders.open {
        // SAFETY: plain numbers. No source is among the numbers that are taken; the copies stay open across exec.
        // Numbers in between are closed, in this child only (the table is not shared).
        unsafe {
            if libc::dup2(from, wanted) == -1 {
                return 1;
            }
            while next < wanted {
                libc::close(next);
                next += 1;
            }
        }
        next = wanted + 1;
    }
    if let Some(binary) = orders.binary {
        // SAFETY: plain numbers; nothing else is to have this one, and `exec` closes it.
        if unsafe { libc::dup3(binary, BINARY, libc::O_CLOEXEC) } == -1 {
            return 1;
        }
    }
    // SAFETY: closes descriptors of this child only.
    if unsafe {
        libc::syscall(
            libc::SYS_close_range,
            orders.close_from,
            libc::c_uint::MAX,
            0,
        )
    } == -1
    {
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
    // SAFETY: NUL-terminated strings in NULL-terminated lists, all alive. A binary is started from its descriptor: the
    // way through /proc, which is new in each run, costs more than all the rest of this function.
    unsafe {
        if orders.binary.is_some() {
            libc::syscall(
                libc::SYS_execveat,
                BINARY,
                c"".as_ptr(),
                orders.arguments.as_ptr(),
                orders.environment.as_ptr(),
                libc::AT_EMPTY_PATH,
            );
            return EXEC;
        }
        libc::execve(
            orders.executable,
            orders.arguments.as_ptr(),
            orders.environment.as_ptr(),
        )
    };
    EXEC
}
