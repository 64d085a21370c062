//! Text for people: cut, with nothing in it that could move a terminal's cursor.
//!
//! What a program or a model wrote is never shown raw in the middle of our own output.

use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};

/// Writes `text` to stdout. A reader that has gone (`| head`) is no error.
pub fn print(text: &str) -> Result<()> {
    pass(text.as_bytes())
}

/// Writes bytes to stdout. A reader that has gone (`| head`) is no error.
pub fn pass(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(e).context("cannot write to stdout"),
        _ => Ok(()),
    }
}

/// An error with its causes, each said once: libraries differ in whether a message contains its cause.
pub fn error(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if said.is_empty() {
            said = cause;
        } else if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said
}

/// `text` with what a terminal would obey written out, as `\u{1b}`; line ends and tabs stay.
pub fn visible(text: &str) -> String {
    rlef_sandbox::visible(text).to_string()
}

/// `text` as a shell takes it for one word.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// The first `most` characters of `text`, and how many are left out.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => {
            let left = text[at..].chars().count();
            format!("{}… ({left} more characters)", &text[..at])
        }
    }
}

/// One line of at most `most` characters or so: line ends are written out.
pub fn line(text: &str, most: usize) -> String {
    let text = visible(text.trim_end()).replace('\n', "\\n");
    cut(&text.replace('\t', "\\t"), most)
}

/// A block of text, each line behind `margin`; at most `most` characters of it.
pub fn block(text: &str, margin: &str, most: usize) -> String {
    let mut shown = String::new();
    for line in cut(&visible(text), most).lines() {
        shown.push_str(format!("{margin}{line}").trim_end());
        shown.push('\n');
    }
    shown
}

/// Columns side by side; the last one is not padded.
pub fn columns(rows: &[Vec<String>], margin: &str) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| {
        let cells = rows.iter().filter_map(|row| row.get(i));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut shown = String::new();
    for row in rows {
        let mut text = margin.to_owned();
        for (cell, width) in row.iter().zip(&widths) {
            text.push_str(&format!("{cell:width$}  "));
        }
        shown.push_str(text.trim_end());
        shown.push('\n');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(
            visible("a\x1b[2J\tb\nc\r\u{202e}d\u{7f}"),
            "a\\u{1b}[2J\tb\nc\\r\\u{202e}d\\u{7f}"
        );
        assert_eq!(line("a\nb\tc \n", 99), "a\\nb\\tc");
    }

    #[test]
    fn a_shell_takes_what_is_quoted_for_one_word() {
        for word in ["runs/a-1", "a b", "it's", "", "$HOME;ls", "ä\n`x`"] {
            let printed = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {}", quoted(word))])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(printed.stdout).unwrap(), word);
        }
        assert_eq!(quoted("runs/train-1/checkpoint"), "runs/train-1/checkpoint");
    }

    #[test]
    fn cuts_count_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöü", 2), "äö… (1 more characters)");
        assert_eq!(cut("", 0), "");
        assert_eq!(
            block("a\n\nb\nc", "| ", 4),
            "| a\n|\n| b… (2 more characters)\n"
        );
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["ä".into(), "x".into()], vec!["bcd".into(), "".into()]];
        assert_eq!(columns(&rows, " "), " ä    x\n bcd\n");
    }
}
