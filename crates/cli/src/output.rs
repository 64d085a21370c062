//! Where results go: found to be writable before the work, and replaced only when the new content is whole.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{AccessFlags, access};

/// What a run writes at least, folders included.
const FILES: u64 = 24;

/// Longest name of a file, in bytes, as all file systems in use have it.
const LONGEST_NAME: usize = 255;

fn short_enough(name: &OsStr) -> Result<()> {
    if name.len() > LONGEST_NAME {
        bail!(
            "the name {:?} has {} bytes, more than the {LONGEST_NAME} that a file's name may have",
            name,
            name.len()
        );
    }
    Ok(())
}

/// Checks that `bytes` could be written below `dir`, which need not be there yet. Writes nothing.
///
/// # Errors
/// A file in the way, no permission, a read-only or full file system.
pub fn room(dir: &Path, bytes: u64) -> Result<()> {
    let whole = std::path::absolute(dir).context("the working folder is gone")?;
    let mut there = whole.as_path();
    while !there.exists() {
        if let Some(name) = there.file_name() {
            short_enough(name)?;
        }
        // A link that leads nowhere is not there but would be in the way.
        if there.is_symlink() {
            bail!("{} is a link that leads nowhere", there.display());
        }
        there = there.parent().unwrap_or(Path::new("/"));
    }
    if !there.is_dir() {
        bail!("{} is a file, not a folder", there.display());
    }
    access(there, AccessFlags::W_OK | AccessFlags::X_OK)
        .with_context(|| format!("cannot write to {}", there.display()))?;
    let Ok(system) = statvfs(there) else {
        return Ok(());
    };
    if system.flags().contains(FsFlags::ST_RDONLY) {
        bail!("{} is on a read-only file system", there.display());
    }
    // Some file systems do not count files, and say that they have none.
    if system.files() > 0 && system.files_available() < FILES {
        bail!(
            "{} has room for {} more files, and {FILES} are needed at least; give another folder, or make room",
            there.display(),
            system.files_available()
        );
    }
    let free = system
        .blocks_available()
        .saturating_mul(system.fragment_size());
    if free < bytes {
        bail!(
            "{} has {} MiB left, but {} MiB are to be written; give another folder, or make room",
            there.display(),
            free >> 20,
            bytes.div_ceil(1 << 20)
        );
    }
    Ok(())
}

/// Checks that `bytes` of memory can be had now; `what` needs them. Nothing is said where the system does not tell.
///
/// # Errors
/// Too little is left.
pub fn memory(bytes: u64, what: &str) -> Result<()> {
    match memory_left() {
        Some(left) if left < bytes => bail!(
            "{what} needs at least {} GiB of memory, but {} GiB are left",
            bytes.div_ceil(1 << 30),
            left >> 30
        ),
        _ => Ok(()),
    }
}

/// Memory that can be had now, in bytes, where the system tells.
pub fn memory_left() -> Option<u64> {
    let told = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    told.lines()
        .find_map(|line| {
            let kib = line.strip_prefix("MemAvailable:")?.trim();
            kib.strip_suffix("kB")?.trim().parse::<u64>().ok()
        })
        .map(|kib| kib << 10)
}

/// A file that is written beside its name and takes it when it is whole: what was there before stays until then.
pub struct Draft {
    name: PathBuf,
    /// Absent where the name is a device or a pipe, which is written directly.
    beside: Option<PathBuf>,
    file: BufWriter<File>,
}

/// Where a draft goes.
enum Place {
    /// To a device or a pipe.
    Direct,
    /// Beside this file, which a link may have led to.
    Beside { file: PathBuf, part: PathBuf },
}

impl Draft {
    /// Checks that a draft for `name` could be opened. Writes nothing.
    ///
    /// # Errors
    /// As [`Draft::open`], as far as it can be known.
    pub fn check(name: &Path) -> Result<()> {
        Self::place(name).map(|_| ())
    }

