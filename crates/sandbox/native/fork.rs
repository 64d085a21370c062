//! The warm interpreter's helper: takes orders, forks the interpreter for each, and confines the child.
//!
//! `build.rs` compiles this file, with `system.rs`, into a small shared object that the interpreter loads with `ctypes`; it
//! needs no C compiler and no library, not even libc (the interpreter's may be another than the launcher's).
//! Why native code: between two runs the parent interpreter executes none of its own instructions, so it
//! cannot be brought into another state, and no page of it is copied for being touched; and the child must be made
//! by one system call in the middle of a process whose memory is lent out, which no interpreter could survive.
//!
//! How a fork goes. The parent must not be the program's parent (the first process of the run is, which watches over
//! it and counts), so it lends its memory to a go-between inside the run's pid namespace, which forks the program
//! from that memory and ends at once; the kernel then gives the program to the first process of the namespace.
//! The go-between makes two system calls and touches no memory but one word made for it.

#![no_std]
#![allow(clippy::missing_safety_doc)]

#[path = "../src/launcher/order.rs"]
#[allow(dead_code)]
mod order;
mod system;

use core::arch::asm;
use core::mem::{MaybeUninit, size_of};

use order::{Answer, DESCRIPTORS, EXTRA_NUMBERS, EXTRAS, Order, READY};
use system::*;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    exit(70)
}

/// Where nothing is open: the socket's number and the few that an order brings lie below.
const HIGH: usize = 100;

/// The go-between's number in the run's pid namespace: out of the way of the program's children, and below the
/// least number at which a system can be told to begin again.
const GO_BETWEEN: i32 = 299;

/// Longest system-call filter that the kernel takes, in instructions.
const LONGEST_FILTER: usize = 4096;

/// Descriptors that an order can have; the last are the rules for Landlock, where there are any.
const ALL: usize = DESCRIPTORS + EXTRAS + 1;

/// `struct cmsghdr` and its descriptors, with room for more than may come, so that a wrong message is seen as such.
#[repr(C, align(8))]
struct Beside {
    length: usize,
    level: i32,
    kind: i32,
    descriptors: [i32; ALL + 3],
}

/// The system-call filter; static because it outlives every frame and is too large for one.
static mut FILTER: MaybeUninit<[u64; LONGEST_FILTER]> = MaybeUninit::uninit();

/// Serves until the launcher is gone. Returns only in a child that is ready to become the program (0, or 1 to only
/// compile it), or in the parent when it cannot serve (an error number, negative).
///
/// # Safety
/// To be called once, from a process with one thread, with a packet socket as `socket`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn serve(socket: i32) -> i32 {
    let socket = socket as usize;
    let mut tid_address = 0_usize;
    let mut robust = [0_usize; 2];
    let filter = &raw mut FILTER;
    // SAFETY: all pointers are to live variables of the size that the calls write; nobody else uses FILTER.
    let (prepared, filter_bytes, own) = unsafe {
        call(PRCTL, [PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0]);
        call(PRCTL, [PR_SET_DUMPABLE, 0, 0, 0, 0]);
        let [head, length] = &mut robust;
        let prepared = call(
            PRCTL,
            [PR_GET_TID_ADDRESS, &raw mut tid_address as usize, 0, 0, 0],
        ) | call(
            GET_ROBUST_LIST,
            [0, &raw mut *head as usize, &raw mut *length as usize, 0, 0],
        );
        let filter_bytes = call(READ, [socket, filter as usize, LONGEST_FILTER * 8, 0, 0]);
        let path = c"/proc/self/ns/pid".as_ptr() as usize;
        let own = call(OPENAT, [usize::MAX - 99, path, CLOEXEC, 0, 0]);
        (prepared, filter_bytes, own)
    };
    let worst = prepared.min(filter_bytes).min(own);
    if worst < 0 {
        return worst as i32;
    }
    let parent = Parent {
        socket,
        own: own as usize,
        tid_address: tid_address as u64,
        robust,
        filter: FilterProgram {
            length: (filter_bytes / 8) as u16,
            instructions: filter.cast(),
        },
    };
    parent.answer(READY, 0, 0, 0);
    loop {
        let mut order = Order::default();
        let descriptors = parent.next(&mut order);
        let result = parent.fork(&order, &descriptors);
        if result == CHILD {
            return order.mode as i32;
        }
    }
}

