//! What protects the host from a program: asked of the kernel from inside a sandbox, not assumed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

use crate::launcher::{FIXED_ADDRESSES, LANDLOCK};
use crate::slot::Slot;

pub(crate) const SELF_CHECK: &str = include_str!("../assets/self_check.py");

/// One layer of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Protection {
    /// What it is called.
    pub name: &'static str,
    /// Whether it is in force, as seen from inside.
    pub in_force: bool,
    /// Whether untrusted code may not run without it (in strict mode).
    pub required: bool,
    /// What was seen or, where it is missing, what to do.
    pub detail: String,
}

/// What the self-check program prints.
#[derive(Debug, Deserialize)]
pub(crate) struct SelfCheck {
    /// Address space of the idle interpreter, in bytes.
    pub mapped: u64,
    /// What of it is in memory, in bytes; of a forked one, most is shared with the one that it was forked from.
    pub resident: u64,
    status: BTreeMap<String, String>,
    namespaces: BTreeMap<String, String>,
    processes: Vec<u32>,
    root: Vec<String>,
    root_device: u64,
    user: Vec<u32>,
}

/// Kinds of namespaces: the name in /proc, the protection, whether required, what to do without.
const NAMESPACES: [(&str, &str, bool); 7] = [
    ("user", "user namespace", true),
    ("mnt", "mount namespace", true),
    ("pid", "pid namespace", true),
    ("net", "network namespace", true),
    ("ipc", "ipc namespace", true),
    ("uts", "uts namespace", true),
    ("cgroup", "cgroup namespace", false),
];

pub(crate) fn judge(seen: &SelfCheck, slot: &Slot) -> Vec<Protection> {
    let mut all = Vec::new();
    let mut add = |name, in_force: bool, required, seen: String, advice: &str| {
        let detail = if in_force {
            seen
        } else {
            format!("{seen}: {advice}")
        };
        all.push(Protection {
            name,
            in_force,
            required,
            detail,
        });
    };
    for (kind, name, required) in NAMESPACES {
        let inside = seen.namespaces.get(kind).cloned().unwrap_or_default();
        let outside = fs::read_link(format!("/proc/self/ns/{kind}"))
            .map(|l| l.to_string_lossy().into_owned());
        let own = !inside.is_empty() && outside.is_ok_and(|outside| outside != inside);
        add(
            name,
            own,
            required,
            inside,
            "shared with the host; use a kernel that has this namespace",
        );
    }
    let host = fs::metadata("/")
        .map(|m| m.dev())
        .unwrap_or(seen.root_device);
    let names = seen.root.join(" ");
    add(
        "private root",
        host != seen.root_device,
        true,
        names,
        "the host's files are visible; report this as a bug",
    );
    let processes = format!("processes in /proc: {:?}", seen.processes);
    let alone = seen.processes.first() == Some(&1) && seen.processes.len() == 2;
    add(
        "private /proc",
        alone,
        true,
        processes,
        "in a container, run with an unmasked /proc",
    );
    let field = |name: &str| seen.status.get(name).cloned().unwrap_or_default();
    let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
    let empty = sets
        .iter()
        .all(|s| u64::from_str_radix(&field(s), 16) == Ok(0));
    let values = sets.map(|s| format!("{s} {}", field(s))).join(", ");
    add(
        "no capabilities",
        empty,
        true,
        values,
        "report this as a bug",
    );
    let value = field("NoNewPrivs");
    add(
        "no new privileges",
        value == "1",
        true,
        format!("NoNewPrivs {value}"),
        "use a kernel from 3.5 on",
    );
    let value = field("Seccomp");
    add(
        "system-call filter",
        value == "2",
        true,
        format!("Seccomp {value}"),
        "use a kernel with CONFIG_SECCOMP_FILTER",
    );
    let unprivileged = slot.identity.uid != 0 || !slot.identity.drop;
    let ordinary = seen.user.len() >= 6 && seen.user.iter().all(|id| *id != 0);
    let value = format!("host user {}, inside {:?}", slot.identity.uid, seen.user);
    add(
        "unprivileged user",
        unprivileged && ordinary,
        true,
        value,
        "run as an ordinary user",
    );
    let why = slot.cold.clone();
    add(
        "warm interpreter",
        why.is_none(),
        false,
        why.unwrap_or_else(|| "programs are forked from it".into()),
        "programs are started afresh, which is as safe and takes three times as long",
    );
    for (step, name, advice) in [
        (
            LANDLOCK,
            "Landlock, behind the mounts and the filter",
            "use a kernel from 5.19 on with CONFIG_SECURITY_LANDLOCK and `landlock` among its `lsm=`; in a container, let \
             its filter pass the calls",
        ),
        (
            "forbid nested user namespaces",
            "no nested user namespaces",
            "the system-call filter still forbids them",
        ),
        (
            "volunteer for the out-of-memory killer",
            "first to go when memory runs out",
            "set memory limits that fit the machine",
        ),
        (
            FIXED_ADDRESSES,
            "same addresses in every run",
            "programs that depend on addresses may not repeat; in a container, let its filter pass `personality`",
        ),
    ] {
        let trouble = slot.missing.iter().find(|t| t.step == step);
        let value = trouble.map_or_else(|| "set".into(), |t| t.error().to_string());
        add(name, trouble.is_none(), false, value, advice);
    }
    all
}
