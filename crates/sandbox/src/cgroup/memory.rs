//! The memory of a group: its bound, what it holds, and what the kernel did about it, in either version.

use std::path::Path;

use super::describe;
use super::file::Numbers;
use super::find::Version;

/// More than any machine has; the kernel rounds what is larger.
const UNLIMITED: u64 = 1 << 50;
/// How far below its bound the kernel may find a group that has reached it: what it sets aside for each CPU, and
/// blocks of several pages.
const NEAR: u64 = 1 << 20;

/// Whether the kernel killed for want of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Killed {
    Nobody,
    /// Because the group reached its bound.
    OverBound,
    /// Though it had not: the machine, or a group around this one, had no more.
    Elsewhere,
}

/// What the kernel did for want of memory, since the group was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Events {
    /// Processes of the group that it killed, for whatever bound.
    kills: u64,
    /// Times that the group's own bound was to blame; version 1 does not count them.
    over: Option<u64>,
}

impl Events {
    pub(super) fn since(&self, before: &Self, peak: Option<u64>, bound: u64) -> Killed {
        if self.kills <= before.kills {
            return Killed::Nobody;
        }
        let over = match (self.over, before.over, peak) {
            (Some(now), Some(then), _) => now > then,
            (_, _, Some(peak)) => peak.saturating_add(NEAR) >= bound,
            _ => true,
        };
        if over {
            Killed::OverBound
        } else {
            Killed::Elsewhere
        }
    }
}

/// Most that a group has held.
#[derive(Debug)]
pub(super) enum Peak {
    /// Can be begun anew by writing this.
    OfRun(Numbers, &'static str),
    OfLife(Numbers),
    Unknown,
}

impl Peak {
    pub(super) fn reset(&self) -> std::io::Result<()> {
        match self {
            Self::OfRun(file, order) => file.set(order),
            _ => Ok(()),
        }
    }

    pub(super) fn read(&self) -> std::io::Result<Option<u64>> {
        match self {
            Self::OfRun(file, _) | Self::OfLife(file) => file.number().map(Some),
            Self::Unknown => Ok(None),
        }
    }
}

#[derive(Debug)]
pub(super) struct Memory {
    version: Version,
    limit: Numbers,
    /// Version 1: the bound of memory and swap together, where swap is counted.
    with_swap: Option<Numbers>,
    pub(super) now: Numbers,
    events: Numbers,
    pub(super) peak: Peak,
}

impl Memory {
    pub(super) fn open(version: Version, group: &Path) -> Result<Self, String> {
        let file = |name: &str, open: fn(&Path) -> std::io::Result<Numbers>| {
            let path = group.join(name);
            open(&path).map_err(|e| describe(&path, &e))
        };
        let (read, write) = (Numbers::read_only, Numbers::writable);
        let memory = match version {
            Version::One => Self {
                version,
                limit: file("memory.limit_in_bytes", write)?,
                with_swap: file("memory.memsw.limit_in_bytes", write).ok(),
                now: file("memory.usage_in_bytes", read)?,
                events: file("memory.oom_control", read)?,
                peak: match file("memory.max_usage_in_bytes", write) {
                    Ok(peak) => Peak::OfRun(peak, "0"),
                    Err(_) => Peak::Unknown,
                },
            },
            Version::Two => {
                // Where swap is counted at all.
                if let Ok(swap) = file("memory.swap.max", write) {
                    swap.set("0").map_err(|e| describe(group, &e))?;
                }
                Self {
                    version,
                    limit: file("memory.max", write)?,
                    with_swap: None,
                    now: file("memory.current", read)?,
                    events: file("memory.events", read)?,
                    // Linux 6.12 can begin it anew, for each descriptor; 5.19 only reads it.
                    peak: match (file("memory.peak", write), file("memory.peak", read)) {
                        (Ok(peak), _) if peak.set("1").is_ok() => Peak::OfRun(peak, "1"),
                        (_, Ok(peak)) => Peak::OfLife(peak),
                        _ => Peak::Unknown,
                    },
                }
            }
        };
        memory.events().map_err(|e| describe(group, &e))?;
        Ok(memory)
    }

