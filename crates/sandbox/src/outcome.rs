//! What can come of running a program: an [`Outcome`] (the program's own doing) or a [`Fault`] (ours).
//!
//! The two are different types on purpose: a fault says nothing about the program and must never become a
//! verdict or a reward.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How the program's main process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ending", content = "detail")]
pub enum Ending {
    /// It exited by itself with this status.
    Exited(i32),
    /// A signal that no limit explains killed it.
    Signalled(i32),
    /// It used up its CPU time.
    CpuLimit,
    /// It was still there when its wall-clock time was over.
    WallLimit,
    /// It asked for more memory than it was allowed: it failed with a `MemoryError` as the last line of its
    /// traceback, or its processes together held too much. With a control group (see
    /// [`Sandbox::protections`](crate::Sandbox::protections)) nothing that passes the limit ends as anything else;
    /// without, a program that catches the error, or whose libraries crash for want of memory, ends as whatever it
    /// then does.
    MemoryLimit,
    /// It wrote more to stdout or stderr than it was allowed.
    OutputLimit,
    /// It made a system call that the policy forbids (the number, where the kernel tells it).
    Forbidden(Option<i64>),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit status {code}"),
            Self::Signalled(signal) => write!(f, "killed by signal {signal}"),
            Self::CpuLimit => f.write_str("CPU time limit"),
            Self::WallLimit => f.write_str("wall-clock time limit"),
            Self::MemoryLimit => f.write_str("memory limit"),
            Self::OutputLimit => f.write_str("output limit"),
            Self::Forbidden(None) => f.write_str("forbidden system call"),
            Self::Forbidden(Some(number)) => write!(f, "forbidden system call {number}"),
        }
    }
}

/// What a program did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// What it wrote to stdout, at most [`Limits::output_bytes`] bytes.
    pub stdout: Vec<u8>,
    /// What it wrote to stderr, at most [`Limits::output_bytes`] bytes.
    pub stderr: Vec<u8>,
    /// CPU time used, user and system, of all its processes. Without a control group those are left out whose parent
    /// chose not to be told of their end.
    pub cpu: Duration,
    /// Wall-clock time from start to end.
    pub wall: Duration,
    /// Most memory that it held, in bytes, that of the interpreter included: all its processes and files together with
    /// a control group that counts for each run, else the largest resident memory of any one process, where the
    /// system tells it.
    pub peak_memory_bytes: Option<u64>,
}

/// What a program may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// CPU time of all its processes together.
    pub cpu: Duration,
    /// Wall-clock time: a backstop for programs that sleep.
    pub wall: Duration,
    /// Memory on top of what the interpreter needs by itself, in bytes: with a control group what all its processes,
    /// its `/tmp` and the kernel on its behalf hold together, else address space of each process and resident memory
    /// of all.
    pub memory_bytes: u64,
    /// Cap on stdout, and a separate one of the same size on stderr, in bytes.
    pub output_bytes: u64,
    /// Processes and threads at once, the main one included.
    pub processes: u32,
    /// Largest file it may write and size of its private `/tmp`, in bytes.
    pub file_bytes: u64,
}

impl Limits {
    /// Limits for a program with `cpu` seconds of CPU time: wall = max(3 × cpu, cpu + 2 s), 1 GiB of memory,
    /// 16 MiB of output, 16 processes, 64 MiB of files.
    pub fn with_cpu(cpu: Duration) -> Self {
        Self {
            cpu,
            wall: cpu
                .saturating_mul(3)
                .max(cpu.saturating_add(Duration::from_secs(2))),
            memory_bytes: 1 << 30,
            output_bytes: 16 << 20,
            processes: 16,
            file_bytes: 64 << 20,
        }
    }
}
