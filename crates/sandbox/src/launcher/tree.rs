//! Building the private root and, for each run, what is fresh in it: /proc and /tmp.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::pivot_root;

use super::confine::step;
use crate::root::RootPlan;
use crate::wire::Trouble;

/// Devices of the host that are visible; all three are harmless to anybody.
const DEVICES: [&str; 3] = ["null", "zero", "urandom"];

/// Links in /dev. /dev/shm leads to the private /tmp, which is where semaphores of `multiprocessing` then live. Without
/// /dev/random a JVM gathers chance by threads of its own, which takes seconds; the kernel's two sources are the same once
/// it is up, and only urandom is never waited for.
const DEVICE_LINKS: [(&str, &str); 6] = [
    ("random", "urandom"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("shm", "/tmp"),
];

/// Where the old root hangs while the new one is built.
const OLD: &str = "/old";
/// What is bound below /tmp has to wait there for the run's own /tmp.
const LATE: &str = "/late";
/// Covers hidden folders.
const EMPTY: &str = "/empty";

/// The root holds mount points, links and one small file; a page each is plenty.
const ROOT_OPTIONS: &str = "size=4m,nr_inodes=4096,mode=0755";
/// Files that a run may make in its /tmp.
const TMP_INODES: u32 = 4096;

/// Bound paths below /tmp and where they wait.
pub(super) struct LateBinds {
    binds: Vec<(PathBuf, PathBuf, bool)>,
    links: Vec<(PathBuf, PathBuf)>,
}

impl LateBinds {
    pub(super) fn of(plan: &RootPlan) -> Self {
        let late = |path: &&PathBuf| path.starts_with("/tmp");
        let binds = plan.bound.iter().filter(|(path, _)| late(path));
        Self {
            binds: binds
                .enumerate()
                .map(|(i, (p, f))| (Path::new(LATE).join(i.to_string()), p.clone(), *f))
                .collect(),
            links: plan
                .links
                .iter()
                .filter(|(p, _)| late(p))
                .map(|(p, t)| (p.clone(), t.clone()))
                .collect(),
        }
    }

    /// Where a path is when the root has been built.
    fn place(&self, path: &Path) -> PathBuf {
        let waiting = self
            .binds
            .iter()
            .find_map(|(at, p, _)| path.strip_prefix(p).ok().map(|rest| at.join(rest)));
        // Joining an empty rest would leave a trailing slash.
        waiting.map_or_else(|| path.to_path_buf(), |p| p.components().collect())
    }
}

/// Replaces the root of this mount namespace by the planned one.
pub(super) fn build(plan: &RootPlan) -> Result<(), Trouble> {
    let none = None::<&str>;
    step(
        "cut mounts off from the host's",
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none),
    )?;
    // Any folder will do as the mount point: pivot_root uncovers it again at once.
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    step(
        "mount the private root",
        mount(
            Some("sandbox"),
            "/proc",
            Some("tmpfs"),
            flags,
            Some(ROOT_OPTIONS),
        ),
    )?;
    step("make /old", fs::create_dir("/proc/old"))?;
    step(
        "change to the private root",
        pivot_root("/proc", "/proc/old"),
    )?;
    step("go to the private root", std::env::set_current_dir("/"))?;
    fill(plan)?;
    step("leave the host's root", umount2(OLD, MntFlags::MNT_DETACH))?;
    step("remove /old", fs::remove_dir(OLD))?;
    // Not recursive: the launcher still has to write to /proc; every run covers it.
    step(
        "make the private root read-only",
        restrict(
            "/",
            libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID,
            false,
        ),
    )
}

