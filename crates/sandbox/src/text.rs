//! Text of others for people to read: nothing in it that a terminal would obey.

use std::fmt::{self, Display, Write};

/// `text` with control characters written out as `\u{1b}`, but for line ends and tabs, and so the marks that turn the
/// direction of writing. What a machine or a program says is never shown raw in a message.
pub fn visible(text: impl Display) -> impl Display {
    Visible(text)
}

struct Visible<T>(T);

impl<T: Display> Display for Visible<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| {
            if obeyed(c) {
                write!(self.0, "{}", c.escape_default())
            } else {
                self.0.write_char(c)
            }
        })
    }
}

fn obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control() && c != '\n' && c != '\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let shown = visible("a\x1b[2J\tb\nc\r\u{202e}d\u{7f}é\u{9b}\u{200f}").to_string();
        let wanted = "a\\u{1b}[2J\tb\nc\\r\\u{202e}d\\u{7f}é\\u{9b}\\u{200f}";
        assert_eq!(shown, wanted);
        assert_eq!(visible(format_args!("{:>3}|", 1)).to_string(), "  1|");
    }
}
