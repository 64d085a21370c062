//! Names that people must be able to tell apart and type: no characters that cannot be seen or that move others about.

/// What is wrong with `name` if it holds a control character, a mark that turns the direction of writing, or one of no
/// width. The character is only named, never shown.
pub(super) fn hidden(name: &str) -> Option<String> {
    first(name, kind)
}

/// The same for white space.
pub(super) fn blank(name: &str) -> Option<String> {
    first(name, |c| c.is_whitespace().then_some("white space"))
}

/// Whether a character is one that [`hidden`] finds.
pub(crate) fn is_hidden(c: char) -> bool {
    kind(c).is_some()
}

fn first(name: &str, kind: impl Fn(char) -> Option<&'static str>) -> Option<String> {
    let mut all = name.chars().zip(1..);
    let (c, at, kind) = all.find_map(|(c, at)| Some((c, at, kind(c)?)))?;
    let code = u32::from(c);
    Some(format!(
        "holds {kind}: U+{code:04X}, character {at} of the name; take it out"
    ))
}

fn kind(c: char) -> Option<&'static str> {
    match c {
        c if c.is_control() => Some("a control character"),
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Some("a mark that turns the direction of writing")
        }
        '\u{2028}' | '\u{2029}' => Some("a line break"),
        // Soft hyphen, joiners, fillers, invisible operators, variation selectors, tags.
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => Some("a character of no width"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_cannot_be_seen_is_named() {
        for c in [
            '\0',
            '\t',
            '\n',
            '\r',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{9b}',
            '\u{ad}',
            '\u{61c}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{200f}',
            '\u{2028}',
            '\u{202a}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{2069}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{fff9}',
            '\u{e0041}',
        ] {
            for (name, at) in [
                (format!("{c}abc"), 1),
                (format!("é{c}c"), 2),
                (format!("abc{c}"), 4),
            ] {
                let said = hidden(&name).unwrap_or_default();
                let wanted = format!("U+{:04X}, character {at} ", u32::from(c));
                assert!(said.contains(&wanted), "{said}");
                assert!(!said.contains(c), "{said:?} shows it");
            }
        }
    }

    #[test]
    fn names_of_every_language_pass() {
        for name in [
            "two-sum",
            "1200/A",
            "größe",
            "числа",
            "数列",
            "مسألة",
            "समस्या",
            "a_b.c:d#1",
            "π≈3",
        ] {
            assert_eq!(hidden(name).or(blank(name)), None, "{name}");
        }
        assert_eq!(hidden("a b"), None);
        assert!(blank("a b").is_some_and(|s| s.contains("U+0020, character 2")));
        assert!(blank("a\u{a0}b").is_some_and(|s| s.contains("U+00A0")));
    }
}