/// What [`Parent::fork`] returns in the child.
const CHILD: bool = true;

struct Parent {
    socket: usize,
    /// Its own pid namespace.
    own: usize,
    /// Where libc keeps the number of the only thread: the child has another.
    tid_address: u64,
    robust: [usize; 2],
    filter: FilterProgram,
}

impl Parent {
    fn answer(&self, number: u64, pid: i64, step: u64, errno: isize) {
        let answer = Answer {
            number,
            pid,
            step,
            errno: -(errno as i64),
        };
        let place = &raw const answer as usize;
        // SAFETY: the structure lives during the call. Should the other side be gone, SIGPIPE is ignored (Python).
        unsafe { call(WRITE, [self.socket, place, size_of::<Answer>(), 0, 0]) };
    }

    /// Waits for an order; ends the process when there will be none.
    fn next(&self, order: &mut Order) -> [i32; ALL] {
        let mut beside = Beside {
            length: 0,
            level: 0,
            kind: 0,
            descriptors: [-1; ALL + 3],
        };
        let mut piece = Piece {
            base: (&raw mut *order).cast(),
            length: size_of::<Order>(),
        };
        let mut message = Message {
            name: core::ptr::null_mut(),
            name_length: 0,
            pieces: &raw mut piece,
            piece_count: 1,
            control: (&raw mut beside).cast(),
            control_length: size_of::<Beside>(),
            flags: 0,
        };
        let place = &raw mut message as usize;
        let length = loop {
            // SAFETY: the message points to live variables of the sizes that it says.
            match unsafe { call(RECVMSG, [self.socket, place, MSG_CMSG_CLOEXEC, 0, 0]) } {
                EINTR | EAGAIN => {}
                other => break other,
            }
        };
        if length == 0 {
            exit(0)
        }
        let mut wanted = 16 + 4 * DESCRIPTORS;
        for extra in order::extras(order.mode) {
            wanted += 4 * extra as usize;
        }
        wanted += 4 * order.landlock as usize;
        if length as usize != size_of::<Order>()
            || (beside.length, beside.level, beside.kind) != (wanted, SOL_SOCKET, SCM_RIGHTS)
        {
            exit(71)
        }
        let [a, b, c, d, e, f, g, h, ..] = beside.descriptors;
        [a, b, c, d, e, f, g, h]
    }

    /// In the parent: forks, answers if that failed, and is as it was. In the child: confines it.
    fn fork(&self, order: &Order, descriptors: &[i32; ALL]) -> bool {
        let pid_space = descriptors[4] as usize;
        // SAFETY: plain numbers. The event counter is what the child waits for until it is in its place.
        let (entered, gate) = unsafe {
            (
                call(SETNS, [pid_space, CLONE_NEWPID, 0, 0, 0]),
                call(EVENTFD2, [0, CLOEXEC, 0, 0, 0]),
            )
        };
        let (step, errno) = if entered.min(gate) < 0 {
            (1, entered.min(gate))
        } else {
            match self.clone_twice(gate as usize) {
                Cloned::Child => {
                    let step = self.confine(order, descriptors, gate as usize);
                    if let Err((step, errno)) = step {
                        self.answer(order.number, 0, step, errno);
                        exit(127)
                    }
                    return CHILD;
                }
                Cloned::Parent(errno) => (2, errno),
            }
        };
        if errno < 0 {
            self.answer(order.number, 0, step, errno);
        }
        // SAFETY: plain numbers; the descriptors came with the order and are used by nobody else.
        unsafe {
            call(SETNS, [self.own, CLONE_NEWPID, 0, 0, 0]);
            call(CLOSE, [gate as usize, 0, 0, 0, 0]);
            for descriptor in descriptors.iter().filter(|d| **d >= 0) {
                call(CLOSE, [*descriptor as usize, 0, 0, 0, 0]);
            }
        }
        !CHILD
    }

