//! The sizes that the pages of a Parquet column claim, read before anything is unpacked: a page of a few bytes may claim
//! to become gigabytes, which the unpacker would reserve at once.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

/// Checks that no page of the column chunk at `start` (with `length` bytes) unpacks to more than `most` bytes.
/// The message says what is wrong.
pub(super) fn check(file: &File, start: u64, length: u64, most: u64) -> Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    let mut reader = BufReader::with_capacity(1 << 13, file.try_clone().map_err(io)?);
    reader.seek(SeekFrom::Start(start)).map_err(io)?;
    let mut at = 0u64;
    while at < length {
        let mut header = Thrift {
            source: &mut reader,
            read: 0,
        };
        let (unpacked, packed) = header.page_sizes()?;
        let size = header.read;
        if unpacked > most {
            return Err(format!(
                "a page unpacks to {unpacked} bytes, more than the limit of {most} for one problem"
            ));
        }
        at = at.saturating_add(size).saturating_add(packed);
        let skip = i64::try_from(packed).map_err(|_| "a page has an impossible size".to_owned())?;
        reader.seek_relative(skip).map_err(io)?;
    }
    Ok(())
}

/// Nesting of a header that is followed; the real ones have three levels.
const DEEPEST: u32 = 16;

/// Thrift's compact protocol, as much as is needed to get over a page header.
struct Thrift<'r, R> {
    source: &'r mut R,
    read: u64,
}

impl<R: Read> Thrift<'_, R> {
    fn byte(&mut self) -> Result<u8, String> {
        let mut byte = [0];
        self.source
            .read_exact(&mut byte)
            .map_err(|error| format!("a page header is cut off: {error}"))?;
        self.read += 1;
        Ok(byte[0])
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a page header holds an endless number".to_owned())
    }

    fn integer(&mut self) -> Result<i64, String> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The unpacked and the packed size (fields 2 and 3 of a page header).
    fn page_sizes(&mut self) -> Result<(u64, u64), String> {
        let (mut unpacked, mut packed) = (None, None);
        let mut field = 0;
        while let Some((number, kind)) = self.field(field)? {
            field = number;
            match (number, kind) {
                (2, 5) => unpacked = u64::try_from(self.integer()?).ok(),
                (3, 5) => packed = u64::try_from(self.integer()?).ok(),
                _ => self.skip(kind, 0)?,
            }
        }
        unpacked
            .zip(packed)
            .ok_or_else(|| "a page header has no sizes".to_owned())
    }

    fn field(&mut self, last: i64) -> Result<Option<(i64, u8)>, String> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        let number = match byte >> 4 {
            0 => self.integer()?,
            more => last.saturating_add(i64::from(more)),
        };
        Ok(Some((number, byte & 0x0f)))
    }

    fn bytes(&mut self, count: u64) -> Result<(), String> {
        let copied = std::io::copy(&mut self.source.by_ref().take(count), &mut std::io::sink());
        let copied = copied.map_err(|error| error.to_string())?;
        self.read += copied;
        if copied == count {
            Ok(())
        } else {
            Err("a page header is cut off".to_owned())
        }
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Result<(), String> {
        if depth > DEEPEST {
            return Err("a page header is nested without end".to_owned());
        }
        match kind {
            1 | 2 => Ok(()),
            3 => self.bytes(1),
            4..=6 => self.varint().map(drop),
            7 => self.bytes(8),
            8 => {
                let count = self.varint()?;
                self.bytes(count)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 {
                    self.varint()?
                } else {
                    u64::from(head >> 4)
                };
                for _ in 0..count {
                    self.item(head & 0x0f, depth)?;
                }
                Ok(())
            }
            11 => {
                let count = self.varint()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                for _ in 0..count {
                    self.item(kinds >> 4, depth)?;
                    self.item(kinds & 0x0f, depth)?;
                }
                Ok(())
            }
            12 => {
                let mut field = 0;
                while let Some((number, kind)) = self.field(field)? {
                    field = number;
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            _ => Err(format!(
                "a page header has a field of the unknown type {kind}"
            )),
        }
    }

    /// In a list, truth values take a byte each, so that every item takes one and a false count ends with the file.
    fn item(&mut self, kind: u8, depth: u32) -> Result<(), String> {
        match kind {
            1 | 2 => self.bytes(1),
            kind => self.skip(kind, depth + 1),
        }
    }
}
