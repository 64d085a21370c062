//! What a compiler said, fit to be shown to whoever wrote the program: no paths of this machine, no control
//! characters, and no longer than somebody would read.

use std::path::{Path, PathBuf};

/// Longest message, in bytes. The first errors are those that count; the rest mostly follows from them.
const LONGEST: usize = 8 << 10;

/// Cleans a message. `visible` are the paths that the compiler could see.
pub(super) fn clean(said: &[u8], visible: &[PathBuf]) -> String {
    // Ten times as much as is kept: what is replaced may become shorter, but nothing here is to take time over a flood.
    let said = &said[..said.len().min(10 * LONGEST)];
    let mut text = String::from_utf8_lossy(said).replace("\r\n", "\n");
    text = without_escapes(&text);
    text = text.replace("/tmp/", "");
    let mut paths: Vec<&Path> = visible.iter().map(PathBuf::as_path).collect();
    // The longest first, as others may be parts of it.
    paths.sort_by_key(|p| std::cmp::Reverse(p.as_os_str().len()));
    for path in paths {
        if let (Some(whole), Some(name)) = (path.to_str(), path.file_name()) {
            text = text.replace(whole, &format!("<{}>", name.to_string_lossy()));
        }
    }
    cut(text.trim(), LONGEST)
}

/// Without terminal escapes and other control characters.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if c == '\u{1b}' && characters.peek() == Some(&'[') {
            characters.next();
            // Parameters, up to the letter that says what they are for.
            while characters.next_if(|c| !('@'..='~').contains(c)).is_some() {}
            characters.next();
        } else if c == '\n' || c == '\t' || !c.is_control() {
            plain.push(c);
        }
    }
    plain
}

/// The beginning, to the end of a line where there is one.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept = &text[..end];
    let kept = kept.rfind('\n').map_or(kept, |line| &kept[..line]);
    format!("{kept}\n… (more was said)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_of_the_machine_is_shown() {
        let visible = [
            "/usr/include",
            "/usr",
            "/home/ann/.rustup/toolchains/stable",
        ];
        let visible = visible.map(PathBuf::from);
        let said = b"\x1b[1m/tmp/main.cpp:3:1:\x1b[0m error: no\r\n/usr/include/c++/12/x: note\n\
            /home/ann/.rustup/toolchains/stable/lib/y\x07\n/usr/lib/z\n";
        assert_eq!(
            clean(said, &visible),
            "main.cpp:3:1: error: no\n<include>/c++/12/x: note\n<stable>/lib/y\n<usr>/lib/z"
        );
    }

    #[test]
    fn long_messages_end_with_a_whole_line() {
        let said = "main.c:1: error: ä\n".repeat(100_000);
        let message = clean(said.as_bytes(), &[]);
        assert!(message.len() <= LONGEST + 100);
        assert!(message.ends_with("error: ä\n… (more was said)"));
        assert!(clean(&[b'x'; 1 << 20], &[]).len() <= LONGEST + 100);
    }

    proptest! {
        #[test]
        fn any_bytes_become_a_message(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let message = clean(&bytes, &["/tmp".into(), "/".into()]);
            let escapes = message.contains(char::is_control) && message.contains('\x1b');
            prop_assert!(!escapes);
        }
    }
}
