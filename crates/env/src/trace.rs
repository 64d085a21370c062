//! What is shown of a program's stderr: its stack trace, with paths that do not depend on the machine.

/// The stack trace in `stderr`: from the first `Traceback` line on, or all of it if there is none (a syntax error has
/// none). The program is `main.py`; of other files only the name is kept, because where Python is installed on the
/// machine that ran it is of no use to the reader. Trailing white space is cut.
pub(crate) fn clean_trace(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
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
        let stderr = b"debug: x = 3\nTraceback (most recent call last):\n  File \"/box/main.py\", line 2, in <module>\n    \
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
        let stderr = b"  File \"/tmp/x/main.py\", line 1\n    print(\n         ^\nSyntaxError: '(' was never closed\n";
        assert!(clean_trace(stderr).starts_with("  File \"main.py\", line 1\n"));
    }

    #[test]
    fn anything_goes_through() {
        assert_eq!(clean_trace(b""), "");
        assert_eq!(last_line(""), "");
        assert_eq!(clean_trace(b"\xff\n  File \"a\n\n"), "\u{fffd}\n  File \"a");
        assert_eq!(clean_trace(b"File \"\", line 1\n"), "File \"\", line 1");
    }
}
