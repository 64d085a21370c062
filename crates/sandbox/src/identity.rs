//! Which host user a sandbox runs as: never root, and for a privileged caller one that owns nothing.

use std::fs;
use std::io;

use nix::unistd::{getegid, geteuid};

use crate::Fault;
use crate::wire::Identity;

/// Far above the users of any distribution and the ranges that `/etc/subuid` hands out, below 2^31.
const FIRST: u32 = 0x7000_0000;
/// Users for the slots of one supervisor; its process number picks the range, so that two supervisors on a machine
/// do not share the kernel's per-user counters.
const PER_SUPERVISOR: u32 = 1 << 16;
const SUPERVISORS: u32 = 1 << 12;

/// The identity of slot number `slot`.
pub(crate) fn identity(slot: u32) -> Result<Identity, Fault> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    if uid != 0 {
        return Ok(Identity {
            uid,
            gid,
            drop: false,
        });
    }
    let read = |file: &str| {
        fs::read_to_string(file)
            .map(|text| ranges(&text))
            .map_err(Fault::system("reading the user map"))
    };
    let (users, groups) = (read("/proc/self/uid_map")?, read("/proc/self/gid_map")?);
    let wanted = FIRST + std::process::id() % SUPERVISORS * PER_SUPERVISOR + slot % PER_SUPERVISOR;
    match (pick(&users, wanted, slot), pick(&groups, wanted, slot)) {
        (Some(uid), Some(gid)) => Ok(Identity {
            uid,
            gid,
            drop: true,
        }),
        // Root of a user namespace with nobody else in it: an ordinary user outside.
        _ if users.iter().all(|r| r.outside != 0) => Ok(Identity {
            uid,
            gid,
            drop: false,
        }),
        _ => Err(Fault::Unsupported {
            step: "choose an unprivileged user".into(),
            error: io::Error::from_raw_os_error(libc::EPERM),
            advice: "this process is root and its user namespace has no other user to change to: run it as an ordinary user",
        }),
    }
}

struct Range {
    inside: u32,
    outside: u32,
    count: u32,
}

fn ranges(text: &str) -> Vec<Range> {
    let line = |line: &str| {
        let mut numbers = line.split_whitespace().map(|n| n.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Range {
            inside: next()?,
            outside: next()?,
            count: next()?,
        })
    };
    text.lines().filter_map(line).collect()
}

/// `wanted` where it exists, else one from the top of the largest range (a container's users start at the bottom).
fn pick(ranges: &[Range], wanted: u32, slot: u32) -> Option<u32> {
    if ranges
        .iter()
        .any(|r| wanted >= r.inside && wanted - r.inside < r.count)
    {
        return Some(wanted);
    }
    let range = ranges.iter().max_by_key(|r| r.count)?;
    let spread = (range.count / 2).min(PER_SUPERVISOR);
    // Not the last user, nor 65534, which means "nobody" to file systems.
    let user = range
        .inside
        .checked_add(range.count.checked_sub(4 + slot.checked_rem(spread)?)?)?;
    (user != 0).then_some(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_come_from_what_is_mapped() {
        let all = ranges("         0          0 4294967295\n");
        assert_eq!(pick(&all, FIRST + 7, 0), Some(FIRST + 7));
        let container = ranges("0 100000 65536");
        assert_eq!(pick(&container, FIRST, 0), Some(65532));
        assert_eq!(pick(&container, FIRST, 1), Some(65531));
        assert_eq!(pick(&ranges("0 1000 1"), FIRST, 0), None);
        assert_eq!(pick(&[], FIRST, 3), None);
    }

    #[test]
    fn a_privileged_caller_gets_distinct_users_and_never_root() {
        let ids: Vec<Identity> = (0..3).map(|n| identity(n).expect("a user")).collect();
        if geteuid().is_root() {
            assert!(ids.iter().all(|i| i.drop && i.uid != 0 && i.gid != 0));
            assert!(ids[0].uid != ids[1].uid && ids[1].uid != ids[2].uid);
        } else {
            assert!(ids.iter().all(|i| !i.drop && i.uid == geteuid().as_raw()));
        }
    }
}
