//! Laying out a filter program: a search tree over call numbers, then the programs for calls with conditions.
//!
//! The kernel runs each new program once for every call number, to learn which calls are always allowed (those are
//! then not filtered at all). As a list of comparisons that took 0.6 ms of every run, as a tree 0.1 ms.

use std::collections::BTreeMap;

use crate::policy::Instruction;

/// What is to happen to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Allow,
    Forbid,
    /// Allowed under conditions, otherwise as if it did not exist.
    AllowIf,
    /// Allowed under conditions, otherwise forbidden.
    AllowIfElseForbid,
    /// Listed nowhere: as if it did not exist.
    Absent,
}

// Instruction codes and answers, from linux/bpf_common.h and linux/seccomp.h.
const LOAD: u16 = 0x20;
const JUMP: u16 = 0x05;
pub(crate) const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const KILL_PROCESS: u32 = 0x8000_0000;
const ERRNO: u32 = 0x0005_0000;
// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;

/// The audit number of the architecture this is compiled for (linux/audit.h).
#[cfg(target_arch = "x86_64")]
pub(crate) const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
pub(crate) const ARCHITECTURE: u32 = 0xC000_00B7;
#[cfg(target_arch = "riscv64")]
pub(crate) const ARCHITECTURE: u32 = 0xC000_00F3;

/// Numbers from here on are of another numbering (x32) or invalid.
const BEYOND: u32 = 0x4000_0000;

/// The longest program that the kernel takes.
const LONGEST: usize = 4096;

/// Puts the program together. `absent` and `forbidden` are programs of their own for the two conditional classes.
pub(crate) fn assemble(
    classes: &BTreeMap<u32, Class>,
    absent: Vec<Instruction>,
    forbidden: Vec<Instruction>,
) -> Result<Vec<Instruction>, String> {
    let mut program = vec![
        (LOAD, 0, 0, ARCH),
        (JUMP_IF_EQUAL, 1, 0, ARCHITECTURE),
        (RETURN, 0, 0, KILL_PROCESS),
        (LOAD, 0, 0, NUMBER),
    ];
    let tree = tree(&ranges(classes));
    let first_tail = program.len() + tree.len();
    let second_tail = first_tail + absent.len();
    for node in tree {
        let at = program.len();
        // Jumps count from the next instruction.
        let to = |target: usize| u32::try_from(target - at - 1).map(|k| (JUMP, 0, 0, k));
        program.push(match node {
            Node::Plain(instruction) => instruction,
            Node::Leaf(Class::Allow) => (RETURN, 0, 0, ALLOW),
            Node::Leaf(Class::Forbid) => (RETURN, 0, 0, KILL_PROCESS),
            Node::Leaf(Class::Absent) => (RETURN, 0, 0, ERRNO | libc::ENOSYS as u32),
            Node::Leaf(Class::AllowIf) => to(first_tail).map_err(|e| e.to_string())?,
            Node::Leaf(Class::AllowIfElseForbid) => to(second_tail).map_err(|e| e.to_string())?,
        });
    }
    program.extend(absent);
    program.extend(forbidden);
    if program.len() > LONGEST {
        return Err(format!(
            "it makes {} instructions, the kernel takes {LONGEST}",
            program.len()
        ));
    }
    Ok(program)
}

/// The first number of each run of calls of one class, from 0 on.
fn ranges(classes: &BTreeMap<u32, Class>) -> Vec<(u32, Class)> {
    let mut ranges = vec![(0, Class::Absent)];
    for (&number, &class) in classes {
        ranges.push((number, class));
        ranges.push((number + 1, Class::Absent));
    }
    ranges.push((BEYOND, Class::Forbid));
    // Of several entries for one number the last counts; then neighbours of one class are one.
    let last: BTreeMap<u32, Class> = ranges.into_iter().collect();
    let mut merged: Vec<(u32, Class)> = Vec::new();
    for (number, class) in last {
        if merged.last().is_none_or(|(_, before)| *before != class) {
            merged.push((number, class));
        }
    }
    merged
}

#[derive(Clone, Copy)]
enum Node {
    Plain(Instruction),
    Leaf(Class),
}

fn tree(ranges: &[(u32, Class)]) -> Vec<Node> {
    let middle = ranges.len() / 2;
    let Some((start, class)) = ranges.get(middle) else {
        return Vec::new();
    };
    if ranges.len() == 1 {
        return vec![Node::Leaf(*class)];
    }
    let (low, high) = (tree(&ranges[..middle]), tree(&ranges[middle..]));
    let mut nodes = match (u8::try_from(low.len()), u32::try_from(low.len())) {
        (Ok(over), _) => vec![Node::Plain((JUMP_IF_AT_LEAST, over, 0, *start))],
        // Conditional jumps reach 255 instructions.
        (_, Ok(over)) => {
            vec![
                Node::Plain((JUMP_IF_AT_LEAST, 0, 1, *start)),
                Node::Plain((JUMP, 0, 0, over)),
            ]
        }
        // Longer than any program may be; `assemble` will say so.
        _ => Vec::new(),
    };
    nodes.extend(low);
    nodes.extend(high);
    nodes
}

/// What the program answers, by the rules of the kernel's interpreter.
#[cfg(test)]
pub(crate) fn run(
    program: &[Instruction],
    number: u32,
    architecture: u32,
    arguments: [u64; 6],
) -> u32 {
    let word = |offset: u32| match offset {
        NUMBER => number,
        ARCH => architecture,
        16.. => {
            let argument = arguments[(offset as usize - 16) / 8];
            if offset.is_multiple_of(8) {
                argument as u32
            } else {
                (argument >> 32) as u32
            }
        }
        _ => panic!("offset {offset}"),
    };
    let (mut at, mut accumulator) = (0, 0);
    loop {
        let (code, yes, no, k) = program[at];
        at += 1;
        let branch = |holds: bool| usize::from(if holds { yes } else { no });
        match code {
            LOAD => accumulator = word(k),
            JUMP => at += k as usize,
            JUMP_IF_EQUAL => at += branch(accumulator == k),
            JUMP_IF_AT_LEAST => at += branch(accumulator >= k),
            0x25 => at += branch(accumulator > k),
            0x45 => at += branch(accumulator & k != 0),
            0x54 => accumulator &= k,
            RETURN => return k,
            _ => panic!("code {code:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_tree_finds_every_number(classes in proptest::collection::btree_map(0_u32..600, any::<bool>(), 0..300)) {
            let classes: BTreeMap<u32, Class> =
                classes.into_iter().map(|(n, allow)| (n, if allow { Class::Allow } else { Class::Forbid })).collect();
            let program = assemble(&classes, vec![], vec![]).expect("short enough");
            for number in 0..700 {
                let wanted = match classes.get(&number) {
                    Some(Class::Allow) => ALLOW,
                    Some(_) => KILL_PROCESS,
                    None => ERRNO | libc::ENOSYS as u32,
                };
                prop_assert_eq!(run(&program, number, ARCHITECTURE, [0; 6]), wanted);
            }
        }
    }
}
