//! The kernel as the helper sees it: numbers of calls, flags, structures, and the instruction that makes a call.
//! Numbers and layouts of x86-64 (asm/unistd_64.h); the helper is compiled for nothing else.

use core::arch::asm;

// Calls.
pub const WRITE: usize = 1;
pub const CLOSE: usize = 3;
pub const READ: usize = 0;
pub const DUP2: usize = 33;
pub const FCNTL: usize = 72;
pub const GETPID: usize = 39;
pub const RECVMSG: usize = 47;
pub const WAIT4: usize = 61;
pub const CHDIR: usize = 80;
pub const SETSID: usize = 112;
pub const CAPSET: usize = 126;
pub const PRCTL: usize = 157;
pub const SETRLIMIT: usize = 160;
pub const EXIT_GROUP: usize = 231;
pub const OPENAT: usize = 257;
pub const SET_ROBUST_LIST: usize = 273;
pub const GET_ROBUST_LIST: usize = 274;
pub const EVENTFD2: usize = 290;
pub const SETNS: usize = 308;
pub const SECCOMP: usize = 317;
pub const CLONE3: usize = 435;
pub const CLOSE_RANGE: usize = 436;
pub const LANDLOCK_RESTRICT_SELF: usize = 446;

pub const EINTR: isize = -4;
pub const EAGAIN: isize = -11;
pub const EMFILE: isize = -24;

pub const PR_SET_PDEATHSIG: usize = 1;
pub const PR_SET_DUMPABLE: usize = 4;
pub const PR_GET_TID_ADDRESS: usize = 40;
pub const SIGKILL: usize = 9;
pub const SIGCHLD: u64 = 17;

pub const CLONE_VM: u64 = 0x100;
pub const CLONE_VFORK: u64 = 0x4000;
pub const CLONE_CHILD_CLEARTID: u64 = 0x20_0000;
pub const CLONE_CHILD_SETTID: u64 = 0x100_0000;
pub const CLONE_NEWNS: usize = 0x2_0000;
pub const CLONE_NEWPID: usize = 0x2000_0000;
pub const WALL: usize = 0x4000_0000;
pub const CLOEXEC: usize = 0x8_0000;
pub const F_DUPFD: usize = 0;
pub const WRITE_ONLY: usize = 1;

pub const SOL_SOCKET: i32 = 1;
pub const SCM_RIGHTS: i32 = 1;
pub const MSG_CMSG_CLOEXEC: usize = 0x4000_0000;

/// `struct clone_args` up to `set_tid_size` (Linux 5.5).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CloneArguments {
    pub flags: u64,
    pub pidfd: u64,
    pub child_tid: u64,
    pub parent_tid: u64,
    pub exit_signal: u64,
    pub stack: u64,
    pub stack_size: u64,
    pub tls: u64,
    pub set_tid: u64,
    pub set_tid_size: u64,
}

#[repr(C)]
pub struct Piece {
    pub base: *mut u8,
    pub length: usize,
}

/// `struct msghdr`.
#[repr(C)]
pub struct Message {
    pub name: *mut u8,
    pub name_length: u32,
    pub pieces: *mut Piece,
    pub piece_count: usize,
    pub control: *mut u8,
    pub control_length: usize,
    pub flags: i32,
}

#[repr(C)]
pub struct FilterProgram {
    pub length: u16,
    pub instructions: *const u64,
}

/// # Safety
/// As the system call itself: pointers among the arguments must be valid for what the call does with them.
pub unsafe fn call(number: usize, a: [usize; 5]) -> isize {
    let answer: isize;
    // SAFETY: the kernel's calling convention; memory is changed only as the call says, which is the caller's promise.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

pub fn exit(code: usize) -> ! {
    loop {
        // SAFETY: ends the process.
        unsafe { call(EXIT_GROUP, [code, 0, 0, 0, 0]) };
    }
}
