//! Comparing what a function returned with what it should have returned, by type, in the trusted process.
//!
//! The expected value is JSON. What was returned is data by its built-in type: nothing that a class says of itself, no
//! `__eq__`, `__hash__` or `__repr__` of the program, has any part in it.

mod json;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use rlef_problems::{Checker, CheckerError};
use rlef_sandbox::{Returned, Value};

use crate::report::{Detail, Verdict};

/// How numbers compare.
struct Rule {
    abs: f64,
    rel: f64,
    by_value: bool,
}

/// Accepted or wrong answer.
pub(crate) fn compare(
    checker: &Checker,
    expected: &str,
    returned: &Returned,
) -> Result<(Verdict, Detail), CheckerError> {
    let &Checker::Value {
        abs,
        rel,
        numbers_by_value,
    } = checker
    else {
        return Err(CheckerError::Value);
    };
    checker.check()?;
    // Checked when the problem was read; one that was made otherwise may still be wrong.
    let expected = json::read(expected).ok_or(CheckerError::Value)?;
    let rule = Rule {
        abs,
        rel,
        by_value: numbers_by_value,
    };
    let wrong = |detail| Ok((Verdict::WrongAnswer, detail));
    match returned {
        Returned::Nothing => wrong(Detail::NoValue(
            "nothing: the program ended before it".into(),
        )),
        Returned::Garbled => wrong(Detail::NoValue(
            "nothing that is one value: the program wrote to the pipe for it".into(),
        )),
        Returned::Value(value) => {
            let mut place = String::new();
            match differs(&expected, value, &rule, &mut place) {
                None => Ok((Verdict::Accepted, Detail::None)),
                Some((expected, got)) => wrong(Detail::Difference(format!(
                    "result{place}: `{}` instead of `{}`",
                    shown(got, EXCERPT),
                    shown(expected, EXCERPT)
                ))),
            }
        }
    }
}

/// Longest text of a value in a difference, in bytes.
const EXCERPT: usize = 120;