    fn clone_twice(&self, gate: usize) -> Cloned {
        let nothing = CloneArguments {
            flags: 0,
            pidfd: 0,
            child_tid: 0,
            parent_tid: 0,
            exit_signal: 0,
            stack: 0,
            stack_size: 0,
            tls: 0,
            set_tid: 0,
            set_tid_size: 0,
        };
        let number = GO_BETWEEN;
        let between = CloneArguments {
            flags: CLONE_VM | CLONE_VFORK,
            set_tid: &raw const number as u64,
            set_tid_size: 1,
            ..nothing
        };
        let program = CloneArguments {
            flags: CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
            child_tid: self.tid_address,
            exit_signal: SIGCHLD,
            ..nothing
        };
        let mut forked: isize = -1;
        let answer: isize;
        // SAFETY: the go-between shares memory and stack with this process, which stands still until the go-between
        // has ended (CLONE_VFORK); between its two system calls it writes to `forked` and nothing else, and it never
        // leaves this block. The program's process leaves the block with 0 and a copy of all memory.
        unsafe {
            asm!(
                "syscall",
                "test rax, rax",
                "jnz 3f",
                // The go-between.
                "mov eax, {clone3}",
                "mov rdi, {program}",
                "mov esi, {size}",
                "syscall",
                "test rax, rax",
                "jz 3f",
                "mov [{forked}], rax",
                "xor edi, edi",
                "mov eax, {exit}",
                "2: syscall",
                "jmp 2b",
                "3:",
                clone3 = const CLONE3,
                exit = const EXIT_GROUP,
                size = const size_of::<CloneArguments>(),
                program = in(reg) &raw const program,
                forked = in(reg) &raw mut forked,
                inout("rax") CLONE3 as isize => answer,
                inout("rdi") &raw const between => _,
                inout("rsi") size_of::<CloneArguments>() => _,
                out("rcx") _, out("r11") _,
                options(nostack),
            );
        }
        if answer == 0 {
            return Cloned::Child;
        }
        if answer < 0 {
            return Cloned::Parent(answer);
        }
        // SAFETY: plain numbers; a null status is allowed. Then one count for the child, on a live variable.
        unsafe {
            while call(WAIT4, [answer as usize, 0, WALL, 0, 0]) == EINTR {}
            if forked > 0 {
                let one = 1_u64;
                call(WRITE, [gate, &raw const one as usize, 8, 0, 0]);
            }
        }
        Cloned::Parent(forked)
    }

    /// Offers the child to the out-of-memory killer. While it still sees the /proc of the slot; the one of the run is
    /// read-only. Should it fail, the kernel may end the parent instead, which costs a repeated run and no more.
    fn go_first(&self) {
        let path = c"/proc/self/oom_score_adj".as_ptr() as usize;
        // SAFETY: pointers are to constants, the length is that of the text; all of it changes this child only. A
        // process that is closed to others may not open this file of its own either.
        unsafe {
            call(PRCTL, [PR_SET_DUMPABLE, 1, 0, 0, 0]);
            let file = call(OPENAT, [usize::MAX - 99, path, WRITE_ONLY | CLOEXEC, 0, 0]);
            if file >= 0 {
                call(WRITE, [file as usize, c"1000".as_ptr() as usize, 4, 0, 0]);
                call(CLOSE, [file as usize, 0, 0, 0, 0]);
            }
        }
    }

