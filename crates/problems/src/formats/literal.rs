//! Python literals: numbers, texts, None, True, False, and lists, tuples, dictionaries and sets of them. Anything that
//! would have to be computed is no literal and is refused.

/// Literals within literals that are read.
const DEEPEST: usize = 100;

/// A value that is written down.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    None,
    Bool(bool),
    /// In decimal digits, with a sign if it is negative.
    Int(String),
    Float(f64),
    Text(String),
    List(Vec<Literal>),
    Tuple(Vec<Literal>),
    Dict(Vec<(Literal, Literal)>),
    Set(Vec<Literal>),
}

/// Whether a tuple may become an array in JSON, which is read as a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tuples {
    /// For values that are compared: an array is as good as a tuple.
    AsArrays,
    /// For arguments: a program may tell a tuple from a list.
    Refused,
}

impl Literal {
    /// Adds the value as JSON.
    ///
    /// # Errors
    /// What JSON cannot say.
    pub(super) fn write_json(&self, tuples: Tuples, out: &mut String) -> Result<(), String> {
        let list = |items: &[Literal], out: &mut String| {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                item.write_json(tuples, out)?;
            }
            out.push(']');
            Ok::<(), String>(())
        };
        match self {
            Self::None => out.push_str("null"),
            Self::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
            Self::Int(digits) => out.push_str(digits),
            Self::Float(number) if number.is_finite() => out.push_str(&format!("{number:?}")),
            Self::Float(number) => return Err(format!("{number} is no number in JSON")),
            Self::Text(text) => out.push_str(&serde_json::Value::from(text.as_str()).to_string()),
            Self::List(items) => list(items, out)?,
            Self::Tuple(items) if tuples == Tuples::AsArrays => list(items, out)?,
            Self::Tuple(_) => {
                return Err(
                    "an argument is a tuple, and arguments are JSON, which has lists only"
                        .to_owned(),
                );
            }
            Self::Dict(pairs) => {
                out.push('{');
                for (at, (key, value)) in pairs.iter().enumerate() {
                    let Self::Text(key) = key else {
                        return Err(
                            "a dictionary has keys that are no texts, and JSON has no others"
                                .to_owned(),
                        );
                    };
                    if at > 0 {
                        out.push_str(", ");
                    }
                    out.push_str(&serde_json::Value::from(key.as_str()).to_string());
                    out.push_str(": ");
                    value.write_json(tuples, out)?;
                }
                out.push('}');
            }
            Self::Set(_) => return Err("a value is a set, which JSON does not have".to_owned()),
        }
        Ok(())
    }
}