    fn place(name: &Path) -> Result<Place> {
        let wrong = || format!("cannot write {}", name.display());
        if name.is_dir() || name.as_os_str().as_encoded_bytes().ends_with(b"/") {
            bail!("{} is a folder; give the name of a file", name.display());
        }
        let mut file = name.to_owned();
        if name.exists() {
            access(name, AccessFlags::W_OK).with_context(wrong)?;
            // Through links: also /dev/stdout is one.
            file = name.canonicalize().with_context(wrong)?;
            let system = ["/dev", "/proc"].iter().any(|f| file.starts_with(f));
            if system || !file.is_file() || name.starts_with("/proc") || name.starts_with("/dev") {
                return Ok(Place::Direct);
            }
        } else if name.is_symlink() {
            bail!("{} is a link that leads nowhere", name.display());
        }
        let folder = match file.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        if !folder.is_dir() {
            bail!("{}: there is no folder {}", wrong(), folder.display());
        }
        room(&folder, 1)?;
        let mut part = file.file_name().map(OsStr::to_owned).unwrap_or_default();
        part.push(format!(".{}.part", std::process::id()));
        short_enough(&part).with_context(wrong)?;
        let part = folder.join(part);
        Ok(Place::Beside { file, part })
    }

    /// Begins.
    ///
    /// # Errors
    /// A name that cannot be written.
    pub fn open(name: &Path) -> Result<Self> {
        let (name, beside, file) = match Self::place(name)? {
            // Not from its beginning: it may be the file that stdout is, too.
            Place::Direct => (
                name.to_owned(),
                None,
                File::options().append(true).open(name),
            ),
            Place::Beside { file, part } => {
                let made = File::create(&part);
                (file, Some(part), made)
            }
        };
        let file = file.with_context(|| format!("cannot write {}", name.display()))?;
        Ok(Self {
            name,
            beside,
            file: BufWriter::new(file),
        })
    }

    /// Writes a line.
    ///
    /// # Errors
    /// As the file system has it.
    pub fn line(&mut self, line: impl std::fmt::Display) -> Result<()> {
        writeln!(self.file, "{line}")
            .with_context(|| format!("cannot write {}", self.name.display()))
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// As the file system has it; what was there before is then still there.
    pub fn finish(mut self) -> Result<()> {
        let done = self.file.flush().and_then(|()| match self.beside.take() {
            None => Ok(()),
            Some(part) => fs::rename(&part, &self.name).inspect_err(|_| {
                let _ = fs::remove_file(&part);
            }),
        });
        done.with_context(|| format!("cannot write {}", self.name.display()))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(part) = &self.beside {
            // Nothing is lost with a draft that was given up.
            let _ = fs::remove_file(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays_until_the_new_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join("a.jsonl");
        fs::write(&name, "old").unwrap();
        let mut draft = Draft::open(&name).unwrap();
        draft.line("new").unwrap();
        assert_eq!(fs::read_to_string(&name).unwrap(), "old");
        drop(draft);
        assert_eq!(fs::read_to_string(&name).unwrap(), "old");
        let mut draft = Draft::open(&name).unwrap();
        draft.line("new").unwrap();
        draft.finish().unwrap();
        assert_eq!(fs::read_to_string(&name).unwrap(), "new\n");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn devices_are_written_directly() {
        let mut draft = Draft::open(Path::new("/dev/null")).unwrap();
        draft.line("x").unwrap();
        draft.finish().unwrap();
        let mut full = Draft::open(Path::new("/dev/full")).unwrap();
        full.line("x").unwrap();
        assert!(full.finish().is_err());
    }

    #[test]
    fn a_link_stays_and_what_it_leads_to_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut draft = Draft::open(&link).unwrap();
        draft.line("new").unwrap();
        draft.finish().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new\n");
        // As /dev/stdout is one: a link to a device.
        let device = dir.path().join("device");
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        Draft::open(&device).unwrap().finish().unwrap();
        assert!(device.is_symlink());
    }

    #[test]
    fn names_that_no_file_can_have_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let long = |n| dir.path().join("a".repeat(n));
        assert!(Draft::check(&long(230)).is_ok());
        // With what a draft adds to it.
        for name in [long(252), long(300), dir.path().join("new/")] {
            assert!(Draft::check(&name).is_err(), "{}", name.display());
        }
        assert!(room(&long(255), 1).is_ok());
        assert!(room(&long(256).join("below"), 1).is_err());
    }

    #[test]
    fn what_cannot_be_written_is_said_and_nothing_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let said = |r: Result<()>| crate::text::error(&r.unwrap_err());
        assert!(said(room(&file.join("below"), 1)).contains("is a file"));
        assert!(said(room(&dir.path().join("new/below"), u64::MAX)).contains("MiB left"));
        assert!(said(room(Path::new("/proc/new"), 1)).contains("/proc"));
        assert!(said(Draft::check(&dir.path().join("none/a"))).contains("no folder"));
        assert!(said(Draft::check(dir.path())).contains("is a folder"));
        room(&dir.path().join("new/below"), 1).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
