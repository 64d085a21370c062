//! Names of groups, and removing groups: those of a slot when it is dropped, and those that a killed process has left
//! when the next one starts.
//!
//! A group is taken for a leftover only if its name is one of ours, the same user owns it, the process in its name
//! (number, time of start, pid namespace) is dead, and nobody holds the lock that its maker keeps as long as it lives.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PREFIX: &str = "rlef-sandbox";
/// The part of a name behind the maker's, for the group that the maker itself is in.
const OWN: &str = "self";
/// Groups beside ours that are searched, so that a system with very many costs no time.
const MOST_SIBLINGS: usize = 1000;
/// For processes that have been killed to be gone.
const PATIENCE: Duration = Duration::from_secs(1);

/// Who made a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Maker {
    /// Its pid namespace: a number means nothing in another.
    namespace: u64,
    process: u32,
    /// When it started, in ticks since the machine did.
    start: u64,
}

impl Maker {
    fn own() -> io::Result<Self> {
        let process = std::process::id();
        let (start, _) = started(process).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "/proc does not show this process")
        })?;
        Ok(Self {
            namespace: fs::metadata("/proc/self/ns/pid")?.ino(),
            process,
            start,
        })
    }

    fn name(&self, part: &str) -> String {
        let Self {
            namespace,
            process,
            start,
        } = self;
        format!("{PREFIX}-{namespace}-{process}-{start}-{part}")
    }

    /// The maker and the last part of the name of one of our groups.
    fn of(name: &str) -> Option<(Self, &str)> {
        let mut parts = name.strip_prefix(PREFIX)?.strip_prefix('-')?.split('-');
        let mut part = || parts.next();
        let maker = Self {
            namespace: part()?.parse().ok()?,
            process: part()?.parse().ok()?,
            start: part()?.parse().ok()?,
        };
        let last = part()?;
        // What is not written exactly as we do is not ours.
        let known = last == OWN || last.parse::<u64>().is_ok_and(|n| n.to_string() == last);
        (known && maker.name(last) == name).then_some((maker, last))
    }

    /// Whether it is known to be dead.
    fn dead(&self, namespace: u64) -> bool {
        self.namespace == namespace
            && started(self.process).is_none_or(|(start, dead)| start != self.start || dead)
    }
}

/// When a process started, and whether it is over but for being waited for.
fn started(process: u32) -> Option<(u64, bool)> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in brackets may hold anything, brackets too. proc(5) counts from 1 and the first here is the third there.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let dead = matches!(*fields.first()?, "Z" | "X");
    Some((fields.get(22 - 3)?.parse().ok()?, dead))
}

/// A new name for the group of a slot.
pub(super) fn slot_name() -> io::Result<String> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Ok(Maker::own()?.name(&number.to_string()))
}

/// The name of the group for this process itself.
pub(super) fn own_name() -> io::Result<String> {
    Ok(Maker::own()?.name(OWN))
}

/// The folder to make groups in for a process in this group: the group itself, but for one that a process of ours
/// moved into so that the group above it be empty.
pub(super) fn home(group: &Path) -> &Path {
    let name = group.file_name().and_then(|n| n.to_str());
    match (name.and_then(Maker::of), group.parent()) {
        (Some((_, OWN)), Some(parent)) => parent,
        _ => group,
    }
}

/// Marks a group as in use for as long as the file is open.
pub(super) fn lock(group: &Path) -> io::Result<File> {
    let folder = File::open(group)?;
    folder.try_lock().map_err(io::Error::from)?;
    Ok(folder)
}

/// Removes what dead processes of this user have left in the home of `group` and in the groups beside it (where the
/// groups of earlier sessions are).
pub(super) fn sweep(group: &Path) {
    let home = home(group);
    let Ok(own) = Maker::own() else { return };
    clear(home, own.namespace);
    let is_group = |folder: &Path| folder.join("cgroup.procs").exists();
    if let Some(parent) = home.parent().filter(|p| is_group(p)) {
        for sibling in folders(parent).take(MOST_SIBLINGS) {
            if sibling != home {
                clear(&sibling, own.namespace);
            }
        }
    }
}

fn folders(parent: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries
        .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
        .map(|e| e.path())
}

