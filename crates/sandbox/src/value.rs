//! What a function of a program returned, as a value outside: read from bytes that the program's process wrote, so every
//! byte is suspect. It is data to compare and to show; nothing of it is ever executed or believed.

/// Nesting that is read; the writer stops at less.
const DEEPEST: usize = 600;

/// A Python value by its built-in type. Objects of a class that derives from a built-in type count as that type,
/// whatever they say of themselves.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `None`
    None,
    /// `bool`
    Bool(bool),
    /// `int`: hexadecimal digits, behind a `-` if negative, without leading zeros; of any length.
    Int(String),
    /// `float`
    Float(f64),
    /// `str`, as UTF-8; half of a surrogate pair, which UTF-8 cannot hold, is encoded as if it could.
    Str(Vec<u8>),
    /// `bytes` or `bytearray`
    Bytes(Vec<u8>),
    /// `list`
    List(Vec<Value>),
    /// `tuple`
    Tuple(Vec<Value>),
    /// `dict`, in its order.
    Dict(Vec<(Value, Value)>),
    /// `set` or `frozenset`, in no order.
    Set(Vec<Value>),
    /// Anything else: the name of its class.
    Object(String),
}

impl Value {
    /// Reads one value; `None` unless `bytes` are exactly one.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let value = read(&mut rest, 0)?;
        rest.is_empty().then_some(value)
    }
}

fn read(rest: &mut &[u8], depth: usize) -> Option<Value> {
    if depth > DEEPEST {
        return None;
    }
    let (&kind, after) = rest.split_first()?;
    *rest = after;
    Some(match kind {
        b'N' => Value::None,
        b'T' => Value::Bool(true),
        b'F' => Value::Bool(false),
        b'i' => integer(until(rest, b';')?)?,
        b'f' => Value::Float(std::str::from_utf8(until(rest, b';')?).ok()?.parse().ok()?),
        b's' => Value::Str(counted(rest)?.to_vec()),
        b'b' => Value::Bytes(counted(rest)?.to_vec()),
        b'o' => Value::Object(String::from_utf8_lossy(counted(rest)?).into_owned()),
        b'[' => Value::List(items(rest, depth)?),
        b'(' => Value::Tuple(items(rest, depth)?),
        b'<' => Value::Set(items(rest, depth)?),
        b'{' => {
            let mut pairs = Vec::new();
            let mut flat = items(rest, depth)?.into_iter();
            while let Some(key) = flat.next() {
                pairs.push((key, flat.next()?));
            }
            Value::Dict(pairs)
        }
        _ => return None,
    })
}

fn until<'b>(rest: &mut &'b [u8], end: u8) -> Option<&'b [u8]> {
    let at = rest.iter().position(|b| *b == end)?;
    let (taken, after) = rest.split_at(at);
    *rest = &after[1..];
    Some(taken)
}

fn length(rest: &mut &[u8]) -> Option<usize> {
    let digits = until(rest, b':')?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn counted<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = length(rest)?;
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn items(rest: &mut &[u8], depth: usize) -> Option<Vec<Value>> {
    let count = length(rest)?;
    // A claim about the number is no reason to make room: each item must be there.
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(read(rest, depth + 1)?);
    }
    Some(all)
}

/// `0x1f` or `-0x1f`, as Python's `hex` writes it.
fn integer(text: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(text).ok()?;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let digits = digits.strip_prefix("0x")?;
    let plain = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if digits.is_empty() || !digits.bytes().all(plain) {
        return None;
    }
    let digits = match digits.trim_start_matches('0') {
        "" => return Some(Value::Int("0".into())),
        digits => digits,
    };
    Some(Value::Int(format!("{sign}{digits}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_kind_is_read() {
        let text = b"{4:s1:aN[3:i0x1f;i-0x0;i-0xff;(2:f0.1;f-inf;";
        let int = |s: &str| Value::Int(s.into());
        let want = Value::Dict(vec![
            (Value::Str(b"a".to_vec()), Value::None),
            (
                Value::List(vec![int("1f"), int("0"), int("-ff")]),
                Value::Tuple(vec![Value::Float(0.1), Value::Float(f64::NEG_INFINITY)]),
            ),
        ]);
        assert_eq!(Value::read(text), Some(want));
        let set = Value::Set(vec![Value::Bytes(vec![255, 0])]);
        assert_eq!(Value::read(b"<1:b2:\xff\x00"), Some(set));
        assert_eq!(Value::read(b"o3:Foo"), Some(Value::Object("Foo".into())));
        assert_eq!(Value::read(b"T"), Some(Value::Bool(true)));
    }

    #[test]
    fn what_is_not_exactly_one_value_is_none() {
        for wrong in [
            &b""[..],
            b"TT",
            b"x",
            b"i12;",
            b"i0x;",
            b"i0xG;",
            b"i0x1",
            b"s5:abc",
            b"s-1:",
            b"s18446744073709551615:a",
            b"s99999999999999999999:a",
            b"[2:T",
            b"{1:T",
            b"f1.5.2;",
            b"[18446744073709551615:",
        ] {
            assert_eq!(
                Value::read(wrong),
                None,
                "{}",
                String::from_utf8_lossy(wrong)
            );
        }
        assert_eq!(Value::read(&b"[1:".repeat(100_000)), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_none_or_a_value(bytes in proptest::collection::vec(
            prop_oneof![any::<u8>(), proptest::sample::select(b"NTFisbo[(<{:;0123x-".to_vec())], 0..60)
        ) {
            let _ = Value::read(&bytes);
        }
    }
}
