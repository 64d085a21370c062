//! The system-call policy: from the readable file `assets/syscalls.toml` to filter programs for the kernel.
//!
//! Two filters are stacked, and the stricter answer wins: one kills for forbidden calls and allows the rest, the
//! other allows the listed calls and answers ENOSYS for the rest. What it does not do: look into memory (a filter
//! cannot), so calls whose meaning lies behind a pointer are either harmless, forbidden or absent.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::Fault;

/// One instruction of a filter, as the kernel takes it.
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

/// The filters in the order in which they are to be loaded.
pub(crate) fn filters() -> Result<Vec<Vec<Instruction>>, Fault> {
    compile(POLICY).map_err(Fault::Policy)
}

fn compile(text: &str) -> Result<Vec<Vec<Instruction>>, String> {
    let policy: Policy = toml::from_str(text).map_err(|e| e.to_string())?;
    if let Some(group) = policy.group.iter().find(|g| g.why.trim().is_empty()) {
        return Err(format!("group `{}` gives no reason", group.name));
    }
    let source = json!({
        "forbid": {
            "mismatch_action": "allow",
            "match_action": "kill_process",
            "filter": rules(&policy, Action::Forbid)?,
        },
        "allow": {
            "mismatch_action": { "errno": libc::ENOSYS },
            "match_action": "allow",
            "filter": rules(&policy, Action::Allow)?,
        },
    });
    let architecture = std::env::consts::ARCH
        .try_into()
        .map_err(|_| format!("no filter can be made for the architecture {}", std::env::consts::ARCH))?;
    let mut compiled: HashMap<String, seccompiler::BpfProgram> =
        seccompiler::compile_from_json(source.to_string().as_bytes(), architecture).map_err(|e| e.to_string())?;
    let mut take = |name: &str| -> Result<Vec<Instruction>, String> {
        let program = compiled.remove(name).ok_or_else(|| format!("the compiled policy has no part `{name}`"))?;
        Ok(program.iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect())
    };
    let mut forbid = kill_x32();
    forbid.extend(take("forbid")?);
    Ok(vec![forbid, take("allow")?])
}

/// The x32 numbering runs under the same architecture mark as x86-64 but with bit 30 set: none of its calls may
/// slip past a filter that compares plain numbers. Load the number, kill if it is at least 2^30, else go on.
fn kill_x32() -> Vec<Instruction> {
    if cfg!(target_arch = "x86_64") {
        vec![(0x20, 0, 0, 0), (0x35, 0, 1, 0x4000_0000), (0x06, 0, 0, 0x8000_0000)]
    } else {
        Vec::new()
    }
}

fn rules(policy: &Policy, action: Action) -> Result<Vec<Value>, String> {
    let mut rules = Vec::new();
    for group in policy.group.iter().filter(|g| g.action == action) {
        let own: &[String] = if cfg!(target_arch = "x86_64") { &group.x86_64 } else { &[] };
        for when in &group.when {
            if !group.calls.contains(&when.call) {
                return Err(format!("group `{}` restricts `{}`, which it does not list", group.name, when.call));
            }
        }
        for call in group.calls.iter().chain(own) {
            let mut restricted = false;
            for when in group.when.iter().filter(|w| w.call == *call) {
                restricted = true;
                for value in &when.is {
                    rules.push(json!({
                        "syscall": call,
                        "args": [{
                            "index": when.argument,
                            "type": "dword",
                            "op": { "masked_eq": when.mask },
                            "val": value,
                        }],
                    }));
                }
            }
            if !restricted {
                rules.push(json!({ "syscall": call }));
            }
        }
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_compiles_and_fits_the_kernel() {
        let filters = filters().expect("the embedded policy is right");
        assert_eq!(filters.len(), 2);
        for filter in &filters {
            assert!(!filter.is_empty() && filter.len() <= 4096, "{} instructions", filter.len());
        }
    }

    #[test]
    fn mistakes_in_a_policy_are_told() {
        let unknown = "[[group]]\nname='a'\naction='allow'\nwhy='x'\ncalls=['no_such_call']";
        assert!(compile(unknown).unwrap_err().contains("no_such_call"));
        let no_reason = "[[group]]\nname='a'\naction='allow'\nwhy=' '\ncalls=['read']";
        assert!(compile(no_reason).unwrap_err().contains("reason"));
        let key = "[[group]]\nname='a'\naction='allow'\nwhy='x'\ncalls=['read']\nextra=1";
        assert!(compile(key).unwrap_err().contains("extra"));
        let stray = "[[group]]\nname='a'\naction='allow'\nwhy='x'\ncalls=['read']\nwhen=[{call='fcntl',argument=1,is=[0]}]";
        assert!(compile(stray).unwrap_err().contains("fcntl"));
    }

    #[test]
    fn no_call_is_both_allowed_and_forbidden_without_a_condition() {
        let policy: Policy = toml::from_str(POLICY).expect("parses");
        let plain = |action: Action| -> Vec<&String> {
            policy
                .group
                .iter()
                .filter(|g| g.action == action)
                .flat_map(|g| g.calls.iter().chain(&g.x86_64).filter(|c| !g.when.iter().any(|w| w.call == **c)))
                .collect()
        };
        let forbidden = plain(Action::Forbid);
        assert!(plain(Action::Allow).iter().all(|call| !forbidden.contains(call)));
    }
}
