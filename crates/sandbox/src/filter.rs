//! Laying out a filter program: a search tree over call numbers whose leaves are answers or, for calls whose argument
//! decides, a few comparisons of that argument.
//!
//! Loading a program is a good part of what a small native run costs: the kernel checks and translates every
//! instruction and then runs the program once for every call number, to learn which calls are always allowed (those
//! are then not filtered at all). As a list of comparisons that took 0.6 ms of every run, as a tree with a leaf for
//! each range of numbers 0.1 ms, with the leaves shared 0.05 ms.

use std::collections::BTreeMap;

use crate::policy::Instruction;

/// What is to happen to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Allow,
    Forbid,
    /// Allowed under a condition, given by its number.
    AllowIf(usize),
    /// Listed nowhere: as if it did not exist.
    Absent,
    /// Fails with EOPNOTSUPP: it exists, but not for this file.
    Unsupported,
}

/// What an argument has to be for a call to be allowed.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    /// Its number, from 0.
    pub argument: u8,
    /// Bits of its lower half that count.
    pub mask: u32,
    /// What they may be.
    pub values: Vec<u32>,
    /// What happens to the call otherwise: forbidden or absent.
    pub otherwise: Class,
}

// Instruction codes and answers, from linux/bpf_common.h and linux/seccomp.h.
const LOAD: u16 = 0x20;
const JUMP: u16 = 0x05;
pub(crate) const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const AND: u16 = 0x54;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const KILL_PROCESS: u32 = 0x8000_0000;
const ERRNO: u32 = 0x0005_0000;
// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;

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

/// Puts the program together.
pub(crate) fn assemble(
    classes: &BTreeMap<u32, Class>,
    conditions: &[Condition],
) -> Result<Vec<Instruction>, String> {
    let mut program = Backwards::default();
    let answers = Answers {
        allow: program.push((RETURN, 0, 0, ALLOW)),
        forbid: program.push((RETURN, 0, 0, KILL_PROCESS)),
        absent: program.push((RETURN, 0, 0, ERRNO | libc::ENOSYS as u32)),
        unsupported: program.push((RETURN, 0, 0, ERRNO | libc::EOPNOTSUPP as u32)),
        conditions: Vec::new(),
    };
    let mut starts = Vec::new();
    for condition in conditions {
        starts.push(program.condition(condition, &answers)?);
    }
    let answers = Answers {
        conditions: starts,
        ..answers
    };
    let root = program.tree(&ranges(classes), &answers)?;
    // The root has been pushed last, unless it is but one answer.
    program.jump(root);
    program.push((LOAD, 0, 0, NUMBER));
    program.push((RETURN, 0, 0, KILL_PROCESS));
    program.push((JUMP_IF_EQUAL, 1, 0, ARCHITECTURE));
    program.push((LOAD, 0, 0, ARCH));
    let mut program = program.0;
    program.reverse();
    if program.len() > LONGEST {
        return Err(format!(
            "it makes {} instructions, the kernel takes {LONGEST}",
            program.len()
        ));
    }
    Ok(program)
}

/// A place in the program, counted from its end.
type Place = usize;

/// Where each answer is given.
struct Answers {
    allow: Place,
    forbid: Place,
    absent: Place,
    unsupported: Place,
    conditions: Vec<Place>,
}

impl Answers {
    fn place(&self, class: Class) -> Result<Place, String> {
        match class {
            Class::Allow => Ok(self.allow),
            Class::Forbid => Ok(self.forbid),
            Class::Absent => Ok(self.absent),
            Class::Unsupported => Ok(self.unsupported),
            Class::AllowIf(number) => {
                let place = self.conditions.get(number).copied();
                place.ok_or_else(|| format!("condition {number} is not known"))
            }
        }
    }
}

/// A program that is written from its end to its beginning, since jumps lead forwards only: whatever is jumped to is
/// there already.
#[derive(Default)]
struct Backwards(Vec<Instruction>);

impl Backwards {
    fn push(&mut self, instruction: Instruction) -> Place {
        self.0.push(instruction);
        self.0.len() - 1
    }

    /// How many instructions the next one has to skip to get there.
    fn distance(&self, place: Place) -> usize {
        self.0.len() - 1 - place
    }

