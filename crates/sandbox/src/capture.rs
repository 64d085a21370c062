//! One output of a program, read as it comes and kept up to a cap.

use std::fs::File;
use std::io::{self, Read};

/// One of the program's outputs, kept up to the cap.
pub(crate) struct Capture {
    pub pipe: File,
    pub bytes: Vec<u8>,
    cap: usize,
    /// More came than may.
    pub over: bool,
    pub open: bool,
}

impl Capture {
    pub(crate) fn new(pipe: File, cap: u64) -> Self {
        Self {
            pipe,
            bytes: Vec::new(),
            cap: usize::try_from(cap).unwrap_or(usize::MAX),
            over: false,
            open: true,
        }
    }

    /// Reads once; whether there may be more.
    pub(crate) fn read_some(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 64 << 10];
        match self.pipe.read(&mut chunk) {
            Ok(0) => self.open = false,
            Ok(length) => {
                let room = self.cap - self.bytes.len();
                self.bytes.extend_from_slice(&chunk[..length.min(room)]);
                self.over |= length > room;
                // Nothing beyond the cap is of use, and reading on would keep a flood going.
                self.open = !self.over;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(self.open)
    }
}
