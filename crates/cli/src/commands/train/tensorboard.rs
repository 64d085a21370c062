//! TensorBoard event files: a run's numbers as `tensorboard --logdir RUN` reads them.
//!
//! A file is a list of records (length, its checksum, data, its checksum), each a protocol buffer `Event`. Only the four
//! fields that scalars need are written; there are no images, texts or histograms.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use rlef_rl::Metrics;

/// An open event file.
pub struct Events {
    file: File,
}

impl Events {
    /// Begins a file; one that is there is replaced.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path, time: f64) -> io::Result<Self> {
        let mut events = Self {
            file: File::create(path)?,
        };
        let mut event = vec![];
        double(&mut event, 1, time);
        bytes(&mut event, 3, b"brain.Event:2");
        events.record(&event)?;
        Ok(events)
    }

    /// Adds the numbers of one line of the metrics.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn add(&mut self, step: usize, time: f64, metrics: &Metrics) -> io::Result<()> {
        let mut summary = vec![];
        for (name, &x) in metrics.iter().filter(|(_, x)| x.is_finite()) {
            let mut value = vec![];
            bytes(&mut value, 1, name.as_bytes());
            // Field 2, four bytes.
            value.push(2 << 3 | 5);
            value.extend((x as f32).to_le_bytes());
            bytes(&mut summary, 1, &value);
        }
        let mut event = vec![];
        double(&mut event, 1, time);
        event.push(2 << 3);
        varint(&mut event, step as u64);
        bytes(&mut event, 5, &summary);
        self.record(&event)
    }

    fn record(&mut self, data: &[u8]) -> io::Result<()> {
        let length = (data.len() as u64).to_le_bytes();
        let mut out = length.to_vec();
        out.extend(masked(&length).to_le_bytes());
        out.extend(data);
        out.extend(masked(data).to_le_bytes());
        // One write, so that whoever reads along sees whole records.
        self.file.write_all(&out)
    }
}

fn varint(out: &mut Vec<u8>, mut x: u64) {
    while x >= 0x80 {
        out.push(x as u8 | 0x80);
        x >>= 7;
    }
    out.push(x as u8);
}

fn double(out: &mut Vec<u8>, field: u8, x: f64) {
    out.push(field << 3 | 1);
    out.extend(x.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u8, data: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, data.len() as u64);
    out.extend(data);
}

/// CRC-32C (Castagnoli), rotated and shifted as the format wants it.
fn masked(data: &[u8]) -> u32 {
    let crc = crc32c(data);
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

fn crc32c(data: &[u8]) -> u32 {
    let mut crc = !0u32;
    for &byte in data {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            let bit = crc & 1;
            crc = crc >> 1 ^ (0x82f6_3b78 & bit.wrapping_neg());
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of CRC-32C, and two of RFC 3720, B.4.
    #[test]
    fn checksums_are_the_known_ones() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn an_event_by_hand() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut events = Events::create(file.path(), 1.0).unwrap();
        let head = std::fs::metadata(file.path()).unwrap().len() as usize;
        let metrics = [("a".to_owned(), 0.5), ("nan".to_owned(), f64::NAN)];
        events.add(300, 2.0, &metrics.into()).unwrap();
        let all = std::fs::read(file.path()).unwrap();
        let event = [
            &[0x09][..],
            &2f64.to_le_bytes(),
            // Step 300 = 0b10_0101100.
            &[0x10, 0xac, 0x02],
            // Summary, value, tag "a", number 0.5.
            &[0x2a, 10, 0x0a, 8, 0x0a, 1, b'a', 0x15],
            &0.5f32.to_le_bytes(),
        ]
        .concat();
        assert_eq!(all[head..head + 8], (event.len() as u64).to_le_bytes());
        assert_eq!(all[head + 12..head + 12 + event.len()], event);
        assert_eq!(all.len(), head + 16 + event.len());
    }
}
