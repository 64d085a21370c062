//! Making the launcher harmless and building its sandbox: user, namespaces, root, capabilities. Once a slot.
//!
//! The order matters. A privileged launcher builds the root first (only it may read, say, an interpreter under
//! /root), then becomes a user that exists nowhere else, then enters a user namespace as that user: real root is
//! never mapped. An ordinary user enters the user namespace first, which gives it the right to build the root.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};

use super::tree;
use super::warm::Warm;
use crate::wire::{Identity, SlotPlan, Trouble};

/// User and group inside: an ordinary number, so that `exec` drops all capabilities.
pub(crate) const INSIDE: u32 = 1000;

/// Highest capability number to try; the kernel says EINVAL at the first that it does not know.
const CAPABILITIES: libc::c_ulong = 64;

/// Name of the step that switches address randomisation off.
pub(crate) const FIXED_ADDRESSES: &str = "switch address randomisation off";

/// Every signal as at the start of a process, but some are blocked.
pub(super) fn reset_signals() -> io::Result<()> {
    for signal in 1..=64 {
        // SAFETY: setting a signal to its default action runs none of our code; numbers that cannot be set fail.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    super::blocked().thread_set_mask()?;
    Ok(())
}

/// Returns the optional layers that could not be had, and the warm interpreter or why there is none.
pub(super) fn set_up(plan: &SlotPlan) -> Result<(Vec<Trouble>, Result<Warm, String>), Trouble> {
    let mut missing = Vec::new();
    let identity = plan.identity;
    if identity.drop {
        step("make a mount namespace", unshare(CloneFlags::CLONE_NEWNS))?;
        tree::build(&plan.root)?;
        become_nobody(identity)?;
        enter_namespaces(&mut missing)?;
        map_user(identity)?;
    } else {
        enter_namespaces(&mut missing)?;
        map_user(identity)?;
        tree::build(&plan.root)?;
    }
    // Inside, nobody makes user namespaces: a second lock behind the system-call filter.
    optional(
        &mut missing,
        "forbid nested user namespaces",
        fs::write("/proc/sys/user/max_user_namespaces", "0"),
    );
    // Should the machine run out of memory, the sandbox goes first; where programs offer themselves, this process
    // and the warm interpreter are not to be in their way.
    let score = if plan.programs_go_first { "0" } else { "1000" };
    optional(
        &mut missing,
        "volunteer for the out-of-memory killer",
        fs::write("/proc/self/oom_score_adj", score),
    );
    optional(&mut missing, FIXED_ADDRESSES, fixed_addresses());
    step("set the host name", nix::unistd::sethostname("sandbox"))?;
    step("set no_new_privs", prctl::set_no_new_privs())?;
    step("close its memory to others", prctl::set_dumpable(false))?;
    // It keeps two capabilities, which is possible only as long as the bounding set has them.
    let warm = Warm::start(plan);
    drop_bounding_set()?;
    Ok((missing, warm))
}

/// The same addresses in every run, so that what depends on them (hashes of objects, order of sets) repeats. A program
/// that may run any code anyway gains nothing from knowing them.
fn fixed_addresses() -> io::Result<()> {
    // SAFETY: plain numbers; the flag is for what this process starts.
    match unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn enter_namespaces(missing: &mut Vec<Trouble>) -> Result<(), Trouble> {
    let all = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    step(
        "make user, mount, network, ipc and uts namespaces",
        unshare(all),
    )?;
    optional(
        missing,
        "make a cgroup namespace",
        unshare(CloneFlags::CLONE_NEWCGROUP).map_err(io::Error::from),
    );
    Ok(())
}

fn become_nobody(identity: Identity) -> Result<(), Trouble> {
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    step("leave all groups", setgroups(&[]))?;
    step("change to an unprivileged group", setresgid(gid, gid, gid))?;
    step("change to an unprivileged user", setresuid(uid, uid, uid))?;
    // Changing user closed /proc/self to us; the maps are written there. Nothing of the caller is in this memory.
    step("reopen its own /proc entry", prctl::set_dumpable(true))
}

fn map_user(identity: Identity) -> Result<(), Trouble> {
    let line = |outside: u32| format!("{INSIDE} {outside} 1\n");
    step(
        "give up setgroups",
        fs::write("/proc/self/setgroups", "deny"),
    )?;
    step(
        "map the user",
        fs::write("/proc/self/uid_map", line(identity.uid)),
    )?;
    step(
        "map the group",
        fs::write("/proc/self/gid_map", line(identity.gid)),
    )
}

/// What no `exec` may ever give back. The launcher's own capabilities (over its namespaces only) stay: it mounts.
pub(super) fn drop_bounding_set() -> Result<(), Trouble> {
    for capability in 0..CAPABILITIES {
        // SAFETY: plain numbers; changes only this process's bounding set.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } == 0 {
            continue;
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::EINVAL) && capability > 0 {
            return Ok(());
        }
        return Err(Trouble::new("drop the capability bounding set", error));
    }
    Ok(())
}

/// Makes the next `exec` of this process keep these of its capabilities, and no others.
pub(super) fn keep_across_exec(capabilities: &[u32]) -> io::Result<()> {
    // Version 3: two words for each of the effective, permitted and inheritable sets, interleaved; 0 is this process.
    let header = [0x2008_0522_u32, 0];
    let mut sets = [0_u32; 6];
    let failed = || Err(io::Error::last_os_error());
    // SAFETY: both point to live memory of the size that version 3 says.
    if unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) } == -1 {
        return failed();
    }
    sets[2] = capabilities.iter().fold(0, |set, c| set | 1 << c);
    sets[5] = 0;
    // SAFETY: as above; changes only this process.
    if unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) } == -1 {
        return failed();
    }
    for capability in capabilities {
        let (raise, capability) = (libc::PR_CAP_AMBIENT_RAISE, libc::c_ulong::from(*capability));
        // SAFETY: plain numbers; changes only this process.
        if unsafe { libc::prctl(libc::PR_CAP_AMBIENT, raise, capability, 0, 0) } == -1 {
            return failed();
        }
    }
    Ok(())
}

/// Offers this process, and what it will fork, to the out-of-memory killer.
pub(super) fn go_first() -> io::Result<()> {
    // A process that is closed to others may not open this file of its own either. Nothing runs beside it yet that
    // could look in.
    prctl::set_dumpable(true)?;
    let offered = fs::write("/proc/self/oom_score_adj", "1000");
    prctl::set_dumpable(false)?;
    offered
}

/// Names the step in the error.
pub(super) fn step<T>(name: &str, result: Result<T, impl Into<io::Error>>) -> Result<T, Trouble> {
    result.map_err(|error| Trouble::new(name, error))
}

fn optional(missing: &mut Vec<Trouble>, name: &str, result: io::Result<()>) {
    if let Err(error) = result {
        missing.push(Trouble::new(name, error));
    }
}