fn fill(plan: &RootPlan) -> Result<(), Trouble> {
    let late = LateBinds::of(plan);
    for folder in ["/proc", "/tmp", "/dev", LATE, EMPTY] {
        step(&format!("make {folder}"), fs::create_dir(folder))?;
    }
    for folder in plan.folders.iter().filter(|f| !f.starts_with("/tmp")) {
        step(
            &format!("make {}", folder.display()),
            fs::create_dir_all(folder),
        )?;
    }
    for (path, target) in plan.links.iter().filter(|(p, _)| !p.starts_with("/tmp")) {
        step(&format!("link {}", path.display()), symlink(target, path))?;
    }
    for (path, contents) in &plan.files {
        step(
            &format!("write {}", path.display()),
            fs::write(path, contents),
        )?;
        step(
            &format!("open {}", path.display()),
            fs::set_permissions(path, fs::Permissions::from_mode(0o444)),
        )?;
    }
    let bars = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    for (path, folder) in &plan.bound {
        let target = late.place(path);
        bind(&in_old(path), &target, *folder)?;
        step(
            &format!("make {} read-only", target.display()),
            restrict(&target, bars, true),
        )?;
    }
    for (path, host) in &plan.placed {
        let source = in_old(host);
        bind(&source, path, source.is_dir())?;
        step(
            &format!("make {} read-only", path.display()),
            restrict(path, bars, true),
        )?;
    }
    for path in &plan.hidden {
        let target = late.place(path);
        bind(Path::new(EMPTY), &target, true)?;
        step(
            &format!("make {} read-only", target.display()),
            restrict(&target, bars, false),
        )?;
    }
    for device in DEVICES {
        let path = Path::new("/dev").join(device);
        bind(&in_old(&path), &path, false)?;
        step(
            "restrict a device",
            restrict(
                &path,
                // Read-only concerns the node, whose times anybody could set otherwise, not what is written to it.
                libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC,
                false,
            ),
        )?;
    }
    for (name, target) in DEVICE_LINKS {
        step(
            &format!("link /dev/{name}"),
            symlink(target, Path::new("/dev").join(name)),
        )?;
    }
    // The host's /proc, for the launcher itself: a new one may be mounted in a run only where one is visible.
    // Recursive, because parts of it may be covered in a way that must not be undone.
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    step(
        "bind /proc",
        mount(
            Some("/old/proc"),
            "/proc",
            None::<&str>,
            flags,
            None::<&str>,
        ),
    )?;
    let bars = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;
    step("restrict /proc", restrict("/proc", bars, false))
}

fn in_old(path: &Path) -> PathBuf {
    Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path))
}

/// Binds one file or folder, without what is mounted below it: a recursive bind could bring in something writable.
fn bind(source: &Path, target: &Path, folder: bool) -> Result<(), Trouble> {
    let name = format!("bind {}", target.display());
    // A hidden folder exists already; its file system is read-only.
    if !target.exists() {
        step(
            &name,
            if folder {
                fs::create_dir(target)
            } else {
                fs::write(target, "")
            },
        )?;
    }
    step(
        &name,
        mount(
            Some(source),
            target,
            None::<&str>,
            MsFlags::MS_BIND,
            None::<&str>,
        ),
    )
}

/// Adds restrictions to a mount (Linux 5.12).
fn restrict(path: impl AsRef<Path>, bars: u64, recursive: bool) -> io::Result<()> {
    let path = std::ffi::CString::new(path.as_ref().as_os_str().as_encoded_bytes())?;
    let attributes = libc::mount_attr {
        attr_set: bars,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path ends with a NUL, the structure is as long as said, and both outlive the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// What each run has for itself: its own view of processes and its own /tmp of `tmp_bytes`.
pub(super) fn refresh(late: &LateBinds, tmp_bytes: u64) -> Result<(), Trouble> {
    let bars = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let only_processes = Some("subset=pid");
    step(
        "mount a private /proc",
        mount(
            Some("proc"),
            "/proc",
            Some("proc"),
            bars | MsFlags::MS_RDONLY,
            only_processes,
        ),
    )?;
    let options = format!("size={tmp_bytes},nr_inodes={TMP_INODES},mode=0700");
    step(
        "mount a private /tmp",
        mount(
            Some("tmp"),
            "/tmp",
            Some("tmpfs"),
            bars,
            Some(options.as_str()),
        ),
    )?;
    for (at, path, folder) in &late.binds {
        if let Some(parent) = path.parent() {
            step(
                &format!("make {}", parent.display()),
                fs::create_dir_all(parent),
            )?;
        }
        let name = format!("bind {}", path.display());
        step(
            &name,
            if *folder {
                fs::create_dir(path)
            } else {
                fs::write(path, "")
            },
        )?;
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        step(
            &name,
            mount(Some(at), path, None::<&str>, flags, None::<&str>),
        )?;
    }
    for (path, target) in &late.links {
        if let Some(parent) = path.parent() {
            step(
                &format!("make {}", parent.display()),
                fs::create_dir_all(parent),
            )?;
        }
        step(&format!("link {}", path.display()), symlink(target, path))?;
    }
    Ok(())
}
