//! Files that are whole or not there: written under another name beside their place, and moved there in the end.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that will take the place of another. Dropped before [`finish`](Self::finish), it leaves nothing behind.
pub(crate) struct Replacement {
    file: File,
    written: PathBuf,
    place: PathBuf,
    done: bool,
}

impl Replacement {
    pub(crate) fn create(place: &Path) -> io::Result<Self> {
        // A link is kept, and the file that it leads to replaced.
        let place = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        if std::fs::metadata(&place).is_ok_and(|about| !about.is_file()) {
            return Err(io::Error::other("it is there already and is not a file"));
        }
        let name = place
            .file_name()
            .ok_or_else(|| io::Error::other("it has no file name"))?;
        // Another process may write the same file; the last one to finish wins, and both write whole files.
        for number in 0..1000u32 {
            let mut hidden = OsString::from(".");
            hidden.push(name);
            hidden.push(format!(".{}-{number}.part", std::process::id()));
            let written = place.with_file_name(hidden);
            match OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&written)
            {
                Ok(file) => {
                    return Ok(Self {
                        file,
                        written,
                        place,
                        done: false,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(
            "there are too many unfinished files of that name; remove those that end in `.part`",
        ))
    }

    /// Moves the file to its place once its contents are on the disk.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.written, &self.place)?;
        self.done = true;
        // The move itself; a folder that cannot be opened for it is no reason to fail.
        if let Some(Ok(folder)) = self.place.parent().map(File::open) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.done {
            let _ = std::fs::remove_file(&self.written);
        }
    }
}
