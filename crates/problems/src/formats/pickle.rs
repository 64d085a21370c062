//! The one kind of pickle that LiveCodeBench ships: a text. A pickle is a program for a small machine; this reads the
//! few instructions that make a text, executes none of the others and refuses them by name.

/// The text in a pickle of one text, of any protocol.
///
/// # Errors
/// What else is in it.
pub(super) fn text(bytes: &[u8]) -> Result<String, String> {
    let mut reader = Reader { rest: bytes };
    let mut found: Option<String> = None;
    loop {
        let code = reader.byte()?;
        match code {
            // Protocol and frame only tell how the rest is stored.
            0x80 => {
                let version = reader.byte()?;
                if version > 5 {
                    return Err(format!("its protocol is {version}; up to 5 are read"));
                }
            }
            0x95 => drop(reader.take(8)?),
            // Remembering the text for later does nothing to it.
            0x94 => {}
            b'q' => drop(reader.take(1)?),
            b'r' => drop(reader.take(4)?),
            b'p' => drop(reader.line()?),
            0x8c => {
                let length = u64::from(reader.byte()?);
                push(&mut found, reader.text(length)?)?;
            }
            b'X' => {
                let length = reader.number(4)?;
                push(&mut found, reader.text(length)?)?;
            }
            0x8d => {
                let length = reader.number(8)?;
                push(&mut found, reader.text(length)?)?;
            }
            b'.' => {
                if !reader.rest.is_empty() {
                    return Err(format!("{} bytes follow its end", reader.rest.len()));
                }
                return found.ok_or_else(|| "it holds nothing".to_owned());
            }
            other => {
                return Err(format!(
                    "it holds the instruction {:?} (0x{other:02x}), which is more than a text needs; nothing was executed",
                    char::from(other)
                ));
            }
        }
    }
}

fn push(found: &mut Option<String>, text: String) -> Result<(), String> {
    match found.replace(text) {
        None => Ok(()),
        Some(_) => Err("it holds more than one text".to_owned()),
    }
}

struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    fn take(&mut self, count: u64) -> Result<&'b [u8], String> {
        let count = usize::try_from(count).map_err(|_| "it is cut off".to_owned())?;
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or_else(|| "it is cut off".to_owned())?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, String> {
        self.take(1)?
            .first()
            .copied()
            .ok_or_else(|| "it is cut off".to_owned())
    }

    /// Little-endian.
    fn number(&mut self, bytes: u64) -> Result<u64, String> {
        Ok(self
            .take(bytes)?
            .iter()
            .rev()
            .fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    }

    fn line(&mut self) -> Result<&'b [u8], String> {
        let end = self
            .rest
            .iter()
            .position(|&byte| byte == b'\n')
            .ok_or_else(|| "it is cut off".to_owned())?;
        let line = self.take(end as u64)?;
        self.take(1)?;
        Ok(line)
    }

    fn text(&mut self, length: u64) -> Result<String, String> {
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes)
            .map(str::to_owned)
            .map_err(|error| format!("its text is no UTF-8: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_of_every_protocol_with_a_binary_form_are_read() {
        // As `pickle.dumps("[1, 2]", protocol)` writes them.
        for bytes in [
            &b"X\x06\x00\x00\x00[1, 2]q\x00."[..],
            b"\x80\x02X\x06\x00\x00\x00[1, 2]q\x00.",
            b"\x80\x04\x95\x0a\x00\x00\x00\x00\x00\x00\x00\x8c\x06[1, 2]\x94.",
            b"\x80\x05\x95\x0a\x00\x00\x00\x00\x00\x00\x00\x8c\x06[1, 2]\x94.",
            b"\x80\x04\x8d\x06\x00\x00\x00\x00\x00\x00\x00[1, 2]\x94\x95\x01\x00\x00\x00\x00\x00\x00\x00.",
        ] {
            assert_eq!(text(bytes).expect("a text"), "[1, 2]");
        }
    }

    #[test]
    fn programs_are_refused() {
        for (bytes, word) in [
            // os.system("id") as it is usually written.
            (&b"cos\nsystem\n(S'id'\ntR."[..], "'c'"),
            (
                b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93.",
                "more than one text",
            ),
            (b"\x80\x04\x93.", "0x93"),
            (b"\x80\x04]\x94.", "']'"),
            (b"\x80\x09.", "protocol is 9"),
            (b"\x80\x04.", "nothing"),
            (b"\x80\x04\x8c\x02ab\x94.x", "1 bytes follow"),
            (b"\x80\x04\x8c\x09ab\x94.", "cut off"),
            (b"\x8d\xff\xff\xff\xff\xff\xff\xff\xffab", "cut off"),
            (b"\x8c\x01\xff.", "UTF-8"),
            (b"", "cut off"),
        ] {
            let error = text(bytes).expect_err(word);
            assert!(error.contains(word), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_text_or_an_error(bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"X\x8c\x8d\x80\x94\x95q.\x00\x04".to_vec())], 0..40)) {
            if let Ok(text) = text(&bytes) {
                prop_assert!(text.len() <= bytes.len());
            }
        }
    }
}
