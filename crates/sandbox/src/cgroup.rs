//! Control groups, where the system lends some: one for each slot, which its launcher joins once and everything that
//! it forks is born into. They bound and count what a run's processes use together, which without them can only be
//! sampled.
//!
//! Nothing here is needed: each ability (see [`Abilities`]) is found or not, in either version of control groups and
//! in any mix of them, and a sandbox without any works as well as it can. Only groups below the one that this process
//! is in are made, so that whatever bounds this process bounds its sandboxes too; no group of anybody else is changed.

mod account;
mod delegate;
mod file;
mod find;
mod leftovers;
mod memory;

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use account::{Bounds, Group, Own, Used};
use find::{Hierarchy, Version};
pub(crate) use memory::Killed;

use crate::{Fault, Protection};

/// What a group can be used for. Each comes from the hierarchy that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ability {
    /// Bound memory and count what the out-of-memory killer did.
    Memory,
    /// Bound the number of tasks.
    Tasks,
    /// Read the CPU time of all processes, dead ones included.
    Cpu,
    /// End all processes in one step.
    Kill,
}

const ABILITIES: [Ability; 4] = [Ability::Memory, Ability::Tasks, Ability::Cpu, Ability::Kill];

impl Ability {
    fn protection(self) -> (&'static str, &'static str) {
        match self {
            Self::Memory => (
                "memory of all processes bounded together",
                "each process is bounded by its address space, all together by sampling",
            ),
            Self::Cpu => (
                "CPU time of all processes counted together",
                "it is sampled, and children that nobody waits for may be missed",
            ),
            Self::Tasks => (
                "second bound on processes",
                "their number is bounded for each user only",
            ),
            Self::Kill => (
                "all processes ended in one step",
                "they end with their pid namespace",
            ),
        }
    }
}

/// How to come by what is missing.
const ADVICE: &str = "to have it, run as root, or start the command in a group of its own: `systemd-run --user \
    --scope -p Delegate=yes COMMAND`; in a container, have /sys/fs/cgroup mounted writable";

/// Where a slot's group is made.
#[derive(Debug, Clone)]
struct Place {
    version: Version,
    folder: PathBuf,
}

/// The control groups that this process may make.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    places: Vec<Place>,
    /// Which of the places has each ability, or why none has.
    abilities: Vec<(Ability, Result<usize, String>)>,
}

impl Groups {
    /// None, whatever the system has.
    pub(crate) fn none(reason: &str) -> Self {
        let none = |ability| (ability, Err(reason.to_owned()));
        Self {
            places: Vec::new(),
            abilities: ABILITIES.map(none).into(),
        }
    }

    /// Looks where groups may be made, and removes those that dead processes of the same user have left.
    pub(crate) fn find() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let hierarchies =
            find::hierarchies(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
        if hierarchies.is_empty() {
            return Self::none("no control groups are mounted");
        }
        Self::of(&hierarchies)
    }

    fn of(hierarchies: &[Hierarchy]) -> Self {
        let mut places: Vec<Place> = Vec::new();
        let mut found = Vec::new();
        for hierarchy in hierarchies {
            leftovers::sweep(&hierarchy.folder);
        }
        for ability in ABILITIES {
            let mut reason = String::from("no hierarchy has it");
            let mut place = None;
            for hierarchy in hierarchies.iter().filter(|h| h.may_have(ability)) {
                match delegate::prepare(hierarchy, ability) {
                    Ok(folder) => {
                        let known = places.iter().position(|p| p.folder == folder);
                        place = Some(known.unwrap_or_else(|| {
                            places.push(Place {
                                version: hierarchy.version,
                                folder,
                            });
                            places.len() - 1
                        }));
                        break;
                    }
                    Err(why) => reason = why,
                }
            }
            found.push((ability, place.ok_or(reason)));
        }
        Self {
            places,
            abilities: found,
        }
    }

    /// Whether there is a use in making groups.
    pub(crate) fn any(&self) -> bool {
        self.abilities.iter().any(|(_, place)| place.is_ok())
    }

    pub(crate) fn has(&self, wanted: Ability) -> bool {
        self.abilities
            .iter()
            .any(|(ability, place)| *ability == wanted && place.is_ok())
    }

    /// Makes a group, opens what it is used through and puts `process` in; gives up what turns out not to work. To be
    /// called once, with a process that has no other purpose; the groups that it is in then are for the caller to drop.
    pub(crate) fn try_out(&mut self, process: u32) -> Vec<Group> {
        let mut tried = Vec::new();
        while self.any() {
            let (lost, reason) = match Group::make(self) {
                Err(failed) => failed,
                Ok(group) => {
                    let joined = group.join(process);
                    tried.push(group);
                    match joined {
                        Ok(()) => break,
                        Err(failed) => failed,
                    }
                }
            };
            for (ability, place) in &mut self.abilities {
                if *ability == lost {
                    *place = Err(reason.clone());
                }
            }
        }
        tried
    }

    /// A group for a slot.
    pub(crate) fn make(&self) -> Result<Option<Group>, Fault> {
        if !self.any() {
            return Ok(None);
        }
        let made = Group::make(self).map_err(|(_, reason)| Fault::Broken {
            doing: "making a control group",
            reason,
        });
        made.map(Some)
    }

    /// The place that has an ability.
    fn place(&self, wanted: Ability) -> Option<&Place> {
        let found = self.abilities.iter().find(|(a, _)| *a == wanted)?;
        self.places.get(*found.1.as_ref().ok()?)
    }

    /// What they give, for the list of protections.
    pub(crate) fn protections(&self) -> Vec<Protection> {
        let each = self.abilities.iter().map(|(ability, place)| {
            let (name, without) = ability.protection();
            let detail = match place {
                Ok(index) => format!("by control group, {}", self.places[*index].version.name()),
                Err(reason) => format!("no control group for it ({reason}): {without}; {ADVICE}"),
            };
            Protection {
                name,
                in_force: place.is_ok(),
                required: false,
                detail,
            }
        });
        each.collect()
    }
}

fn describe(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
