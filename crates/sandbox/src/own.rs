//! The limits of this process itself: what it does not have it cannot give to programs.

use crate::supervise::{FOREVER, MOST_BYTES, OWN_PROCESSES, Terms};
use crate::{Fault, Limits};

/// More processes than any honest program has: of a larger limit, no more than this has to be kept.
const MANY_PROCESSES: u64 = 1024;

/// Address space that is enough for runtimes which reserve far more than they use: a JVM some 2 GiB on top of its heap, node
/// up to ten times as much.
const RESERVED: u64 = 64 << 30;

/// Whether this process can give programs what these limits promise: a program that ran into one of ours would be charged
/// for it.
pub(crate) fn can_be_kept(limits: &Limits, terms: &Terms) -> Result<(), Fault> {
    let memory = limits.memory_bytes.min(MOST_BYTES);
    let processes = u64::from(limits.processes).min(MANY_PROCESSES);
    let mapped = memory.saturating_add(terms.baseline.mapped);
    // Both limits count what a program maps; the kernel keeps the lower.
    let space = match terms.address_space {
        true => mapped,
        false => mapped.saturating_add(RESERVED),
    };
    for (resource, what, promised) in [
        (libc::RLIMIT_AS, "bytes of address space (ulimit -v)", space),
        (libc::RLIMIT_DATA, "bytes of data (ulimit -d)", mapped),
        (
            libc::RLIMIT_FSIZE,
            "bytes in a file (ulimit -f)",
            limits.file_bytes.min(MOST_BYTES),
        ),
        (
            libc::RLIMIT_CPU,
            "seconds of CPU time (ulimit -t)",
            limits.cpu.min(FOREVER).as_secs().saturating_add(1),
        ),
        (
            libc::RLIMIT_NPROC,
            "processes (ulimit -u)",
            processes.saturating_add(u64::from(terms.processes) + OWN_PROCESSES),
        ),
    ] {
        let limit = own_limit(resource).unwrap_or(promised);
        if limit < promised {
            return Err(Fault::OwnLimit {
                what,
                limit,
                promised,
            });
        }
    }
    Ok(())
}

/// The most of a resource that this process may have and give.
fn own_limit(resource: u32) -> Option<u64> {
    let mut own = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is valid and the call only fills it in.
    let answer = unsafe { libc::getrlimit(resource as _, &raw mut own) };
    (answer == 0).then_some(own.rlim_max)
}

/// An ordinary user cannot raise a hard limit: what we have is the most that we can give.
pub(crate) fn within_own((what, soft, hard): (u32, u64, u64)) -> (u32, u64, u64) {
    let most = own_limit(what).unwrap_or(hard);
    (what, soft.min(most), hard.min(most))
}
