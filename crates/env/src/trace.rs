//! What is shown of what a program wrote: its stack trace, with nothing that depends on the machine or the run.

/// The stack trace in what a program wrote to stderr: from the first `Traceback` line on, or all of it if there is none
/// (a syntax error has none). The program is `main.py`; of other files only the name is kept, because where Python is
/// installed on the machine that ran it is of no use to the reader. Trailing white space is cut.
pub(crate) fn clean_trace(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let start = lines
        .iter()
        .position(|line| line.starts_with("Traceback (most recent call last):"))
        .unwrap_or(0);
    lines[start..]
        .iter()
        .map(|line| short_path(line))
        .collect::<Vec<_>>()
        .join("\n")
}

/// `  File "/a/b/main.py", line 3` → `  File "main.py", line 3`.
fn short_path(line: &str) -> String {
    let text = line.trim_start_matches([' ', '|']);
    let quoted = text
        .strip_prefix("File \"")
        .and_then(|rest| rest.split_once("\", line "));
    match quoted {
        Some((path, rest)) => {
            let margin = &line[..line.len() - text.len()];
            let name = path.rsplit('/').next().unwrap_or(path);
            format!("{margin}File \"{name}\", line {rest}")
        }
        None => line.to_owned(),
    }
}

/// The text with the addresses in it, as Python prints them (`<map object at 0x7f12ab34cd56>`), made `0x0`.
pub(crate) fn without_addresses(text: &str) -> String {
    const MARK: &str = " at 0x";
    let mut parts = text.split(MARK);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        masked.push_str(MARK);
        masked.push_str(if rest.starts_with('>') && rest.len() < part.len() {
            "0"
        } else {
            &part[..part.len() - rest.len()]
        });
        masked.push_str(rest);
    }
    masked
}

/// The last line of a trace that says something, usually `SomeError: what`.
pub(crate) fn last_line(trace: &str) -> &str {
    trace
        .trim_end()
        .lines()
        .next_back()
        .unwrap_or_default()
        .trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_names_and_earlier_output_goes() {
        let stderr = "debug: x = 3\nTraceback (most recent call last):\n  File \"/box/main.py\", line 2, in <module>\n    \
            json.loads('')\n  File \"/home/me/.pyenv/lib/python3.11/json/decoder.py\", line 355, in raw_decode\n    \
            raise JSONDecodeError\nValueError: no\n";
        assert_eq!(
            clean_trace(stderr),
            "Traceback (most recent call last):\n  File \"main.py\", line 2, in <module>\n    json.loads('')\n  \
             File \"decoder.py\", line 355, in raw_decode\n    raise JSONDecodeError\nValueError: no"
        );
        assert_eq!(last_line(&clean_trace(stderr)), "ValueError: no");
    }

    #[test]
    fn a_syntax_error_has_no_traceback_line() {
        let stderr = "  File \"/tmp/x/main.py\", line 1\n    print(\n         ^\nSyntaxError: '(' was never closed\n";
        assert!(clean_trace(stderr).starts_with("  File \"main.py\", line 1\n"));
    }

    #[test]
    fn anything_goes_through() {
        assert_eq!(clean_trace(""), "");
        assert_eq!(last_line(""), "");
        assert_eq!(
            clean_trace("\u{fffd}\n  File \"a\n\n"),
            "\u{fffd}\n  File \"a"
        );
        assert_eq!(clean_trace("File \"\", line 1\n"), "File \"\", line 1");
    }

    #[test]
    fn addresses_are_masked_and_nothing_else() {
        let cases = [
            ("<map object at 0x7f12ab34cd56>\n", "<map object at 0x0>\n"),
            ("[<A at 0xdead>, <B at 0xbeef>]", "[<A at 0x0>, <B at 0x0>]"),
            ("it is at 0x10 now", "it is at 0x10 now"),
            ("0x7f12ab34cd56> at 0x", "0x7f12ab34cd56> at 0x"),
            (" at 0x> at 0xg>", " at 0x> at 0xg>"),
            ("", ""),
        ];
        for (text, masked) in cases {
            assert_eq!(without_addresses(text), masked);
        }
    }
}
