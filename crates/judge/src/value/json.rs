//! JSON as the values that functions return, with whole numbers of any size.

use rlef_sandbox::Value;

/// Nesting that is read.
const DEEPEST: usize = 500;

/// Reads one JSON text; `None` if it is not one.
pub(super) fn read(text: &str) -> Option<Value> {
    let mut reader = Reader { rest: text };
    let value = reader.value(0)?;
    reader.blank();
    reader.rest.is_empty().then_some(value)
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn blank(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn take(&mut self, token: &str) -> bool {
        self.blank();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        self.blank();
        if self.take("[") {
            return self.list("]", |r| r.value(depth + 1)).map(Value::List);
        }
        if self.take("{") {
            let pair = |r: &mut Self| {
                r.blank();
                let key = r.string()?;
                let value = r.take(":").then(|| r.value(depth + 1))??;
                Some((key, value))
            };
            return self.list("}", pair).map(Value::Dict);
        }
        for (word, value) in [
            ("null", Value::None),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
        ] {
            if self.take(word) {
                return Some(value);
            }
        }
        if self.rest.starts_with('"') {
            self.string()
        } else {
            self.number()
        }
    }

    fn list<T>(&mut self, end: &str, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut all = Vec::new();
        if self.take(end) {
            return Some(all);
        }
        loop {
            all.push(item(self)?);
            if self.take(end) {
                return Some(all);
            }
            if !self.take(",") {
                return None;
            }
        }
    }

    fn string(&mut self) -> Option<Value> {
        let mut escaped = false;
        let end = self.rest.char_indices().skip(1).find(|&(_, c)| {
            let end = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            end
        });
        let (text, rest) = self.rest.split_at(end?.0 + 1);
        self.rest = rest;
        let string: String = serde_json::from_str(text).ok()?;
        Some(Value::Str(string.into_bytes()))
    }

    fn number(&mut self) -> Option<Value> {
        let part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let end = self.rest.find(|c| !part(c)).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        // The grammar is left to the library; what it makes of large numbers is not used.
        let _: serde::de::IgnoredAny = serde_json::from_str(text).ok()?;
        if text.contains(['.', 'e', 'E']) {
            return text.parse().ok().map(Value::Float);
        }
        Some(Value::Int(hexadecimal(text)))
    }
}

/// A whole decimal number, as [`Value::Int`] has it.
fn hexadecimal(text: &str) -> String {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    // Digits of base 2^32, smallest first.
    let mut limbs: Vec<u32> = vec![];
    // Nine digits at a time, which is what a limb takes.
    for part in digits.as_bytes().chunks(9) {
        let digit = |byte: &u8| u64::from(byte.saturating_sub(b'0'));
        let mut carry = part.iter().fold(0, |n, byte| n * 10 + digit(byte));
        let scale = part.iter().fold(1, |n, _| n * 10);
        for limb in &mut limbs {
            let next = u64::from(*limb) * scale + carry;
            *limb = next as u32;
            carry = next >> 32;
        }
        if carry > 0 {
            limbs.push(carry as u32);
        }
    }
    match limbs.split_last() {
        None => "0".into(),
        Some((first, rest)) => {
            let mut hex = format!("{sign}{first:x}");
            for limb in rest.iter().rev() {
                hex.push_str(&format!("{limb:08x}"));
            }
            hex
        }
    }
}
