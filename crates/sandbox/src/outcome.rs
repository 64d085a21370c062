//! What can come of running a program: an [`Outcome`] (the program's own doing) or a [`Fault`] (ours).
//!
//! The two are different types on purpose: a fault says nothing about the program and must never become a
//! verdict or a reward.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Fault;

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

/// Shortest time: an interpreter that is started afresh takes some 10 ms for itself, on a slow machine some times that.
const SHORTEST: Duration = Duration::from_millis(100);
/// Longest time: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// Least and most memory, in bytes: what a program is given beside the interpreter, and more than any machine has.
const MEMORY: (u64, u64) = (1 << 20, 1 << 50);
/// Least that may be written to stdout, in bytes: what a function returns comes with some bytes around it.
const LEAST_OUTPUT: u64 = 1 << 10;
/// Least size of files and of `/tmp`, in bytes; a file system counts in blocks, and takes some for itself.
const LEAST_FILES: u64 = 64 << 10;

impl Limits {
    /// Whether programs can be judged under these limits: `cpu` and `wall` from 100 ms to a year, `memory_bytes` from
    /// 1 MiB to 1 PiB, `output_bytes` from 1 KiB, `processes` from 1, `file_bytes` from 64 KiB. With less, what the
    /// interpreter itself needs would be charged to the program. [`Sandbox::run`](crate::Sandbox::run) does not ask.
    ///
    /// # Errors
    /// [`Fault::Limit`] names the first one that is out of range, and the range.
    pub fn check(&self) -> Result<(), Fault> {
        for (limit, value) in [("cpu", self.cpu), ("wall", self.wall)] {
            if !(SHORTEST..=LONGEST).contains(&value) {
                let what =
                    format!("is {value:?}; it must be from {SHORTEST:?} to {LONGEST:?} (a year)");
                return Err(Fault::Limit { limit, what });
            }
        }
        let (least, most) = MEMORY;
        for (limit, value, least, most) in [
            ("memory_bytes", self.memory_bytes, least, most),
            ("output_bytes", self.output_bytes, LEAST_OUTPUT, u64::MAX),
            ("processes", self.processes.into(), 1, u64::MAX),
            ("file_bytes", self.file_bytes, LEAST_FILES, u64::MAX),
        ] {
            if !(least..=most).contains(&value) {
                let range = match most {
                    u64::MAX => format!("at least {least}"),
                    most => format!("from {least} to {most}"),
                };
                let what = format!("is {value}; it must be {range}");
                return Err(Fault::Limit { limit, what });
            }
        }
        Ok(())
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_out_of_range_are_told_with_the_range() {
        let fine = Limits::with_cpu(Duration::from_secs(1));
        assert!(fine.check().is_ok());
        let nano = Duration::from_nanos(1);
        let year = Duration::from_secs(365 * 24 * 3600);
        let wrong = [
            ("cpu", Limits { cpu: nano, ..fine }, "100ms"),
            (
                "cpu",
                Limits {
                    cpu: year + nano,
                    ..fine
                },
                "a year",
            ),
            (
                "wall",
                Limits {
                    wall: Duration::ZERO,
                    ..fine
                },
                "100ms",
            ),
            (
                "memory_bytes",
                Limits {
                    memory_bytes: (1 << 20) - 1,
                    ..fine
                },
                "from 1048576 to",
            ),
            (
                "memory_bytes",
                Limits {
                    memory_bytes: u64::MAX,
                    ..fine
                },
                "1125899906842624",
            ),
            (
                "output_bytes",
                Limits {
                    output_bytes: 1,
                    ..fine
                },
                "at least 1024",
            ),
            (
                "processes",
                Limits {
                    processes: 0,
                    ..fine
                },
                "at least 1",
            ),
            (
                "file_bytes",
                Limits {
                    file_bytes: 1,
                    ..fine
                },
                "at least 65536",
            ),
        ];
        for (name, limits, range) in wrong {
            let said = limits.check().expect_err(name).to_string();
            assert!(
                said.contains(&format!("`{name}` is")) && said.contains(range),
                "{said}"
            );
        }
    }
}
