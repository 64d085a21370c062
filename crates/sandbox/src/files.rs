//! Files that a run finds in its private /tmp. They are copies: what a run changes is gone when it ends.
//!
//! They travel as a row of records in a sealed memory file (see `launcher/artifact.rs`), and only a run that is given
//! them has them. Runs of a [`Candidate`](crate::Candidate) are never given any.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::Fault;
use crate::slot::seal;

/// Longest path of a file.
const LONGEST_PATH: usize = 1024;
/// What a file or a folder takes at least, and is rounded up to.
const PAGE: u64 = 4096;

/// Files and folders, by relative paths.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) file: File,
    /// What they take in /tmp.
    pub(crate) bytes: u64,
}

impl Files {
    /// A path that ends in a slash is a folder.
    ///
    /// # Errors
    /// [`Fault::Files`] for a path that leads elsewhere, or where one file lies where another's folder must be.
    pub(crate) fn new<'f>(
        files: impl IntoIterator<Item = (&'f str, &'f [u8])>,
    ) -> Result<Self, Fault> {
        let files: Vec<(&str, &[u8])> = files.into_iter().collect();
        check(&files)?;
        let system = |error| Fault::system("making a memory file")(error);
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let file = memfd_create("files", flags).map_err(Fault::errno("making a memory file"))?;
        let file = File::from(file);
        let mut bytes = 0_u64;
        let write = |out: &mut BufWriter<&File>, path: &str, contents: &[u8]| -> io::Result<()> {
            let lengths = [path.len() as u64, contents.len() as u64];
            out.write_all(&lengths.map(u64::to_le_bytes).concat())?;
            out.write_all(path.as_bytes())?;
            out.write_all(contents)
        };
        let mut out = BufWriter::new(&file);
        for (path, contents) in files {
            write(&mut out, path, contents).map_err(system)?;
            let folders = path.matches('/').count() as u64;
            let whole = (contents.len() as u64).next_multiple_of(PAGE);
            bytes = bytes.saturating_add(whole + PAGE * (1 + folders));
        }
        out.flush().map_err(system)?;
        drop(out);
        seal(&file).map_err(system)?;
        Ok(Self { file, bytes })
    }
}

fn check(files: &[(&str, &[u8])]) -> Result<(), Fault> {
    let mut paths = std::collections::BTreeSet::new();
    for (path, _) in files {
        let wrong = |what: &str| Fault::Files {
            what: format!("`{path}` {what}"),
        };
        let plain = path.strip_suffix('/').unwrap_or(path);
        let bad =
            |part: &str| part.is_empty() || part == "." || part == ".." || part.contains('\0');
        if path.len() > LONGEST_PATH || plain.split('/').any(bad) {
            return Err(wrong("is no relative path without `..`"));
        }
        if !paths.insert(plain) {
            return Err(wrong("is there twice"));
        }
    }
    for (path, _) in files.iter().filter(|(path, _)| !path.ends_with('/')) {
        let below = format!("{path}/");
        if files.iter().any(|(other, _)| other.starts_with(&below)) {
            return Err(Fault::Files {
                what: format!("`{path}` is a file and a folder"),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_elsewhere_or_meet_are_refused() {
        let one = |path: &str| Files::new([(path, &b"x"[..])]);
        for wrong in ["", "/", "/x", "a/../x", "./x", "a//x", "x\0"] {
            assert!(matches!(one(wrong), Err(Fault::Files { .. })), "{wrong:?}");
        }
        let two = |a: &str, b: &str| Files::new([(a, &b""[..]), (b, &b""[..])]);
        for (a, b) in [("x", "x"), ("x", "x/"), ("x", "x/y"), ("x/y", "x")] {
            assert!(matches!(two(a, b), Err(Fault::Files { .. })), "{a} {b}");
        }
        assert!(two("x/", "x/y").is_ok());
        assert!(one("a/b.txt").is_ok_and(|files| files.bytes >= 3 * PAGE));
    }
}
