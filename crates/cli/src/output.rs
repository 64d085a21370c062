//! Where results go: found to be writable before the work, and replaced only when the new content is whole.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{AccessFlags, access};

/// Checks that `bytes` could be written below `dir`, which need not be there yet. Writes nothing.
///
/// # Errors
/// A file in the way, no permission, a read-only or full file system.
pub fn room(dir: &Path, bytes: u64) -> Result<()> {
    let whole = std::path::absolute(dir).context("the working folder is gone")?;
    let mut there = whole.as_path();
    while !there.exists() {
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
    let told = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let left = told.lines().find_map(|line| {
        let kib = line.strip_prefix("MemAvailable:")?.trim();
        kib.strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    match left.map(|kib| kib << 10) {
        Some(left) if left < bytes => bail!(
            "{what} needs at least {} GiB of memory, but {} GiB are left",
            bytes.div_ceil(1 << 30),
            left >> 30
        ),
        _ => Ok(()),
    }
}

/// A file that is written beside its name and takes it when it is whole: what was there before stays until then.
pub struct Draft {
    name: PathBuf,
    /// Absent where the name is a device or a pipe, which is written directly.
    beside: Option<PathBuf>,
    file: BufWriter<File>,
}

impl Draft {
    /// Checks that a draft for `name` could be opened. Writes nothing.
    ///
    /// # Errors
    /// As [`Draft::open`], as far as it can be known.
    pub fn check(name: &Path) -> Result<()> {
        if name.is_dir() {
            bail!("{} is a folder; give the name of a file", name.display());
        }
        if name.exists() {
            access(name, AccessFlags::W_OK)
                .with_context(|| format!("cannot write {}", name.display()))?;
            if !name.is_file() {
                return Ok(());
            }
        }
        let folder = folder(name);
        if !folder.is_dir() {
            bail!(
                "cannot write {}: there is no folder {}",
                name.display(),
                folder.display()
            );
        }
        room(folder, 1)
    }

    /// Begins.
    ///
    /// # Errors
    /// A name that cannot be written.
    pub fn open(name: &Path) -> Result<Self> {
        Self::check(name)?;
        let beside = if name.exists() && !name.is_file() {
            None
        } else {
            let mut part = name.as_os_str().to_owned();
            part.push(format!(".{}.part", std::process::id()));
            Some(PathBuf::from(part))
        };
        let path = beside.as_deref().unwrap_or(name);
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self {
            name: name.to_owned(),
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

fn folder(name: &Path) -> &Path {
    match name.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
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
