//! What the first process of a run and the warm interpreter say to each other, as plain memory: one packet each
//! way. Compiled twice, into the launcher and into the warm interpreter's helper, which has no library to parse with.

/// Descriptors beside every order: stdin, stdout, stderr, and the run's mount and pid namespaces.
pub const DESCRIPTORS: usize = 5;
/// Further descriptors that an order may have: the result pipe, and the file for compiled code.
pub const EXTRAS: usize = 2;
/// Number of the result pipe in a program's process, and of the file for compiled code.
pub const EXTRA_NUMBERS: [i32; EXTRAS] = [3, 4];

/// Run the program.
pub const RUN: u64 = 0;
/// Only compile it.
pub const CHECK: u64 = 1;
/// Call one of its functions; there is a result pipe.
pub const CALL: u64 = 2;
/// Beside one of the above: write the compiled code to the file for it.
pub const SAVE_CODE: u64 = 4;
/// Beside one of the above: read the compiled code from the file for it instead of compiling.
pub const LOAD_CODE: u64 = 8;
/// Beside [`RUN`]: the program's arguments stand in a file in /tmp.
pub const ARGUMENTS: u64 = 16;

/// Which of the extra descriptors, in the order of [`EXTRA_NUMBERS`], a run in this mode has.
pub const fn extras(mode: u64) -> [bool; EXTRAS] {
    [mode & CALL != 0, mode & (SAVE_CODE | LOAD_CODE) != 0]
}
/// Most limits that an order can hold.
pub const LIMITS: usize = 16;
/// Number of the answer that says that the interpreter is ready for its first order.
pub const READY: u64 = 0;

/// A resource limit: as `setrlimit` takes it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Limit {
    /// Resource number.
    pub what: u64,
    /// Soft limit.
    pub soft: u64,
    /// Hard limit.
    pub hard: u64,
}

/// Fork a program.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Order {
    /// Repeated in the answer, so that a late answer to an order that nobody waits for any more is known as such.
    pub number: u64,
    /// What is to be done: the numbers above.
    pub mode: u64,
    /// 1: offer it to the out-of-memory killer before the interpreter that it is forked from.
    pub goes_first: u64,
    /// 1: the last descriptor is the rules that the program is put under.
    pub landlock: u64,
    /// How many of the limits count.
    pub count: u64,
    /// The program's limits.
    pub limits: [Limit; LIMITS],
}

/// What came of it. On success it is sent by the program's process itself, as its last act before the program.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Answer {
    /// The order's number.
    pub number: u64,
    /// Process number of the program in its own pid namespace.
    pub pid: i64,
    /// The step that failed (an index into [`STEPS`]); 0 for none.
    pub step: u64,
    /// The error number of that step.
    pub errno: i64,
}

/// The steps of a fork, by number.
pub const STEPS: [&str; 13] = [
    "",
    "enter the run's pid namespace",
    "fork the warm interpreter",
    "enter the run's mount namespace",
    "go to /tmp",
    "connect stdin, stdout and stderr",
    "set a limit",
    "open its memory to itself",
    "give up capabilities",
    "wait for its place in the process tree",
    "load the system-call filter",
    "begin a session of its own",
    "be put under Landlock",
];
