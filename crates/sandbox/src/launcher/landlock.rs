//! Landlock, a second wall behind the mounts and the system-call filter: a program may change files below its `/tmp` and
//! write to devices, and nowhere else, may signal only what it has started itself, and may use no TCP port and no abstract
//! socket, whatever the mounts, the namespaces and the filter would let through.
//!
//! The run's first process makes the rules, because only then is there a `/tmp` to name; the program's process puts itself
//! under them. They are the numbers of `linux/landlock.h`.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

/// Name of the step that asks for it.
pub(crate) const STEP: &str = "ask for Landlock";

/// The first version that lets a file be moved between folders (Linux 5.19).
const LEAST: i64 = 2;

// Rights over files: everything that changes some.
const WRITE_FILE: u64 = 1 << 1;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_BLOCK: u64 = 1 << 11;
const MAKE_SYM: u64 = 1 << 12;
const REFER: u64 = 1 << 13;
/// From version 3 on.
const TRUNCATE: u64 = 1 << 14;
/// Binding and connecting; from version 4 on.
const TCP: u64 = 1 << 0 | 1 << 1;
/// Abstract sockets and signals; from version 6 on.
const SCOPES: u64 = 1 << 0 | 1 << 1;

const CREATE_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;

/// `struct landlock_ruleset_attr`.
#[repr(C)]
struct Attributes {
    files: u64,
    network: u64,
    scopes: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    folder: i32,
}

/// What the kernel's version of it can do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Landlock {
    version: i64,
}

impl Landlock {
    /// Asks the kernel.
    pub(super) fn find() -> io::Result<Self> {
        // SAFETY: without a structure, this call only tells the version.
        let version = unsafe {
            libc::syscall(
                libc::SYS_landlock_create_ruleset,
                std::ptr::null::<Attributes>(),
                0_usize,
                CREATE_VERSION,
            )
        };
        match version {
            -1 => Err(io::Error::last_os_error()),
            version if version < LEAST => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
            version => Ok(Self { version }),
        }
    }

    /// The rules for a program whose own folder is `tmp`.
    pub(super) fn rules(self, tmp: &Path) -> io::Result<OwnedFd> {
        let truncate = if self.version >= 3 { TRUNCATE } else { 0 };
        let change = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK;
        let change = change | MAKE_FIFO | MAKE_SYM | REFER | truncate;
        let attributes = Attributes {
            files: change | MAKE_CHAR | MAKE_BLOCK,
            network: if self.version >= 4 { TCP } else { 0 },
            scopes: if self.version >= 6 { SCOPES } else { 0 },
        };
        // SAFETY: the structure is as long as said and lives during the call; an older kernel takes a longer one as long
        // as what it does not know is zero.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_landlock_create_ruleset,
                &raw const attributes,
                size_of::<Attributes>(),
                0_u32,
            )
        };
        if answer == -1 {
            return Err(io::Error::last_os_error());
        }
        let number = i32::try_from(answer).map_err(io::Error::other)?;
        // SAFETY: the kernel has just made it, for us; it is closed by `exec`.
        let rules = unsafe { OwnedFd::from_raw_fd(number) };
        allow(&rules, tmp, change)?;
        allow(&rules, Path::new("/dev"), WRITE_FILE | truncate)?;
        Ok(rules)
    }
}

fn allow(rules: &OwnedFd, folder: &Path, allowed: u64) -> io::Result<()> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let folder = File::from(open(folder, flags, Mode::empty())?);
    let beneath = Beneath {
        allowed,
        folder: folder.as_raw_fd(),
    };
    // SAFETY: the structure is the one of this kind of rule and lives during the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            rules.as_raw_fd(),
            RULE_PATH_BENEATH,
            &raw const beneath,
            0_u32,
        )
    };
    if answer == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// A shell under the rules, which need no_new_privs, without any other wall.
    fn under(folder: &Path, text: &str) -> Option<String> {
        let landlock = match Landlock::find() {
            Ok(landlock) => landlock,
            Err(error) => {
                println!("skipped: {error}");
                return None;
            }
        };
        let rules = landlock.rules(folder).expect("made");
        let number = rules.as_raw_fd();
        let mut command = Command::new("sh");
        command.args(["-c", text]).current_dir(folder);
        let restrict = move || {
            nix::sys::prctl::set_no_new_privs()?;
            // SAFETY: plain numbers; concerns this child only.
            match unsafe { libc::syscall(libc::SYS_landlock_restrict_self, number, 0_u32) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        // SAFETY: makes two system calls.
        unsafe { command.pre_exec(restrict) };
        let output = command.output().expect("started");
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    #[test]
    fn only_the_own_folder_can_be_changed() {
        let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let there = other.path().join("there");
        fs::write(&there, "as it was").unwrap();
        let text = format!(
            "cd {own}; mkdir a b && echo x > a/f && mv a/f b/f && rm b/f && ln -s x l && echo y > g && : > g && echo own\n\
             echo z > /dev/null && : > /dev/zero && echo device\n\
             (echo z > {other}/new) 2>/dev/null || echo no\n(echo z > {other}/there) 2>/dev/null || echo no\n\
             (mkdir {other}/d) 2>/dev/null || echo no\n(rm -f {other}/there) 2>/dev/null || echo no\n\
             (mv {own}/g {other}/g) 2>/dev/null || echo no\n(ln {other}/there {own}/h) 2>/dev/null || echo no\n\
             (truncate -s 0 {other}/there) 2>/dev/null || echo no\n(mknod {own}/z c 1 5) 2>/dev/null || echo no\ncat {other}/there",
            own = own.path().display(),
            other = other.path().display()
        );
        if let Some(said) = under(own.path(), &text) {
            assert_eq!(said, format!("own\ndevice\n{}as it was", "no\n".repeat(8)));
            assert_eq!(fs::read_to_string(there).unwrap(), "as it was");
        }
    }

    #[test]
    fn only_the_own_processes_can_be_signalled() {
        let own = tempfile::tempdir().unwrap();
        let Ok(Landlock { version }) = Landlock::find() else {
            println!("skipped: no Landlock");
            return;
        };
        if version < 6 {
            println!("skipped: version {version} knows no signals");
            return;
        }
        let text = format!(
            "kill -0 {} 2>/dev/null || echo no\nsleep 100 & kill $! && echo own",
            std::process::id()
        );
        assert_eq!(under(own.path(), &text).as_deref(), Some("no\nown\n"));
    }
}
