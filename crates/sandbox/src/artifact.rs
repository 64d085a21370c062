//! A compiled program as the supervisor keeps it: bytes in a sealed memory file that only runs of this very program
//! are given.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::{Mode, fchmod};

use crate::wire::{Form, Identity};

/// Linux 6.3; where `vm.memfd_noexec` is set, only a file made with it can be executed.
const MFD_EXEC: u32 = 0x10;

#[derive(Debug)]
pub(crate) struct Artifact {
    file: File,
    bytes: u64,
    form: Form,
}

/// A memory file for the first process of a run to write to.
pub(crate) fn empty() -> io::Result<File> {
    Ok(File::from(memfd_create("product", MFdFlags::MFD_CLOEXEC)?))
}

impl Artifact {
    /// Copies what a run has left into a file of our own: nobody else has it open, and its memory is on our account
    /// and not on that of the slot that made it.
    pub(crate) fn keep(product: &File) -> io::Result<Self> {
        let bytes = product.metadata()?.len();
        Ok(Self {
            file: copied(product)?,
            bytes,
            form: Form::Executable,
        })
    }

    /// A source text that is run as it is.
    pub(crate) fn of(source: &str, form: Form) -> io::Result<Self> {
        let file = empty()?;
        io::Write::write_all(&mut &file, source.as_bytes())?;
        Ok(Self::keep(&file)?.in_form(form))
    }

    /// The same, for what runs do with it.
    pub(crate) fn in_form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// The descriptor for one run of a slot. A binary is open in the program's own process (`/proc/self/exe`): one that
    /// belongs to the program's user could have its mode and times changed for the next run to find, so it gets a
    /// file of its own.
    pub(crate) fn for_run(&self, identity: Identity) -> io::Result<File> {
        if self.form == Form::Executable && !identity.drop {
            return copied(&self.file);
        }
        self.file.try_clone()
    }

    /// What it takes in a private /tmp, in bytes. Folders and ends of files are rounded up to pages.
    pub(crate) fn unpacked_bytes(&self) -> u64 {
        match self.form {
            Form::Executable => 0,
            Form::Python | Form::File => self.bytes,
            // A record is longer than 16 bytes, and no class file is shorter than some hundred.
            Form::Folder => self.bytes.saturating_mul(8).saturating_add(1 << 20),
        }
    }

    /// For reading, by a path that holds as long as this does.
    pub(crate) fn path(&self) -> std::path::PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }
}

/// A sealed copy that can be read and executed.
fn copied(from: &File) -> io::Result<File> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let executable = MFdFlags::from_bits_retain(flags.bits() | MFD_EXEC);
    let made = memfd_create("program", executable).or_else(|error| match error {
        // An older kernel, where every such file can be executed.
        nix::Error::EINVAL => memfd_create("program", flags),
        error => Err(error),
    })?;
    let mut file = File::from(made);
    // Opened anew: copies of one descriptor share the place where they read.
    let path = format!("/proc/self/fd/{}", from.as_raw_fd());
    io::copy(&mut File::open(path)?, &mut file)?;
    fchmod(&file, Mode::from_bits_truncate(0o555))?;
    let seals = SealFlag::F_SEAL_WRITE
        | SealFlag::F_SEAL_GROW
        | SealFlag::F_SEAL_SHRINK
        | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file)
}