    /// Sets the bound, which was `old`. Swap is never more than memory.
    pub(super) fn bound(&self, old: Option<u64>, new: u64) -> std::io::Result<()> {
        let value = match (self.version, new < UNLIMITED) {
            (_, true) => new.to_string(),
            (Version::One, false) => "-1".into(),
            (Version::Two, false) => "max".into(),
        };
        // The bound of both must at no moment be the lower one.
        let rises = old.is_none_or(|old| old < new);
        let order = [self.with_swap.as_ref(), Some(&self.limit)];
        let [first, second] = match (rises, old) {
            // At the beginning there is no bound.
            (_, None) | (false, _) => [order[1], order[0]],
            (true, _) => order,
        };
        for file in [first, second].into_iter().flatten() {
            file.set(&value)?;
        }
        Ok(())
    }

    pub(super) fn events(&self) -> std::io::Result<Events> {
        Ok(Events {
            kills: self.events.named("oom_kill")?,
            over: match self.version {
                Version::One => None,
                Version::Two => Some(self.events.named("oom")?),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_the_groups_own_bound_is_the_programs_doing() {
        let events = |kills, over| Events { kills, over };
        let before = events(3, Some(5));
        for (after, wanted) in [
            (events(3, Some(5)), Killed::Nobody),
            // At its bound, but nobody had to go.
            (events(3, Some(6)), Killed::Nobody),
            (events(4, Some(6)), Killed::OverBound),
            (events(4, Some(5)), Killed::Elsewhere),
        ] {
            assert_eq!(
                after.since(&before, Some(1), 100 << 20),
                wanted,
                "{after:?}"
            );
        }
        // Version 1: the peak tells.
        let (before, after) = (events(0, None), events(1, None));
        let bound = 100 << 20;
        for (peak, wanted) in [
            (bound, Killed::OverBound),
            (bound - NEAR / 2, Killed::OverBound),
            (bound / 2, Killed::Elsewhere),
        ] {
            assert_eq!(after.since(&before, Some(peak), bound), wanted, "{peak}");
        }
    }

    /// A folder with the files of a group; reading and writing them is all that is asked of the kernel here.
    fn files(all: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in all {
            fs::write(folder.path().join(name), text).expect("written");
        }
        folder
    }

    #[test]
    fn both_versions_are_opened_with_what_they_have() {
        let old = files(&[
            ("memory.limit_in_bytes", ""),
            ("memory.usage_in_bytes", "77\n"),
            (
                "memory.oom_control",
                "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
            ),
        ]);
        let memory = Memory::open(Version::One, old.path()).expect("opened");
        assert!(memory.with_swap.is_none() && matches!(memory.peak, Peak::Unknown));
        assert_eq!(
            memory.events().expect("read"),
            Events {
                kills: 2,
                over: None
            }
        );
        memory.bound(None, 4096).expect("written");
        let limit = || fs::read_to_string(old.path().join("memory.limit_in_bytes")).expect("read");
        assert_eq!(limit(), "4096");

        let new = files(&[
            ("memory.max", ""),
            ("memory.current", "5\n"),
            ("memory.events", "low 0\noom 4\noom_kill 3\n"),
            ("memory.swap.max", ""),
        ]);
        let memory = Memory::open(Version::Two, new.path()).expect("opened");
        assert_eq!(
            memory.events().expect("read"),
            Events {
                kills: 3,
                over: Some(4)
            }
        );
        memory.bound(None, u64::MAX).expect("written");
        let read = |name| fs::read_to_string(new.path().join(name)).expect("read");
        assert_eq!(
            (
                read("memory.max").as_str(),
                read("memory.swap.max").as_str()
            ),
            ("max", "0")
        );

        // A kernel that does not count what it kills is of no use.
        let silent = files(&[
            ("memory.limit_in_bytes", ""),
            ("memory.usage_in_bytes", "77\n"),
            ("memory.oom_control", "oom_kill_disable 0\n"),
        ]);
        assert!(Memory::open(Version::One, silent.path()).is_err());
    }
}
