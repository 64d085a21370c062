//! The system-call policy: from the readable file `assets/syscalls.toml` to a filter program for the kernel.
//!
//! Calls that depend on an argument are compiled by seccompiler; what does not is laid out in front as a search
//! tree (`filter.rs`), because the kernel walks the program once for every call number each time it is loaded. What
//! a filter cannot do is look into memory, so calls whose meaning lies behind a pointer are harmless, forbidden or
//! absent.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::Fault;
use crate::filter::{self, Class};

/// One instruction of a filter, as the kernel takes it: code, jump if true, jump if false, operand.
pub(crate) type Instruction = (u16, u8, u8, u32);

const POLICY: &str = include_str!("../assets/syscalls.toml");

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

/// The filter for programs.
pub(crate) fn filter() -> Result<Vec<Instruction>, Fault> {
    compile(POLICY).map_err(Fault::Policy)
}

fn compile(text: &str) -> Result<Vec<Instruction>, String> {
    let policy: Policy = toml::from_str(text).map_err(|e| e.to_string())?;
    let mut classes: BTreeMap<u32, Class> = BTreeMap::new();
    let mut conditional: BTreeMap<Class, Vec<Value>> = BTreeMap::new();
    for group in &policy.group {
        check(group)?;
        let own: &[String] = if cfg!(target_arch = "x86_64") {
            &group.x86_64
        } else {
            &[]
        };
        for call in group.calls.iter().chain(own) {
            let rules = conditions(group, call);
            let class = match (rules.is_empty(), group.action, group.otherwise) {
                (true, Action::Allow, _) => Class::Allow,
                (true, Action::Forbid, _) => Class::Forbid,
                (false, _, Some(Action::Forbid)) => Class::AllowIfElseForbid,
                (false, ..) => Class::AllowIf,
            };
            conditional.entry(class).or_default().extend(rules);
            if classes.insert(number(call)?, class).is_some() {
                return Err(format!(
                    "group `{}` lists `{call}`, which another group lists too",
                    group.name
                ));
            }
        }
    }
    let mut tail = |class: Class, otherwise: Value| -> Result<Vec<Instruction>, String> {
        seccompiler_program(&conditional.remove(&class).unwrap_or_default(), otherwise)
    };
    let absent = tail(Class::AllowIf, json!({ "errno": libc::ENOSYS }))?;
    let forbidden = tail(Class::AllowIfElseForbid, json!("kill_process"))?;
    filter::assemble(&classes, absent, forbidden)
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
    if group.action == Action::Forbid && !group.when.is_empty() {
        return Err(format!(
            "group `{name}`: write a conditional call as allowed, and what happens otherwise"
        ));
    }
    let arguments: BTreeSet<_> = group.when.iter().map(|w| (&w.call, w.argument)).collect();
    if arguments.len() != group.when.len() {
        return Err(format!(
            "group `{name}` restricts an argument twice: list all its values in one row"
        ));
    }
    Ok(())
}

/// One rule for each value that lets the call pass.
fn conditions(group: &Group, call: &str) -> Vec<Value> {
    let rows = group.when.iter().filter(|w| w.call == call);
    rows.flat_map(|when| {
        when.is.iter().map(move |value| {
            let op = json!({ "masked_eq": when.mask });
            json!({ "syscall": call, "args": [{ "index": when.argument, "type": "dword", "op": op, "val": value }] })
        })
    })
    .collect()
}

fn seccompiler_program(rules: &[Value], otherwise: Value) -> Result<Vec<Instruction>, String> {
    let source = json!({ "main": { "mismatch_action": otherwise, "match_action": "allow", "filter": rules } });
    let name = std::env::consts::ARCH;
    let architecture = name
        .try_into()
        .map_err(|_| format!("no filter can be made for the architecture {name}"))?;
    let compiled = seccompiler::compile_from_json(source.to_string().as_bytes(), architecture);
    let mut programs = compiled.map_err(|e| e.to_string())?;
    let program = programs
        .remove("main")
        .ok_or("seccompiler returned no program")?;
    Ok(program.iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect())
}

/// The call's number. seccompiler knows all names but tells numbers only in programs: this is the one comparison,
/// apart from that of the architecture, in a program about one call.
fn number(call: &str) -> Result<u32, String> {
    let program = seccompiler_program(
        &[json!({ "syscall": call })],
        json!({ "errno": libc::ENOSYS }),
    )?;
    let compared: Vec<u32> = program
        .iter()
        .filter(|i| i.0 == filter::JUMP_IF_EQUAL)
        .map(|i| i.3)
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
        let program = filter().expect("the embedded policy is right");
        run(&program, number as u32, filter::ARCHITECTURE, arguments)
    }

    #[test]
    fn each_call_gets_its_class() {
        assert!(
            filter().expect("compiles").len() < 700,
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
        let program = filter().expect("compiles");
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
        for group in &policy.group {
            for call in group.calls.iter().chain(if cfg!(target_arch = "x86_64") {
                &group.x86_64[..]
            } else {
                &[]
            }) {
                if conditions(group, call).is_empty() {
                    let answer = if group.action == Action::Allow {
                        ALLOW
                    } else {
                        KILL
                    };
                    wanted.insert(number(call).expect("known"), Some(answer));
                } else {
                    wanted.insert(number(call).expect("known"), None);
                }
            }
        }
        let program = filter().expect("compiles");
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
            let error = compile(&group(rest)).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