/// A place in Python source.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'t> {
    pub(super) rest: &'t str,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rest: text }
    }

    /// Skips blanks, line breaks and comments.
    pub(super) fn blank(&mut self) {
        loop {
            self.rest = self
                .rest
                .trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
            if let Some(rest) = self.rest.strip_prefix("\\\n") {
                self.rest = rest;
            } else if self.rest.starts_with('#') {
                self.rest = self
                    .rest
                    .find('\n')
                    .and_then(|end| self.rest.get(end..))
                    .unwrap_or_default();
            } else {
                return;
            }
        }
    }

    /// Skips a token and the blanks before it, if it comes next.
    pub(super) fn take(&mut self, token: &str) -> bool {
        self.blank();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// A name, which is no part of a longer one.
    pub(super) fn name(&mut self) -> Option<&'t str> {
        self.blank();
        let end = self
            .rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() || name.starts_with(|c: char| c.is_numeric()) {
            return None;
        }
        self.rest = rest;
        Some(name)
    }

    /// Skips a word, if it comes next as a whole.
    pub(super) fn word(&mut self, word: &str) -> bool {
        let mut ahead = self.clone();
        if ahead.name() == Some(word) {
            *self = ahead;
            return true;
        }
        false
    }

    pub(super) fn literal(&mut self) -> Result<Literal, String> {
        self.value(0)
    }

    fn unknown(&self) -> String {
        let shown: String = self
            .rest
            .chars()
            .take(40)
            .take_while(|&c| c != '\n')
            .collect();
        format!("`{shown}` is no literal value")
    }

    fn value(&mut self, depth: usize) -> Result<Literal, String> {
        if depth > DEEPEST {
            return Err("a literal is nested too deep".to_owned());
        }
        self.blank();
        let value = match self.rest.chars().next() {
            Some('[') => Literal::List(self.items("[", "]", depth)?.0),
            Some('(') => {
                let (mut items, comma) = self.items("(", ")", depth)?;
                match items.pop() {
                    Some(one) if items.is_empty() && !comma => one,
                    Some(last) => {
                        items.push(last);
                        Literal::Tuple(items)
                    }
                    None => Literal::Tuple(items),
                }
            }
            Some('{') => self.braces(depth)?,
            Some('-') => {
                self.take("-");
                match self.number()? {
                    Literal::Int(digits) if digits == "0" => Literal::Int(digits),
                    Literal::Int(digits) => Literal::Int(format!("-{digits}")),
                    Literal::Float(number) => Literal::Float(-number),
                    _ => return Err(self.unknown()),
                }
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number()?,
            Some(c) if c == '"' || c == '\'' || c.is_alphabetic() => self.word_or_text()?,
            _ => return Err(self.unknown()),
        };
        Ok(value)
    }

    /// Items between brackets, and whether a comma was among them.
    fn items(
        &mut self,
        open: &str,
        close: &str,
        depth: usize,
    ) -> Result<(Vec<Literal>, bool), String> {
        self.take(open);
        let (mut items, mut comma) = (Vec::new(), false);
        loop {
            if self.take(close) {
                return Ok((items, comma));
            }
            items.push(self.value(depth + 1)?);
            if self.take(",") {
                comma = true;
            } else if !self.take(close) {
                return Err(self.unknown());
            } else {
                return Ok((items, comma));
            }
        }
    }

    fn braces(&mut self, depth: usize) -> Result<Literal, String> {
        self.take("{");
        let (mut pairs, mut items) = (Vec::new(), Vec::new());
        loop {
            if self.take("}") {
                break;
            }
            let key = self.value(depth + 1)?;
            if self.take(":") {
                pairs.push((key, self.value(depth + 1)?));
            } else {
                items.push(key);
            }
            if !self.take(",") {
                if !self.take("}") {
                    return Err(self.unknown());
                }
                break;
            }
        }
        match (pairs.is_empty(), items.is_empty()) {
            (_, true) => Ok(Literal::Dict(pairs)),
            (true, false) => Ok(Literal::Set(items)),
            (false, false) => Err("a literal mixes a dictionary and a set".to_owned()),
        }
    }

    fn number(&mut self) -> Result<Literal, String> {
        let part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
        let mut end = self
            .rest
            .find(|c: char| !part(c))
            .unwrap_or(self.rest.len());
        // The sign of an exponent.
        let decimal = !self.rest.starts_with("0x") && !self.rest.starts_with("0X");
        if decimal
            && self
                .rest
                .get(..end)
                .is_some_and(|text| text.ends_with(['e', 'E']))
            && self
                .rest
                .get(end..)
                .is_some_and(|rest| rest.starts_with(['-', '+']))
        {
            let rest = self.rest.get(end + 1..).unwrap_or_default();
            end += 1 + rest.find(|c: char| !part(c)).unwrap_or(rest.len());
        }
        let (text, rest) = self.rest.split_at(end);
        let plain = text.replace('_', "");
        let lower = plain.to_ascii_lowercase();
        let radix = |digits: &str, radix| {
            u128::from_str_radix(digits, radix)
                .ok()
                .map(|n| Literal::Int(n.to_string()))
        };
        let value = if let Some(digits) = lower.strip_prefix("0x") {
            radix(digits, 16)
        } else if let Some(digits) = lower.strip_prefix("0o") {
            radix(digits, 8)
        } else if let Some(digits) = lower.strip_prefix("0b") {
            radix(digits, 2)
        } else if !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_digit()) {
            let digits = plain.trim_start_matches('0');
            Some(Literal::Int(
                if digits.is_empty() { "0" } else { digits }.to_owned(),
            ))
        } else if plain
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte))
        {
            plain.parse().ok().map(Literal::Float)
        } else {
            None
        };
        let value = value.ok_or_else(|| self.unknown())?;
        self.rest = rest;
        Ok(value)
    }

    fn word_or_text(&mut self) -> Result<Literal, String> {
        for (word, value) in [
            ("None", Literal::None),
            ("True", Literal::Bool(true)),
            ("False", Literal::Bool(false)),
        ] {
            if self.word(word) {
                return Ok(value);
            }
        }
        let mut whole = String::new();
        let mut any = false;
        // Texts beside each other are one.
        while let Some(part) = self.text()? {
            whole.push_str(&part);
            any = true;
            self.blank();
        }
        if any {
            Ok(Literal::Text(whole))
        } else {
            Err(self.unknown())
        }
    }

    /// A text, if one comes next.
    fn text(&mut self) -> Result<Option<String>, String> {
        let prefix = self.rest.find(['"', '\'']).unwrap_or(self.rest.len());
        let prefix = match self.rest.get(..prefix).unwrap_or_default() {
            "" => "",
            "r" | "R" => "r",
            "u" | "U" => "u",
            _ => return Ok(None),
        };
        let body = self.rest.get(prefix.len()..).unwrap_or_default();
        let raw = prefix == "r";
        let Some(quote) = ["\"\"\"", "'''", "\"", "'"]
            .into_iter()
            .find(|quote| body.starts_with(quote))
        else {
            return Ok(None);
        };
        let mut chars = body.get(quote.len()..).unwrap_or_default();
        let mut text = String::new();
        loop {
            if let Some(rest) = chars.strip_prefix(quote) {
                self.rest = rest;
                return Ok(Some(text));
            }
            let Some(c) = chars.chars().next() else {
                return Err("a text does not end".to_owned());
            };
            chars = chars.get(c.len_utf8()..).unwrap_or_default();
            match c {
                '\n' if quote.len() == 1 => {
                    return Err("a text does not end on its line".to_owned());
                }
                '\\' if raw => {
                    text.push('\\');
                    if let Some(next) = chars.chars().next() {
                        text.push(next);
                        chars = chars.get(next.len_utf8()..).unwrap_or_default();
                    }
                }
                '\\' => chars = escape(chars, &mut text)?,
                c => text.push(c),
            }
        }
    }
}