fn clear(parent: &Path, namespace: u64) {
    let user = nix::unistd::geteuid().as_raw();
    for folder in folders(parent) {
        let name = folder.file_name().and_then(|n| n.to_str());
        let Some((maker, part)) = name.and_then(Maker::of) else {
            continue;
        };
        let ours = fs::metadata(&folder).is_ok_and(|m| m.uid() == user);
        if !ours || !maker.dead(namespace) {
            continue;
        }
        if part == OWN {
            // Others that it had started may live on in it.
            let _ = fs::remove_dir(&folder);
        } else if let Ok(_held) = lock(&folder) {
            remove(&folder);
        }
    }
}

/// Removes the group of a slot whose launcher is dead, waiting for what is dying in it.
pub(super) fn remove(group: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = fs::remove_dir(group) {
        if error.raw_os_error() != Some(libc::EBUSY) || Instant::now() > deadline {
            return; // gone already, or for the next sweep
        }
        // Where there is no such file, everything in it dies all the same: it was tied to the launcher's life.
        let _ = kill(group);
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn kill(group: &Path) -> io::Result<()> {
    // Not `fs::write`, which would try to make the file.
    use std::io::Write;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .open(group.join("cgroup.kill"))?;
    file.write_all(b"1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let own = Maker::own().expect("known");
        for part in ["0", "17", OWN] {
            assert_eq!(Maker::of(&own.name(part)), Some((own, part)));
        }
        assert_ne!(slot_name().expect("named"), slot_name().expect("named"));
        for other in [
            "",
            "rlef-sandbox",
            "rlef-sandbox-1-2-3",
            "rlef-sandbox-1-2-3-x",
            "rlef-sandbox-1-2-3-4-5",
            "rlef-sandbox-1-02-3-4",
            "rlef-sandbox-1-2-3-04",
            "rlef-sandbox-1-+2-3-4",
            "a-rlef-sandbox-1-2-3-4",
            "rlef-sandbox-1-2-3-self2",
            "rlef-sandbox--2-3-4",
        ] {
            assert_eq!(Maker::of(other), None, "{other}");
        }
    }

    #[test]
    fn only_a_group_for_the_process_itself_has_its_home_above() {
        let own = Path::new("/a/b").join(own_name().expect("named"));
        assert_eq!(home(&own), Path::new("/a/b"));
        let slot = Path::new("/a/b").join(slot_name().expect("named"));
        assert_eq!(home(&slot), slot);
        assert_eq!(home(Path::new("/")), Path::new("/"));
    }

    #[test]
    fn only_the_dead_are_dead() {
        let own = Maker::own().expect("known");
        assert!(!own.dead(own.namespace));
        // The same number, but another process; and nothing is known of another namespace.
        let earlier = Maker {
            start: own.start + 1,
            ..own
        };
        assert!(earlier.dead(own.namespace) && !earlier.dead(own.namespace + 1));
        let mut child = std::process::Command::new("true").spawn().expect("started");
        let process = child.id();
        let start = started(process).map(|s| s.0);
        let dead = |process| {
            start.is_some_and(|start| {
                Maker {
                    process,
                    start,
                    ..own
                }
                .dead(own.namespace)
            })
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        // It is over, though nobody has waited for it.
        while !dead(process) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(dead(process));
        child.wait().expect("waited");
        assert!(dead(process));
    }

    #[test]
    fn leftovers_are_removed_and_nothing_else() {
        let place = tempfile::tempdir().expect("a folder");
        let own = Maker::own().expect("known");
        let dead = Maker {
            start: own.start + 1,
            ..own
        };
        let foreign = Maker {
            namespace: own.namespace + 1,
            ..dead
        };
        let (left, stays) = (
            [dead.name("0"), dead.name("1"), dead.name(OWN)],
            [
                own.name("0"),
                own.name(OWN),
                foreign.name("0"),
                dead.name("2"),
                dead.name("3"),
                "rlef-sandbox-1-2-3-x".into(),
                "user.slice".into(),
            ],
        );
        for name in left.iter().chain(&stays) {
            fs::create_dir(place.path().join(name)).expect("made");
        }
        // One that is still held, and one that is not empty.
        let _held = lock(&place.path().join(dead.name("2"))).expect("locked");
        fs::create_dir(place.path().join(dead.name("3")).join("x")).expect("made");
        clear(place.path(), own.namespace);
        let there = |name: &String| place.path().join(name).exists();
        assert!(!left.iter().any(there));
        assert!(stays.iter().all(there));
    }
}
