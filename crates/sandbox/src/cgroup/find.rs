//! Which control groups this process is in and where their folders are: from the text of `/proc/self/mountinfo` and
//! `/proc/self/cgroup` alone.

use std::path::{Component, Path, PathBuf};

use super::Ability;

/// Version of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

impl Version {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::One => "version 1",
            Self::Two => "version 2",
        }
    }
}

/// A hierarchy that is mounted where this process can see its own group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub version: Version,
    /// Version 1 only; in version 2 the folder tells.
    pub controllers: Vec<String>,
    /// The folder of the group that this process is in.
    pub folder: PathBuf,
}

impl Hierarchy {
    /// Whether it is worth a try.
    pub(super) fn may_have(&self, ability: Ability) -> bool {
        let controller = match (self.version, ability) {
            (Version::Two, _) => return true,
            (Version::One, Ability::Memory) => "memory",
            (Version::One, Ability::Tasks) => "pids",
            (Version::One, Ability::Cpu) => "cpuacct",
            (Version::One, Ability::Kill) => return false,
        };
        self.controllers.iter().any(|c| c == controller)
    }
}

/// Version 1 first: where one of its hierarchies has a controller, version 2 cannot have it.
pub(super) fn hierarchies(mountinfo: &str, cgroup: &str) -> Vec<Hierarchy> {
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(mount).collect();
    let mut found: Vec<Hierarchy> = cgroup
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, names, path) = (parts.next()?, parts.next()?, parts.next()?);
            let (version, controllers) = if number == "0" && names.is_empty() {
                (Version::Two, Vec::new())
            } else {
                let names = names.split(',').filter(|n| !n.contains('='));
                (Version::One, names.map(str::to_owned).collect::<Vec<_>>())
            };
            // One without controllers only names groups.
            if version == Version::One && controllers.iter().all(String::is_empty) {
                return None;
            }
            let same = |mount: &&Mount| {
                mount.version == version && controllers.iter().all(|c| mount.options.contains(c))
            };
            let mut folders: Vec<_> = mounts
                .iter()
                .filter(same)
                .filter_map(|m| Some((m.read_only, m.folder(Path::new(path))?)))
                .collect();
            // Where it is mounted twice, the writable one.
            folders.sort_by_key(|(read_only, _)| *read_only);
            let (_, folder) = folders.into_iter().next()?;
            Some(Hierarchy {
                version,
                controllers,
                folder,
            })
        })
        .collect();
    found.sort_by_key(|h| h.version == Version::Two);
    found
}

struct Mount {
    version: Version,
    root: PathBuf,
    point: PathBuf,
    read_only: bool,
    options: Vec<String>,
}

impl Mount {
    /// Where the group `path` is, if it is below what is mounted here.
    fn folder(&self, path: &Path) -> Option<PathBuf> {
        // From within a namespace, what lies outside of it is shown with these.
        let outside = |p: &Path| p.components().any(|c| c == Component::ParentDir);
        if outside(path) || outside(&self.root) {
            return None;
        }
        let rest = path.strip_prefix(&self.root).ok()?;
        // Joining an empty rest would leave a trailing slash.
        Some(self.point.join(rest).components().collect())
    }
}

fn mount(line: &str) -> Option<Mount> {
    let (place, system) = line.split_once(" - ")?;
    let place: Vec<&str> = place.split(' ').collect();
    let system: Vec<&str> = system.split(' ').collect();
    let version = match *system.first()? {
        "cgroup" => Version::One,
        "cgroup2" => Version::Two,
        _ => return None,
    };
    let options = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let own = options(place.get(5)?);
    let all = options(system.get(2)?);
    Some(Mount {
        version,
        root: PathBuf::from(unescape(place.get(3)?)),
        point: PathBuf::from(unescape(place.get(4)?)),
        read_only: own.iter().chain(&all).any(|o| o == "ro"),
        options: all,
    })
}

/// Blanks and the like are written as a backslash and three octal digits.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..3).map(|d| u8::from_str_radix(d, 8)) {
            Some(Ok(byte)) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[3..]);
            }
            _ => {
                bytes.push(b'\\');
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(mountinfo: &str, cgroup: &str) -> Vec<(String, String)> {
        hierarchies(mountinfo, cgroup)
            .iter()
            .map(|h| (h.controllers.join(","), h.folder.display().to_string()))
            .collect()
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(a, b)| ((*a).into(), (*b).into()))
            .collect()
    }

    #[test]
    fn version_2_alone() {
        let mounts = "22 1 0:5 / / rw - ext4 /dev/vda rw\n\
            35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n";
        let group = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope\n";
        let wanted =
            "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope";
        assert_eq!(folders(mounts, group), owned(&[("", wanted)]));
        assert_eq!(folders(mounts, "0::/\n"), owned(&[("", "/sys/fs/cgroup")]));
    }

    #[test]
    fn version_1_and_mixed() {
        let mounts = "\
            31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n\
            32 31 0:29 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw,nsdelegate\n\
            33 31 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n\
            34 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
            35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
            36 31 0:33 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n";
        let group = "12:pids:/user.slice\n7:cpu,cpuacct:/\n4:memory:/user.slice/a b\n1:name=systemd:/x\n0::/x\n";
        let wanted = [
            ("pids", "/sys/fs/cgroup/pids/user.slice"),
            ("cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct"),
            ("memory", "/sys/fs/cgroup/memory/user.slice/a b"),
            ("", "/sys/fs/cgroup/unified/x"),
        ];
        assert_eq!(folders(mounts, group), owned(&wanted));
        // Not mounted, or not the one asked for.
        assert_eq!(folders(mounts, "3:freezer:/\n2:cpuset,memory:/\n"), []);
    }

    #[test]
    fn containers() {
        // The host's hierarchy with only the container's part of it mounted, read-only; and a second, writable mount.
        let mounts = "\
            900 1 0:32 /docker/abc /sys/fs/cgroup/memory ro,nosuid - cgroup memory rw,memory\n\
            901 1 0:33 /docker/abc /sys/fs/cgroup/pids ro,nosuid - cgroup pids rw,pids\n\
            902 1 0:33 /docker /mnt/with\\040blank rw - cgroup pids rw,pids\n";
        let group = "4:memory:/docker/abc\n3:pids:/docker/abc/inner\n";
        let wanted = [
            ("memory", "/sys/fs/cgroup/memory"),
            ("pids", "/mnt/with blank/abc/inner"),
        ];
        assert_eq!(folders(mounts, group), owned(&wanted));
        // A namespace of its own, with a mount from before it or a group moved out of it.
        let outer = "35 24 0:30 /../../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(folders(outer, "0::/\n"), []);
        let own = "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(folders(own, "0::/../other\n"), []);
        // A part is mounted in which this process is not.
        let other = "35 24 0:30 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(folders(other, "0::/docker/abcd\n"), []);
    }

    #[test]
    fn nonsense_finds_nothing() {
        for (mounts, group) in [("", ""), ("- - -\n\\9", "::\n0\n"), ("a - cgroup2", "0::/")] {
            assert_eq!(folders(mounts, group), []);
        }
        assert_eq!(unescape("a\\040b\\134\\1"), "a b\\\\1");
    }
}