    /// Goes there without a condition; nothing, if that is the next instruction.
    fn jump(&mut self, place: Place) -> Place {
        match self.distance(place) {
            0 => place,
            far => self.push((JUMP, 0, 0, u32::try_from(far).unwrap_or(u32::MAX))),
        }
    }

    /// A comparison that goes to one place or another. Conditional jumps reach 255 instructions; what is farther gets
    /// a jump of its own in between.
    fn branch(&mut self, code: u16, value: u32, yes: Place, no: Place) -> Place {
        // Each of the two jumps in between moves the other by one.
        let far = usize::from(u8::MAX) - 1;
        let no = if self.distance(no) > far {
            self.jump(no)
        } else {
            no
        };
        let yes = if self.distance(yes) > far {
            self.jump(yes)
        } else {
            yes
        };
        let reach = |place| u8::try_from(self.distance(place)).unwrap_or(u8::MAX);
        self.push((code, reach(yes), reach(no), value))
    }

    fn condition(&mut self, condition: &Condition, answers: &Answers) -> Result<Place, String> {
        let mut next = answers.place(condition.otherwise)?;
        for value in condition.values.iter().rev() {
            next = self.branch(JUMP_IF_EQUAL, *value, answers.allow, next);
        }
        if condition.mask != u32::MAX {
            self.push((AND, 0, 0, condition.mask));
        }
        // The lower half of the argument, on a little-endian machine.
        let offset = ARGUMENTS + 8 * u32::from(condition.argument);
        Ok(self.push((LOAD, 0, 0, offset)))
    }

    fn tree(&mut self, ranges: &[(u32, Class)], answers: &Answers) -> Result<Place, String> {
        let middle = ranges.len() / 2;
        match ranges {
            [] => Ok(answers.absent),
            [(_, class)] => answers.place(*class),
            _ => {
                let high = self.tree(&ranges[middle..], answers)?;
                let low = self.tree(&ranges[..middle], answers)?;
                Ok(self.branch(JUMP_IF_AT_LEAST, ranges[middle].0, high, low))
            }
        }
    }
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
            AND => accumulator &= k,
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
            let program = assemble(&classes, &[]).expect("short enough");
            for number in 0..700 {
                let wanted = match classes.get(&number) {
                    Some(Class::Allow) => ALLOW,
                    Some(_) => KILL_PROCESS,
                    None => ERRNO | libc::ENOSYS as u32,
                };
                prop_assert_eq!(run(&program, number, ARCHITECTURE, [0; 6]), wanted);
            }
        }

        #[test]
        fn arguments_decide_wherever_their_calls_lie(
            calls in proptest::collection::btree_map(0_u32..600, 0_usize..4, 1..300),
            masks in proptest::collection::vec(prop_oneof![Just(u32::MAX), any::<u32>()], 4),
            values in proptest::collection::vec(proptest::collection::vec(0_u32..9, 1..80), 4),
            asked in 0_u32..600,
            argument in 0_u64..9,
        ) {
            let conditions: Vec<Condition> = (0..4)
                .map(|n| Condition {
                    argument: n as u8,
                    mask: masks[n],
                    values: values[n].clone(),
                    otherwise: if n % 2 == 0 { Class::Absent } else { Class::Forbid },
                })
                .collect();
            let classes = calls.iter().map(|(call, n)| (*call, Class::AllowIf(*n))).collect();
            let program = assemble(&classes, &conditions).expect("short enough");
            let mut arguments = [77; 6];
            let wanted = match calls.get(&asked) {
                None => ERRNO | libc::ENOSYS as u32,
                Some(n) => {
                    // The upper half does not count.
                    arguments[*n] = argument | 1 << 40;
                    let fits = values[*n].contains(&(argument as u32 & masks[*n]));
                    match (fits, n % 2) {
                        (true, _) => ALLOW,
                        (false, 0) => ERRNO | libc::ENOSYS as u32,
                        _ => KILL_PROCESS,
                    }
                }
            };
            prop_assert_eq!(run(&program, asked, ARCHITECTURE, arguments), wanted);
        }
    }
}