/// What a backslash and the characters after it stand for; the rest after them.
fn escape<'t>(after: &'t str, text: &mut String) -> Result<&'t str, String> {
    let Some(c) = after.chars().next() else {
        return Err("a text does not end".to_owned());
    };
    let rest = after.get(c.len_utf8()..).unwrap_or_default();
    let mut coded = |digits: &str, radix: u32, skip: usize| {
        let code = u32::from_str_radix(digits, radix)
            .ok()
            .and_then(char::from_u32);
        text.push(code.ok_or_else(|| format!("`\\{c}{digits}` stands for no character"))?);
        Ok(after.get(skip..).unwrap_or_default())
    };
    match c {
        'x' => coded(rest.get(..2).unwrap_or_default(), 16, 3),
        'u' => coded(rest.get(..4).unwrap_or_default(), 16, 5),
        'U' => coded(rest.get(..8).unwrap_or_default(), 16, 9),
        '0'..='7' => {
            let end = after
                .bytes()
                .take(3)
                .take_while(|byte| (b'0'..=b'7').contains(byte))
                .count();
            coded(after.get(..end).unwrap_or_default(), 8, end)
        }
        'N' => Err("a text names a character, which is not read".to_owned()),
        _ => {
            let plain = match c {
                'n' => "\n",
                't' => "\t",
                'r' => "\r",
                'a' => "\u{7}",
                'b' => "\u{8}",
                'f' => "\u{c}",
                'v' => "\u{b}",
                '\n' => "",
                '\\' => "\\",
                '\'' => "'",
                '"' => "\"",
                other => {
                    text.push('\\');
                    text.push(other);
                    ""
                }
            };
            text.push_str(plain);
            Ok(rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json(text: &str) -> Result<String, String> {
        let mut cursor = Cursor::new(text);
        let value = cursor.literal()?;
        cursor.blank();
        if !cursor.rest.is_empty() {
            return Err(format!("rest: {}", cursor.rest));
        }
        let mut out = String::new();
        value.write_json(Tuples::Refused, &mut out)?;
        Ok(out)
    }

    #[test]
    fn literals_are_read() {
        for (python, wanted) in [
            (
                "[1, -2, 0x1f, 1_000, 0b11, -0, 007]",
                "[1, -2, 31, 1000, 3, 0, 7]",
            ),
            (
                "[1.0, .5, 1e3, -2.5e-3, 5.]",
                "[1.0, 0.5, 1000.0, -0.0025, 5.0]",
            ),
            (
                "123456789012345678901234567890123456789012345",
                "123456789012345678901234567890123456789012345",
            ),
            ("[None, True, False]", "[null, true, false]"),
            ("{'a': [], \"b\": {}}", "{\"a\": [], \"b\": {}}"),
            (
                "'a\\'b\\n\\x41\\u00e9\\101' 'c' \"\"\"d\ne\"\"\"",
                "\"a'b\\nAéAcd\\ne\"",
            ),
            ("r'a\\n'", "\"a\\\\n\""),
            ("(1)", "1"),
            ("[ # one\n 1 ,\n]", "[1]"),
        ] {
            assert_eq!(json(python).as_deref(), Ok(wanted), "{python}");
        }
        let mut tuples = String::new();
        let value = Cursor::new("(1, (2,), ())").literal().expect("a tuple");
        value
            .write_json(Tuples::AsArrays, &mut tuples)
            .expect("arrays");
        assert_eq!(tuples, "[1, [2], []]");
    }

    #[test]
    fn what_must_be_computed_or_json_cannot_say_is_refused() {
        for (python, word) in [
            ("10**9", "rest"),
            ("[1 + 2]", "no literal"),
            ("float('inf')", "no literal"),
            ("1e999", "no number in JSON"),
            ("2j", "no literal"),
            ("[x for x in y]", "no literal"),
            ("(1, 2)", "tuple"),
            ("{1, 2}", "set"),
            ("{1: 2}", "keys"),
            ("{'a': 1, 2}", "mixes"),
            ("b'a'", "no literal"),
            ("f'a'", "no literal"),
            ("'a", "does not end"),
            ("'\\ud800'", "no character"),
            ("--1", "no literal"),
            ("", "no literal"),
        ] {
            let error = json(python).expect_err(python);
            assert!(error.contains(word), "{python}: {error}");
        }
        assert!(
            json(&"[".repeat(100_000))
                .expect_err("deep")
                .contains("deep")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "([\\[\\](){},:'\"\\\\ \n#0-9.eExb_-]|None|True|é|\\PC){0,60}") {
            if let Ok(made) = json(&text) {
                prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&made).is_ok(), "{}", made);
            }
        }
    }
}