/// The first two parts that differ, and where they are.
fn differs<'v>(
    expected: &'v Value,
    got: &'v Value,
    rule: &Rule,
    place: &mut String,
) -> Option<(&'v Value, &'v Value)> {
    use Value::{Dict, Float, Int, List, Str, Tuple};
    let same = match (expected, got) {
        (List(wanted), List(found) | Tuple(found)) if wanted.len() == found.len() => {
            for (i, (a, b)) in wanted.iter().zip(found).enumerate() {
                let end = place.len();
                place.push_str(&format!("[{i}]"));
                let difference = differs(a, b, rule, place);
                if difference.is_some() {
                    return difference;
                }
                place.truncate(end);
            }
            true
        }
        (Dict(wanted), Dict(found)) if wanted.len() == found.len() => {
            // Keys of a dictionary differ from each other, so each can be met only once; those of JSON are texts.
            let by_key: HashMap<&[u8], &Value> = found.iter().filter_map(text_key).collect();
            for (key, a) in wanted {
                let b = match key {
                    Str(key) => by_key.get(&**key),
                    _ => None,
                };
                let Some(b) = b else {
                    return Some((expected, got));
                };
                let end = place.len();
                place.push_str(&format!("[{}]", shown(key, EXCERPT)));
                let difference = differs(a, b, rule, place);
                if difference.is_some() {
                    return difference;
                }
                place.truncate(end);
            }
            true
        }
        (Int(a), Int(b)) => a == b,
        (Float(a), Float(b)) => near(*a, *b, rule),
        (Int(a), Float(b)) => {
            rule.by_value && (whole(*b).as_ref() == Some(a) || roughly(number(a), *b, rule))
        }
        (Float(a), Int(b)) => {
            rule.by_value && (whole(*a).as_ref() == Some(b) || roughly(*a, number(b), rule))
        }
        (Str(a), Str(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::None, Value::None) => true,
        _ => false,
    };
    (!same).then_some((expected, got))
}

/// Within one of the tolerances. What is not finite is equal to nothing: JSON has no such number to expect.
fn near(expected: f64, got: f64, rule: &Rule) -> bool {
    if !expected.is_finite() || !got.is_finite() {
        return false;
    }
    let difference = (expected - got).abs();
    difference <= rule.abs || difference <= rule.rel * expected.abs() || difference == 0.0
}

/// Within one of the tolerances where there are any, of two numbers of which one may have been rounded.
fn roughly(expected: f64, got: f64, rule: &Rule) -> bool {
    (rule.abs > 0.0 || rule.rel > 0.0) && near(expected, got, rule)
}

fn text_key((key, value): &(Value, Value)) -> Option<(&[u8], &Value)> {
    match key {
        Value::Str(key) => Some((key, value)),
        _ => None,
    }
}

/// The floating-point number nearest to a whole number, but for the last bit of very large ones; infinite beyond them.
fn number(hex: &str) -> f64 {
    let (sign, digits) = match hex.strip_prefix('-') {
        Some(digits) => (-1.0, digits),
        None => (1.0, hex),
    };
    // 60 bits are more than such a number has.
    let (first, rest) = digits.split_at(digits.len().min(15));
    let first = u64::from_str_radix(first, 16).unwrap_or(0) as f64;
    let places = i32::try_from(rest.len()).unwrap_or(i32::MAX);
    sign * first * 16f64.powi(places)
}

/// A floating-point number without a fraction as a whole one, digit for digit as [`Value::Int`] has it.
fn whole(x: f64) -> Option<String> {
    if !x.is_finite() || x.fract() != 0.0 {
        return None;
    }
    let sign = if x < 0.0 { "-" } else { "" };
    let bits = x.abs().to_bits();
    let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
    // x = mantissa × 2^power; 0 and what is smaller than 1 have no power that counts.
    let power = (bits >> 52) as i64 - 1075;
    if power <= 0 {
        return Some(format!("{sign}{:x}", x.abs() as u64));
    }
    let (zeros, shift) = (power as usize / 4, power as u32 % 4);
    let digits = u128::from(mantissa) << shift;
    Some(format!("{sign}{digits:x}{}", "0".repeat(zeros)))
}

/// Roughly what a value takes in memory, in bytes.
pub(crate) fn size(returned: &Returned) -> usize {
    fn of(value: &Value) -> usize {
        let inside = match value {
            Value::Int(text) | Value::Object(text) => text.len(),
            Value::Str(bytes) | Value::Bytes(bytes) => bytes.len(),
            Value::List(all) | Value::Tuple(all) | Value::Set(all) => all.iter().map(of).sum(),
            Value::Dict(pairs) => pairs.iter().map(|(k, v)| of(k) + of(v)).sum(),
            Value::None | Value::Bool(_) | Value::Float(_) => 0,
        };
        inside + size_of::<Value>()
    }
    match returned {
        Returned::Value(value) => of(value),
        Returned::Nothing | Returned::Garbled => 0,
    }
}

/// A value as Python would write it, cut after some `most` bytes.
pub(crate) fn shown(value: &Value, most: usize) -> String {
    let mut text = String::new();
    show(value, most, &mut text);
    if text.len() > most {
        let end = (0..=most).rev().find(|i| text.is_char_boundary(*i));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

fn show(value: &Value, most: usize, text: &mut String) {
    let list = |all: &[Value], open: &str, close: &str, text: &mut String| {
        text.push_str(open);
        for (i, item) in all.iter().enumerate() {
            if text.len() > most {
                return;
            }
            if i > 0 {
                text.push_str(", ");
            }
            show(item, most, text);
        }
        text.push_str(close);
    };
    match value {
        Value::None => text.push_str("None"),
        Value::Bool(true) => text.push_str("True"),
        Value::Bool(false) => text.push_str("False"),
        Value::Int(hex) => text.push_str(&decimal(hex)),
        Value::Float(x) if x.is_nan() => text.push_str("nan"),
        Value::Float(x) => text.push_str(&format!("{x:?}")),
        Value::Str(bytes) => quoted(&String::from_utf8_lossy(bytes), text),
        Value::Bytes(bytes) => {
            text.push_str("b'");
            text.push_str(&bytes.escape_ascii().to_string());
            text.push('\'');
        }
        Value::List(all) => list(all, "[", "]", text),
        Value::Tuple(all) => list(all, "(", if all.len() == 1 { ",)" } else { ")" }, text),
        Value::Set(all) if all.is_empty() => text.push_str("set()"),
        Value::Set(all) => list(all, "{", "}", text),
        Value::Dict(pairs) => {
            text.push('{');
            for (i, (key, value)) in pairs.iter().enumerate() {
                if text.len() > most {
                    return;
                }
                if i > 0 {
                    text.push_str(", ");
                }
                show(key, most, text);
                text.push_str(": ");
                show(value, most, text);
            }
            text.push('}');
        }
        Value::Object(class) => text.push_str(&format!("<{class} object>")),
    }
}

fn quoted(string: &str, text: &mut String) {
    let quote = if string.contains('\'') && !string.contains('"') {
        '"'
    } else {
        '\''
    };
    text.push(quote);
    for c in string.chars() {
        match c {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\\' => text.push_str("\\\\"),
            c if c == quote => text.extend(['\\', c]),
            c if c.is_control() => text.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => text.push(c),
        }
    }
    text.push(quote);
}

/// Whole numbers up to 128 bits in decimal, larger ones in hexadecimal, as Python can read both.
fn decimal(hex: &str) -> String {
    let (sign, digits) = match hex.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", hex),
    };
    match u128::from_str_radix(digits, 16) {
        Ok(n) => format!("{sign}{n}"),
        Err(_) => format!("{sign}0x{digits}"),
    }
}
