//! The files of a control group: numbers, and lines of a name and a number.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Longer than any of the files that are read.
const LONGEST: usize = 4096;

/// A file that is kept open, because opening it costs more than reading it.
#[derive(Debug)]
pub(super) struct Numbers(File);

impl Numbers {
    pub(super) fn read_only(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    pub(super) fn writable(path: &Path) -> io::Result<Self> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map(Self)
    }

    /// The only number in it.
    pub(super) fn number(&self) -> io::Result<u64> {
        self.text(|text| text.trim_ascii().parse().ok())
    }

    /// The number behind a name.
    pub(super) fn named(&self, name: &str) -> io::Result<u64> {
        self.text(|text| named(text, name))
    }

    pub(super) fn set(&self, value: &str) -> io::Result<()> {
        self.0.write_at(value.as_bytes(), 0).map(|_| ())
    }

    fn text(&self, parse: impl FnOnce(&str) -> Option<u64>) -> io::Result<u64> {
        let mut buffer = [0; LONGEST];
        let length = self.0.read_at(&mut buffer, 0)?;
        let text = std::str::from_utf8(&buffer[..length]).unwrap_or_default();
        parse(text).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a control group says {text:?}"),
            )
        })
    }
}

fn named(text: &str, name: &str) -> Option<u64> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs
        .find(|(known, _)| *known == name)?
        .1
        .trim_ascii()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_words() {
        let events = "low 0\nhigh 1\nmax 22\noom 3\noom_kill 4\noom_group_kill 5\n";
        assert_eq!(named(events, "oom"), Some(3));
        assert_eq!(named(events, "oom_kill"), Some(4));
        assert_eq!(
            named("oom_kill_disable 0\nunder_oom 0\noom_kill 7", "oom_kill"),
            Some(7)
        );
        assert_eq!(
            named("usage_usec 1234\nuser_usec 1000\n", "usage_usec"),
            Some(1234)
        );
        assert_eq!(named(events, "min"), None);
        // Kernels before 4.13 do not count.
        assert_eq!(named("oom_kill_disable 0\nunder_oom 0\n", "oom_kill"), None);
        assert_eq!(named("oom_kill x\n", "oom_kill"), None);
    }

    #[test]
    fn a_file_is_read_anew_each_time() {
        let file = tempfile::NamedTempFile::new().expect("made");
        let numbers = Numbers::writable(file.path()).expect("opened");
        assert!(numbers.number().is_err());
        for value in ["12\n", "34\n"] {
            numbers.set(value).expect("written");
            assert_eq!(
                numbers.number().expect("read"),
                value.trim().parse::<u64>().expect("a number")
            );
        }
    }
}
