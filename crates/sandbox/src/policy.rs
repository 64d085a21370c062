//! The system-call policy: from the readable file `assets/syscalls.toml` to a filter program for the kernel.
//!
//! The program is laid out in `filter.rs`; the numbers of calls are seccompiler's. What a filter cannot do is look into
//! memory, so calls whose meaning lies behind a pointer are harmless, forbidden or absent.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use crate::Fault;
use crate::filter::{self, Class, Condition};

/// One instruction of a filter, as the kernel takes it: code, jump if true, jump if false, operand.
pub(crate) type Instruction = (u16, u8, u8, u32);

const POLICY: &str = include_str!("../assets/syscalls.toml");

/// The group that compiled programs need to be started at all.
pub(crate) const FROM_DESCRIPTOR: &str = "starting from a descriptor";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    group: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    action: Action,
    /// What happens to a call whose `when` does not hold.
    #[serde(default)]
    otherwise: Option<Action>,
    /// Only for languages whose file names the group; it may take calls out of other groups.
    #[serde(default)]
    optional: bool,
    /// For the reader; required so that nothing gets in without a reason.
    why: String,
    calls: Vec<String>,
    /// Calls that only this architecture has.
    #[serde(default)]
    x86_64: Vec<String>,
    #[serde(default)]
    when: Vec<When>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Action {
    Forbid,
    Allow,
    /// As a call that is listed nowhere; for optional groups, which make of a forbidden call one that is not there.
    Absent,
    /// As on a file system that does not have what the call is about: libraries ask for it and go on without.
    Unsupported,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct When {
    call: String,
    argument: u8,
    #[serde(default = "all_bits")]
    mask: u32,
    is: Vec<u32>,
}

fn all_bits() -> u32 {
    u32::MAX
}

/// The filter for programs, with these optional groups: none for Python.
pub(crate) fn filter(optional: &[String]) -> Result<Vec<Instruction>, Fault> {
    compile(POLICY, optional).map_err(Fault::Policy)
}

fn compile(text: &str, optional: &[String]) -> Result<Vec<Instruction>, String> {
    let policy: Policy = toml::from_str(text).map_err(|e| e.to_string())?;
    let known = |name: &String| (policy.group.iter()).any(|g| g.optional && g.name == *name);
    if let Some(unknown) = optional.iter().find(|name| !known(name)) {
        return Err(format!("there is no optional group `{unknown}`"));
    }
    let mut classes: BTreeMap<u32, Class> = BTreeMap::new();
    let mut conditions: Vec<Condition> = Vec::new();
    // Optional groups last, since they may change what the others say.
    let (first, last): (Vec<_>, Vec<_>) = policy.group.iter().partition(|g| !g.optional);
    let wanted = last.into_iter().filter(|g| optional.contains(&g.name));
    for group in first.into_iter().chain(wanted) {
        check(group)?;
        let own: &[String] = if cfg!(target_arch = "x86_64") {
            &group.x86_64
        } else {
            &[]
        };
        for call in group.calls.iter().chain(own) {
            let plain = |action| match action {
                Action::Allow => Class::Allow,
                Action::Forbid => Class::Forbid,
                Action::Absent => Class::Absent,
                Action::Unsupported => Class::Unsupported,
            };
            let class = match group.when.iter().find(|w| w.call == *call) {
                None => plain(group.action),
                Some(when) => {
                    conditions.push(Condition {
                        argument: when.argument,
                        mask: when.mask,
                        values: when.is.clone(),
                        otherwise: plain(group.otherwise.unwrap_or(Action::Absent)),
                    });
                    Class::AllowIf(conditions.len() - 1)
                }
            };
            let before = classes.insert(number(call)?, class);
            if before.is_some() && !group.optional {
                return Err(format!(
                    "group `{}` lists `{call}`, which another group lists too",
                    group.name
                ));
            }
        }
    }
    filter::assemble(&classes, &conditions)
}

fn check(group: &Group) -> Result<(), String> {
    let name = &group.name;
    if group.why.trim().is_empty() {
        return Err(format!("group `{name}` gives no reason"));
    }
    if let Some(when) = group.when.iter().find(|w| !group.calls.contains(&w.call)) {
        return Err(format!(
            "group `{name}` restricts `{}`, which it does not list",
            when.call
        ));
    }
    if group.action != Action::Allow && !group.when.is_empty() {
        return Err(format!(
            "group `{name}`: write a conditional call as allowed, and what happens otherwise"
        ));
    }
    let twice = |(at, w): (usize, &When)| group.when[..at].iter().any(|v| v.call == w.call);
    if group.when.iter().enumerate().any(twice) {
        return Err(format!(
            "group `{name}` restricts a call twice: list all values of its argument in one row"
        ));
    }
    if group.when.iter().any(|w| w.argument > 5 || w.is.is_empty()) {
        return Err(format!(
            "group `{name}`: a call has arguments 0 to 5, and at least one value must pass"
        ));
    }
    Ok(())
}

/// The call's number. seccompiler knows all names but tells numbers only in programs: this is the one comparison,
/// apart from that of the architecture, in a program about one call.
fn number(call: &str) -> Result<u32, String> {
    let source = json!({ "main": {
        "mismatch_action": { "errno": libc::ENOSYS },
        "match_action": "allow",
        "filter": [{ "syscall": call }],
    } });
    let name = std::env::consts::ARCH;
    let architecture = name
        .try_into()
        .map_err(|_| format!("no filter can be made for the architecture {name}"))?;
    let compiled = seccompiler::compile_from_json(source.to_string().as_bytes(), architecture);
    let programs = compiled.map_err(|e| e.to_string())?;
    let program = programs
        .get("main")
        .ok_or("seccompiler returned no program")?;
    let compared: Vec<u32> = program
        .iter()
        .filter(|i| i.code == filter::JUMP_IF_EQUAL)
        .map(|i| i.k)
        .collect();
    match compared[..] {
        [_architecture, number] => Ok(number),
        _ => Err(format!("cannot find the number of `{call}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::run;

    const ALLOW: u32 = 0x7fff_0000;
    const KILL: u32 = 0x8000_0000;
    const ABSENT: u32 = 0x0005_0000 | libc::ENOSYS as u32;

    /// What the filter answers to a call of this machine's architecture.
    fn answer(number: i64, arguments: [u64; 6]) -> u32 {
        let program = filter(&[]).expect("the embedded policy is right");
        run(&program, number as u32, filter::ARCHITECTURE, arguments)
    }

    #[test]
    fn each_call_gets_its_class() {
        assert!(
            filter(&[]).expect("compiles").len() < 250,
            "loading takes time for every run"
        );
        for number in [
            libc::SYS_read,
            libc::SYS_execve,
            libc::SYS_futex,
            libc::SYS_exit_group,
            libc::SYS_pwrite64,
        ] {
            assert_eq!(answer(number, [0; 6]), ALLOW, "{number}");
        }
        for number in [
            libc::SYS_ptrace,
            libc::SYS_mount,
            libc::SYS_bpf,
            libc::SYS_keyctl,
            libc::SYS_unshare,
        ] {
            assert_eq!(answer(number, [0; 6]), KILL, "{number}");
        }
        for number in [
            libc::SYS_clone3,
            libc::SYS_socket,
            libc::SYS_memfd_create,
            5000,
        ] {
            assert_eq!(answer(number, [0; 6]), ABSENT, "{number}");
        }
    }

    #[test]
    fn arguments_decide_where_they_should() {
        assert_eq!(
            answer(libc::SYS_clone, [libc::SIGCHLD as u64, 0, 0, 0, 0, 0]),
            ALLOW
        );
        for flag in [
            0x2_0000,
            0x200_0000,
            0x400_0000,
            0x800_0000,
            0x1000_0000,
            0x2000_0000,
            0x4000_0000_u64,
        ] {
            assert_eq!(
                answer(libc::SYS_clone, [flag | 17, 0, 0, 0, 0, 0]),
                KILL,
                "{flag:x}"
            );
        }
        assert_eq!(
            answer(libc::SYS_fcntl, [0, libc::F_GETFD as u64, 0, 0, 0, 0]),
            ALLOW
        );
        assert_eq!(
            answer(libc::SYS_fcntl, [0, libc::F_SETLK as u64, 0, 0, 0, 0]),
            ABSENT
        );
        assert_eq!(
            // TIOCSTI: types into a terminal.
            answer(libc::SYS_ioctl, [0, 0x5412, 0, 0, 0, 0]),
            ABSENT
        );
        assert_eq!(
            answer(libc::SYS_socketpair, [libc::AF_UNIX as u64, 1, 0, 0, 0, 0]),
            ALLOW
        );
        assert_eq!(
            answer(libc::SYS_socketpair, [libc::AF_INET as u64, 1, 0, 0, 0, 0]),
            ABSENT
        );
        assert_eq!(answer(libc::SYS_prlimit64, [1, 0, 0, 0, 0, 0]), ABSENT);
    }

    #[test]
    fn other_numberings_are_killed() {
        let program = filter(&[]).expect("compiles");
        assert_eq!(run(&program, 20, 0x4000_0003, [0; 6]), KILL, "32-bit x86");
        if cfg!(target_arch = "x86_64") {
            assert_eq!(answer(0x4000_0000 | libc::SYS_read, [0; 6]), KILL, "x32");
        }
    }

    #[test]
    fn the_tree_says_what_the_list_says() {
        // Every number, against a list made without the tree.
        let policy: Policy = toml::from_str(POLICY).expect("parses");
        let mut wanted = BTreeMap::new();
        for group in policy.group.iter().filter(|g| !g.optional) {
            for call in group.calls.iter().chain(if cfg!(target_arch = "x86_64") {
                &group.x86_64[..]
            } else {
                &[]
            }) {
                if group.when.iter().all(|w| w.call != *call) {
                    let answer = match group.action {
                        Action::Allow => ALLOW,
                        Action::Unsupported => 0x0005_0000 | libc::EOPNOTSUPP as u32,
                        Action::Forbid | Action::Absent => KILL,
                    };
                    wanted.insert(number(call).expect("known"), Some(answer));
                } else {
                    wanted.insert(number(call).expect("known"), None);
                }
            }
        }
        let program = filter(&[]).expect("compiles");
        for number in 0..1000 {
            match wanted.get(&number) {
                Some(None) => {}
                known => {
                    let wanted = known.copied().flatten().unwrap_or(ABSENT);
                    assert_eq!(
                        run(&program, number, filter::ARCHITECTURE, [0; 6]),
                        wanted,
                        "{number}"
                    );
                }
            }
        }
    }

    #[test]
    fn names_become_the_systems_numbers() {
        let known = [
            ("read", libc::SYS_read),
            ("ptrace", libc::SYS_ptrace),
            ("openat2", libc::SYS_openat2),
        ];
        for (name, wanted) in known {
            assert_eq!(number(name).map(i64::from), Ok(wanted));
        }
    }

    #[test]
    fn mistakes_in_a_policy_are_told() {
        let group = |rest: &str| format!("[[group]]\nname='a'\naction='allow'\n{rest}\n");
        for (rest, told) in [
            ("why='x'\ncalls=['no_such_call']", "no_such_call"),
            ("why=' '\ncalls=['read']", "reason"),
            ("why='x'\ncalls=['read']\nextra=1", "extra"),
            ("why='x'\ncalls=['read', 'read']", "another group"),
            (
                "why='x'\ncalls=['read']\nwhen=[{call='fcntl',argument=1,is=[0]}]",
                "fcntl",
            ),
        ] {
            let error = compile(&group(rest), &[]).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
