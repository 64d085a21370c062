//! What the tests of a function may hold: arguments that Python reads, and results that a program can return.
//!
//! What is JSON but fails this would be charged to every program. The text is known to be JSON when it comes here; it
//! is walked without recursion, so that no nesting is too deep for the walk itself.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

/// Deepest nesting of lists and objects in a value: what the interpreter reads and writes without running into its
/// limit on recursion, whichever version it is.
const DEEPEST: usize = 500;
/// Most digits of a whole number among arguments: what Python reads by default (`sys.int_info.default_max_str_digits`).
const MOST_DIGITS: usize = 4300;
/// Longest place that is shown, in characters.
const LONGEST_PLACE: usize = 80;

/// Whether the interpreter can read these arguments, a JSON array; what is wrong and where if not.
pub(super) fn check_arguments(json: &str) -> Result<(), String> {
    walk(json, |part| match part {
        // The array of arguments is no part of any of them.
        Part::Opened(depth) if depth > DEEPEST + 1 => Some(too_deep()),
        Part::Number(text) if !is_float(text) => {
            let digits = text.bytes().filter(u8::is_ascii_digit).count();
            (digits > MOST_DIGITS).then(|| {
                format!("a whole number of {digits} digits, and Python reads at most {MOST_DIGITS}")
            })
        }
        _ => None,
    })
}

/// Whether a program can return this JSON value; what is wrong and where if not.
pub(super) fn check_expected(json: &str) -> Result<(), String> {
    walk(json, |part| match part {
        Part::Opened(depth) if depth > DEEPEST => Some(too_deep()),
        Part::Number(text) if is_float(text) => {
            let infinite = text.parse::<f64>().is_ok_and(f64::is_infinite);
            infinite.then(|| {
                "a number that is infinite as floating point, to which no result is equal; give at most 1.79e308"
                    .into()
            })
        }
        Part::Repeated(key) => Some(format!(
            "the key {key} twice in an object, and a dictionary holds each key once; keep one of them"
        )),
        Part::HalfCharacter(escape) => Some(format!(
            "{escape}, half of a surrogate pair, to which no text is equal; write both halves, or the character"
        )),
        _ => None,
    })
}

fn is_float(number: &str) -> bool {
    number.contains(['.', 'e', 'E'])
}

fn too_deep() -> String {
    format!(
        "lists or objects nested more than {DEEPEST} deep, which Python neither reads nor returns"
    )
}

/// What may be wrong with a value.
enum Part<'t> {
    /// A list or an object begins; so many are open with it.
    Opened(usize),
    Number(&'t str),
    /// A key that its object has already, shortened.
    Repeated(String),
    /// An escape that is no character by itself, as it is written.
    HalfCharacter(&'t str),
}

/// A list or an object that has begun, and where the walk is in it.
enum Open {
    List(usize),
    Object { keys: HashSet<String>, key: String },
}

/// Shows every part to `judge` and stops at the first that it has something to say of; adds where that is.
fn walk<'t>(json: &'t str, judge: impl Fn(Part<'t>) -> Option<String>) -> Result<(), String> {
    let mut open: Vec<Open> = Vec::new();
    // Whether the next string is a key of the innermost object.
    let mut at_key = false;
    let mut at = 0;
    let bytes = json.as_bytes();
    while let Some(byte) = bytes.get(at) {
        let start = at;
        at += 1;
        let said = match byte {
            b'[' => {
                open.push(Open::List(0));
                judge(Part::Opened(open.len()))
            }
            b'{' => {
                at_key = true;
                let (keys, key) = Default::default();
                open.push(Open::Object { keys, key });
                judge(Part::Opened(open.len()))
            }
            b']' | b'}' => {
                open.pop();
                at_key = false;
                None
            }
            b',' => {
                match open.last_mut() {
                    Some(Open::List(index)) => *index += 1,
                    Some(Open::Object { .. }) => at_key = true,
                    None => {}
                }
                None
            }
            b'"' => {
                at = end_of_string(bytes, at);
                let text = json.get(start..at).unwrap_or_default();
                let half = half_character(text).and_then(|half| judge(Part::HalfCharacter(half)));
                match open.last_mut() {
                    Some(Open::Object { keys, key }) if at_key => {
                        at_key = false;
                        // Keys are the same when their characters are, however they are written.
                        *key = serde_json::from_str(text).unwrap_or_else(|_| text.to_owned());
                        let repeated = (!keys.insert(key.clone())).then(|| shortened(key));
                        half.or_else(|| judge(Part::Repeated(repeated?)))
                    }
                    _ => half,
                }
            }
            b'-' | b'0'..=b'9' => {
                let part =
                    |b: &u8| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.' | b'e' | b'E');
                at += bytes.iter().skip(at).take_while(|b| part(b)).count();
                judge(Part::Number(json.get(start..at).unwrap_or_default()))
            }
            _ => None,
        };
        if let Some(said) = said {
            return Err(format!("holds {said} (at {})", place(&open, start)));
        }
    }
    Ok(())
}

/// Behind the quotation mark that ends the string whose first one is before `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    bytes.len()
}

/// The first `\uXXXX` that is half of a pair without the other half.
fn half_character(string: &str) -> Option<&str> {
    let mut at = 0;
    while let Some(found) = string.get(at..)?.find('\\') {
        let start = at + found;
        let Some(unit) = escaped(string, start) else {
            at = start + 2;
            continue;
        };
        at = start + 6;
        match unit {
            0xd800..=0xdbff if matches!(escaped(string, at), Some(0xdc00..=0xdfff)) => at += 6,
            0xd800..=0xdfff => return string.get(start..start + 6),
            _ => {}
        }
    }
    None
}

/// The number of the `\uXXXX` that stands there, if one does.
fn escaped(string: &str, at: usize) -> Option<u16> {
    let digits = string.get(at..at + 6)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

/// A key in quotation marks, with what cannot be seen in it written out.
fn shortened(key: &str) -> String {
    match key.char_indices().nth(LONGEST_PLACE) {
        None => format!("{key:?}"),
        Some((end, _)) => format!("{:?}…", key.get(..end).unwrap_or_default()),
    }
}

/// As in `[0]["name"][3]`, and the byte, by which it can be found where the first is too long.
fn place(open: &[Open], byte: usize) -> String {
    let mut place = String::new();
    for part in open {
        match part {
            Open::List(index) => place.push_str(&format!("[{index}]")),
            Open::Object { key, .. } => place.push_str(&format!("[{}]", shortened(key))),
        }
        if place.chars().count() > LONGEST_PLACE {
            place = place.chars().take(LONGEST_PLACE).chain(Some('…')).collect();
            break;
        }
    }
    let byte = format!("byte {}", byte + 1);
    if place.is_empty() {
        byte
    } else {
        format!("{place}, {byte}")
    }
}