    /// What a program started afresh gets between the fork and `exec`. The order matters: namespaces need the
    /// capabilities, and under the filter little is possible.
    fn confine(
        &self,
        order: &Order,
        descriptors: &[i32; ALL],
        gate: usize,
    ) -> Result<(), (u64, isize)> {
        let step = |step: u64, answer: isize| {
            if answer < 0 {
                Err((step, answer))
            } else {
                Ok(answer)
            }
        };
        if order.goes_first != 0 {
            self.go_first();
        }
        let [stdin, stdout, stderr, mount_space, _, extras @ ..] = descriptors.map(|d| d as usize);
        let rules = order::extras(order.mode).iter().filter(|e| **e).count();
        // Version 3, this process; no effective, permitted or inheritable capability (and with them no ambient one).
        let header = [0x2008_0522_u32, 0];
        let none = [0_u32; 6];
        let mut count = 0_u64;
        // SAFETY: every pointer is to a live variable of the size that its call reads or writes; everything here
        // changes this child only.
        unsafe {
            step(3, call(SETNS, [mount_space, CLONE_NEWNS, 0, 0, 0]))?;
            // Signals to a process group reach its members in every pid namespace: the launcher's is not to be its own.
            step(11, call(SETSID, [0; 5]))?;
            step(4, call(CHDIR, [c"/tmp".as_ptr() as usize, 0, 0, 0, 0]))?;
            // No source is below 3, so none is overwritten before its turn.
            for (from, to) in [(stdin, 0), (stdout, 1), (stderr, 2)] {
                step(5, call(DUP2, [from, to, 0, 0, 0]))?;
            }
            // First to where nothing else is: one may have the number that another is to get. The gate has neither
            // number, as at least five descriptors came before it.
            let mut next = 3;
            let mut taken = extras.iter();
            for (number, has) in EXTRA_NUMBERS.into_iter().zip(order::extras(order.mode)) {
                if has && let Some(from) = taken.next() {
                    let copy = step(
                        5,
                        call(FCNTL, [*from, F_DUPFD, HIGH + number as usize, 0, 0]),
                    )?;
                    if copy as usize != HIGH + number as usize {
                        return Err((5, EMFILE));
                    }
                }
            }
            for (number, has) in EXTRA_NUMBERS.into_iter().zip(order::extras(order.mode)) {
                if has {
                    let number = number as usize;
                    step(5, call(DUP2, [HIGH + number, number, 0, 0, 0]))?;
                    next = number + 1;
                }
            }
            let open_below = next;
            for limit in order.limits.iter().take(order.count as usize) {
                let pair = &raw const limit.soft as usize;
                step(6, call(SETRLIMIT, [limit.what as usize, pair, 0, 0, 0]))?;
            }
            let [head, length] = self.robust;
            step(7, call(SET_ROBUST_LIST, [head, length, 0, 0, 0]))?;
            step(7, call(PRCTL, [PR_SET_DUMPABLE, 1, 0, 0, 0]))?;
            let sets = [&raw const header as usize, &raw const none as usize];
            step(8, call(CAPSET, [sets[0], sets[1], 0, 0, 0]))?;
            // Until the go-between is gone and the run's first process is the parent.
            loop {
                let answer = call(READ, [gate, &raw mut count as usize, 8, 0, 0]);
                if answer != EINTR {
                    step(9, answer)?;
                    break;
                }
            }
            // Needs no_new_privs, which the launcher has set. The number lies above all those that were taken.
            if order.landlock != 0 {
                let Some(rules) = extras.get(rules) else {
                    return Err((12, EMFILE));
                };
                step(12, call(LANDLOCK_RESTRICT_SELF, [*rules, 0, 0, 0, 0]))?;
            }
            let program = &raw const self.filter as usize;
            step(10, call(SECCOMP, [1, 0, program, 0, 0]))?;
            let pid = call(GETPID, [0; 5]);
            self.answer(order.number, pid as i64, 0, 0);
            let [result, _] = order::extras(order.mode);
            let gap = open_below > EXTRA_NUMBERS[1] as usize && !result;
            if call(CLOSE_RANGE, [open_below, u32::MAX as usize, 0, 0, 0]) < 0
                || gap && call(CLOSE, [EXTRA_NUMBERS[0] as usize, 0, 0, 0, 0]) < 0
            {
                exit(127)
            }
        }
        Ok(())
    }
}

enum Cloned {
    Child,
    /// The program's process number there, or an error number, negative.
    Parent(isize),
}
