//! The program in a response: a code block fenced with backticks, read as CommonMark reads it.
//!
//! - A fence opens at the start of a line (up to three spaces before it) with three or more backticks and a tag that
//!   holds no backtick; so backticks inside a line of text or code are never a fence.
//! - It closes at a line that holds nothing but at least as many backticks. A fence that never closes is no block: such
//!   a response was cut off.
//! - Tildes do not count: the prompt asks for backticks.

use crate::config::CodeBlock;

/// The code of the first or last block whose tag is one of `tags` (letter case ignored, `""` = no tag), with `\n` as
/// line ends. `None` if there is no such block or it holds nothing but white space.
pub fn extract_code(response: &str, tags: &[String], which: CodeBlock) -> Option<String> {
    let mut found = None;
    let mut lines = response
        .split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line));
    while let Some(line) = lines.next() {
        let Some(fence) = opening(line) else { continue };
        // Whether this one closes must be known before its lines count, so look ahead on a copy.
        let mut ahead = lines.clone();
        let mut code = String::new();
        let closed = ahead.by_ref().any(|line| {
            if closes(line, fence.length) {
                return true;
            }
            let spaces = line.len() - line.trim_start_matches(' ').len();
            code.push_str(&line[spaces.min(fence.indent)..]);
            code.push('\n');
            false
        });
        if !closed {
            // Everything after it is inside it.
            break;
        }
        lines = ahead;
        if tags.iter().any(|tag| tag.eq_ignore_ascii_case(fence.tag)) {
            found = Some(code);
            if which == CodeBlock::First {
                break;
            }
        }
    }
    found.filter(|code| !code.trim().is_empty())
}

struct Fence<'a> {
    indent: usize,
    length: usize,
    tag: &'a str,
}

/// Indentation, number of backticks and the rest of a line that starts with at least three backticks.
fn fence(line: &str) -> Option<(usize, usize, &str)> {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let rest = text.trim_start_matches('`');
    let length = text.len() - rest.len();
    (indent <= 3 && length >= 3).then_some((indent, length, rest))
}

fn opening(line: &str) -> Option<Fence<'_>> {
    let (indent, length, info) = fence(line)?;
    // The tag is the first word; what may follow it (a file name, attributes) says nothing about the language.
    let tag = info.split_whitespace().next().unwrap_or_default();
    (!info.contains('`')).then_some(Fence {
        indent,
        length,
        tag,
    })
}

fn closes(line: &str, length: usize) -> bool {
    fence(line).is_some_and(|(_, this, rest)| this >= length && rest.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::EpisodeConfig;

    fn last(response: &str) -> Option<String> {
        extract_code(
            response,
            &EpisodeConfig::default().code_tags,
            CodeBlock::Last,
        )
    }

    fn first(response: &str) -> Option<String> {
        extract_code(
            response,
            &EpisodeConfig::default().code_tags,
            CodeBlock::First,
        )
    }

    #[test]
    fn finds_the_block() {
        let cases: [(&str, Option<&str>); 24] = [
            ("```python\nprint(1)\n```", Some("print(1)\n")),
            (
                "Text.\n\n```py\nprint(1)\n```\nMore text.",
                Some("print(1)\n"),
            ),
            ("```\nprint(1)\n```", Some("print(1)\n")),
            ("```Python\nprint(1)\n```", Some("print(1)\n")),
            (
                "``` python title=\"a.py\"\nprint(1)\n```",
                Some("print(1)\n"),
            ),
            (
                "```python\r\na = 1\r\nprint(a)\r\n```\r\n",
                Some("a = 1\nprint(a)\n"),
            ),
            ("```python\na\n```\n```python\nb\n```", Some("b\n")),
            ("```python\na\n```\n```text\nb\n```", Some("a\n")),
            ("```text\nb\n```", None),
            ("print(1)", None),
            ("", None),
            ("```python\nprint(1)", None),
            ("```python\na\n```\n```python\nb", Some("a\n")),
            ("~~~python\nprint(1)\n~~~", None),
            (
                "Use ``` to open.\n```python\nprint('```')\nx = \"\"\"``` \"\"\"\n```",
                Some("print('```')\nx = \"\"\"``` \"\"\"\n"),
            ),
            ("```python print(1)```", None),
            ("Here: ```python\nprint(1)\n```", None),
            (
                "````python\ns = '''\n```\n'''\n````",
                Some("s = '''\n```\n'''\n"),
            ),
            ("```python\nprint(1)\n`````", Some("print(1)\n")),
            (
                "  ```python\n  if 1:\n      print(1)\n  ```",
                Some("if 1:\n    print(1)\n"),
            ),
            ("    ```python\n    print(1)\n    ```", None),
            ("```python\n```", None),
            ("```python\n  \n```", None),
            ("```python\né = 'ü'\n```", Some("é = 'ü'\n")),
        ];
        for (response, code) in cases {
            assert_eq!(last(response).as_deref(), code, "{response:?}");
        }
    }

    #[test]
    fn first_or_last_is_a_choice() {
        let response = "```python\na\n```\nno, rather\n```python\nb\n```";
        assert_eq!(first(response).as_deref(), Some("a\n"));
        assert_eq!(last(response).as_deref(), Some("b\n"));
    }

    #[test]
    fn only_the_tags_asked_for_count() {
        let only = |tag: &str, response| extract_code(response, &[tag.to_owned()], CodeBlock::Last);
        assert_eq!(only("python", "```\na\n```"), None);
        assert_eq!(only("", "```\na\n```").as_deref(), Some("a\n"));
        assert_eq!(
            only("rust", "```python\na\n```\n```rust\nb\n```\n```\nc\n```").as_deref(),
            Some("b\n")
        );
    }

    proptest! {
        #[test]
        fn never_panics_and_what_it_finds_was_said(response in "([`~ \\r\\npython]|```|```python\\n|\\PC){0,60}") {
            for code in [last(&response), first(&response)].into_iter().flatten() {
                prop_assert!(!code.trim().is_empty());
                for line in code.lines() {
                    prop_assert!(response.contains(line));
                }
                prop_assert!(!code.lines().any(|line| line == "```"
                    && !response.contains("````")), "a closing fence of three was passed over");
            }
        }

        #[test]
        fn a_program_comes_back_as_it_was_written(
            code in "([a-z =()'\"`]{0,12}\\n){1,8}",
            before in "[a-z .\\n]{0,30}",
            after in "[a-z .\\n]{0,30}",
            crlf: bool,
        ) {
            prop_assume!(!code.trim().is_empty());
            prop_assume!(!code.lines().any(|line| line.trim_start().starts_with("```")));
            let response = format!("{before}\n```python\n{code}```\n{after}");
            let response = if crlf { response.replace('\n', "\r\n") } else { response };
            prop_assert_eq!(last(&response), Some(code));
        }

        #[test]
        fn a_longer_fence_carries_anything(code in "([`a-z ]{0,10}\\n){1,6}") {
            prop_assume!(!code.trim().is_empty());
            let fence = "`".repeat(12);
            let response = format!("{fence}python\n{code}{fence}");
            prop_assert_eq!(last(&response), Some(code));
        }

        #[test]
        fn cut_off_before_the_closing_fence_there_is_no_block(code in "([a-z =]{0,12}\\n){0,8}[a-z]{0,5}") {
            let response = format!("```python\n{}", code);
            prop_assert_eq!(last(&response), None);
        }
    }
}
