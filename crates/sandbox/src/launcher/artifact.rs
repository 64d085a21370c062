//! What a compiler has made, on its way out of a private /tmp and into others.
//!
//! Taken when every process of the run is dead, by its first process, so that nothing can change meanwhile; links are
//! never followed and only plain files count. Several files travel as a row of records: length of the name and of the
//! contents (eight bytes each, little end first), name, contents. Both ways are bounded by what the supervisor allows.
//! What comes out of a compiler that read hostile text is as hostile as the text: it goes into runs of that program
//! only, and here it is bytes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use crate::wire::{Form, Product, ProductPlan};

/// Folders within folders; packages of a program in one file have a level or two.
const DEEPEST: u32 = 8;
/// Length of a record's head: two numbers.
const HEAD: usize = 16;
/// Longest path in a record.
const LONGEST_NAME: u64 = 4096;

/// Copies the product into `file`. Whatever it cannot take is the compiler's failure to make it.
pub(super) fn take(plan: &ProductPlan, file: OwnedFd) -> Product {
    let mut out = File::from(file);
    let mut left = plan.most_bytes;
    let path = Path::new("/tmp").join(&plan.path);
    let taken = if plan.folder {
        take_folder(&path, Path::new(""), 0, &mut left, &mut out)
    } else {
        plain(&path).and_then(|from| copy(from, &mut left, &mut out))
    };
    match taken {
        Ok(()) => Product::Taken,
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Product::TooLarge,
        Err(_) => Product::Nothing,
    }
}

/// Opens a plain file; not a link, a pipe, or what else would lead elsewhere or block.
fn plain(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn spend(left: &mut u64, bytes: u64) -> io::Result<()> {
    *left = left.checked_sub(bytes).ok_or(io::ErrorKind::FileTooLarge)?;
    Ok(())
}

fn copy(mut from: File, left: &mut u64, out: &mut File) -> io::Result<()> {
    spend(left, from.metadata()?.len())?;
    io::copy(&mut from, out)?;
    Ok(())
}

fn take_folder(
    folder: &Path,
    name: &Path,
    depth: u32,
    left: &mut u64,
    out: &mut File,
) -> io::Result<()> {
    if depth > DEEPEST || !folder.symlink_metadata()?.is_dir() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    // The same bytes for the same program.
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), name.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            take_folder(&path, &name, depth + 1, left, out)?;
            continue;
        }
        let from = plain(&path)?;
        let name = name.as_os_str().as_bytes();
        let lengths = [name.len() as u64, from.metadata()?.len()];
        spend(left, HEAD as u64 + lengths[0])?;
        out.write_all(&lengths.map(u64::to_le_bytes).concat())?;
        out.write_all(name)?;
        copy(from, left, out)?;
    }
    Ok(())
}

/// Puts what was taken into /tmp. The descriptor may be shared with other runs: nothing of its state is used.
pub(super) fn put(from: &OwnedFd, path: &Path, form: Form) -> io::Result<()> {
    if form == Form::File {
        let from = File::from(from.try_clone()?);
        return part(&from, 0, from.metadata()?.len(), path);
    }
    fs::create_dir(path)?;
    unpack(from, path)
}

/// Puts files into a folder. A name that ends in a slash is that of an empty folder. The descriptor may be shared.
pub(super) fn unpack(from: &OwnedFd, path: &Path) -> io::Result<()> {
    let from = File::from(from.try_clone()?);
    let length = from.metadata()?.len();
    let wrong = || io::Error::from(io::ErrorKind::InvalidData);
    let mut at = 0;
    while at < length {
        let mut head = [0; HEAD];
        from.read_exact_at(&mut head, at)?;
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
        let (name, contents) = (number(&head[..8]), number(&head[8..]));
        at += HEAD as u64;
        if name > LONGEST_NAME || contents > length {
            return Err(wrong());
        }
        let mut text = vec![0; name as usize];
        from.read_exact_at(&mut text, at)?;
        at += name;
        let folder = text.ends_with(b"/");
        let name = PathBuf::from(std::ffi::OsString::from_vec(text));
        if !name.components().all(|c| matches!(c, Component::Normal(_))) {
            return Err(wrong());
        }
        let target = path.join(name);
        if folder {
            fs::create_dir_all(target)?;
            continue;
        }
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        part(&from, at, contents, &target)?;
        at += contents;
    }
    Ok(())
}

/// Copies `length` bytes from `at` into a new file.
fn part(from: &File, at: u64, length: u64, path: &Path) -> io::Result<()> {
    let mut out = File::create(path)?;
    let mut reader = Portion { from, at }.take(length);
    if io::copy(&mut reader, &mut out)? != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

struct Portion<'a> {
    from: &'a File,
    at: u64,
}

impl Read for Portion<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.from.read_at(buffer, self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::os::unix::fs::symlink;

    fn memory() -> OwnedFd {
        memfd_create("test", MFdFlags::MFD_CLOEXEC).expect("made")
    }

    fn plan(path: &Path, folder: bool, most_bytes: u64) -> ProductPlan {
        let path = path.to_str().expect("text").to_owned();
        ProductPlan {
            path,
            folder,
            most_bytes,
            always: false,
        }
    }

    #[test]
    fn a_folder_arrives_as_it_was() {
        let place = tempfile::tempdir().expect("a folder");
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("a/b")).expect("made");
        for (name, text) in [("x.class", "one"), ("a/b/y.class", ""), ("a/z", "three")] {
            fs::write(from.join(name), text).expect("written");
        }
        let file = memory();
        let copy = file.try_clone().expect("copied");
        assert_eq!(take(&plan(&from, true, 1000), file), Product::Taken);
        put(&copy, &to, Form::Folder).expect("put");
        let read = |name| fs::read_to_string(to.join(name)).expect("there");
        assert_eq!(
            [read("x.class"), read("a/b/y.class"), read("a/z")],
            ["one", "", "three"]
        );
        assert_eq!(take(&plan(&from, true, 20), memory()), Product::TooLarge);
    }

    #[test]
    fn only_plain_files_are_taken() {
        let place = tempfile::tempdir().expect("a folder");
        let path = |name| place.path().join(name);
        symlink("/etc/passwd", path("link")).expect("made");
        fs::create_dir(path("folder")).expect("made");
        symlink("/etc", path("folder/etc")).expect("made");
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
        for name in ["link", "pipe", "folder", "none"] {
            let file = memory();
            let copy = File::from(file.try_clone().expect("copied"));
            assert_eq!(
                take(&plan(&path(name), false, 1000), file),
                Product::Nothing,
                "{name}"
            );
            assert_eq!(copy.metadata().expect("known").len(), 0, "{name}");
        }
        let folder = plan(&path("folder"), true, 1000);
        assert_eq!(take(&folder, memory()), Product::Nothing);
    }

    #[test]
    fn records_that_lead_elsewhere_are_refused() {
        let place = tempfile::tempdir().expect("a folder");
        for (number, (name, length)) in [
            ("../x", 1),
            ("/x", 1),
            ("a/../../x", 1),
            ("x", 2),
            ("x", u64::MAX),
            ("", 1),
        ]
        .into_iter()
        .enumerate()
        {
            let mut out = File::from(memory());
            out.write_all(&[name.len() as u64, length].map(u64::to_le_bytes).concat())
                .and_then(|()| out.write_all(name.as_bytes()))
                .and_then(|()| out.write_all(b"y"))
                .expect("written");
            let to = place.path().join(number.to_string());
            assert!(put(&out.into(), &to, Form::Folder).is_err(), "{name}");
            assert!(!place.path().join("x").exists());
        }
    }
}
