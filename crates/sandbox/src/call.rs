//! Calling one function of a program: what is sent in, and what counts as an answer.

use serde::de::IgnoredAny;

use crate::{Ending, Fault, Outcome, Value};

/// What came of calling a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// How the program ended and what it printed. Only after [`Ending::Exited`](crate::Ending::Exited)`(0)` has the
    /// function's value any meaning.
    pub outcome: Outcome,
    /// What the function returned.
    pub returned: Returned,
}

/// What a function returned.
#[derive(Debug, Clone, PartialEq)]
pub enum Returned {
    /// One value.
    Value(Value),
    /// Nothing came: the program ended before the function did.
    Nothing,
    /// Something came that is not one value: the program wrote to the pipe itself.
    Garbled,
}

/// What the program's process reads: strict JSON, checked here so that a mistake of ours is not the program's.
pub(crate) fn asked(function: &str, arguments: &str) -> Result<String, Fault> {
    // Sent on as they are: numbers of any size, which would not survive being read here.
    let _: Vec<IgnoredAny> = serde_json::from_str(arguments).map_err(|e| Fault::Call {
        what: format!("the arguments are not a JSON array: {e}"),
    })?;
    let function = serde_json::Value::from(function);
    Ok(format!(
        "{{\"function\":{function},\"arguments\":{arguments}}}"
    ))
}

/// What the boot file writes in place of an answer when the arguments cannot be read; the reason follows. No answer is
/// so long. A program may write it too, so that it has a meaning only for one that has not run.
const UNREAD: [u8; 8] = [0xff; 8];

/// Whether a call may have ended before its program began: it says that it has, or was ended from outside without having
/// returned anything.
pub(crate) fn perhaps_unread(ending: Ending, result: &[u8]) -> bool {
    let ended = matches!(
        ending,
        Ending::CpuLimit | Ending::WallLimit | Ending::MemoryLimit | Ending::Signalled(_)
    );
    result.starts_with(&UNREAD) || result.is_empty() && ended
}

/// Why an empty program was not given its arguments; nothing if it was. All that it does then is to define no function.
pub(crate) fn unread(ending: Ending, result: &[u8]) -> Option<String> {
    match (ending, result.strip_prefix(&UNREAD)) {
        (_, Some(why)) => Some(String::from_utf8_lossy(why).into_owned()),
        (Ending::Exited(_), None) => None,
        (ending, None) => Some(format!("an empty program ends by {ending}")),
    }
}

/// A length of eight bytes, little end first, and one value of that length; nothing before or after it.
pub(crate) fn returned(bytes: &[u8]) -> Returned {
    let Some((head, value)) = bytes.split_first_chunk::<8>() else {
        return match bytes {
            [] => Returned::Nothing,
            _ => Returned::Garbled,
        };
    };
    if u64::from_le_bytes(*head) != value.len() as u64 {
        return Returned::Garbled;
    }
    Value::read(value).map_or(Returned::Garbled, Returned::Value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_whole_value_counts_and_nothing_else() {
        let framed = |text: &[u8]| [&(text.len() as u64).to_le_bytes()[..], text].concat();
        let one = framed(b"i0x1;");
        assert_eq!(returned(&one), Returned::Value(Value::Int("1".into())));
        assert_eq!(returned(b""), Returned::Nothing);
        let twice = [&one[..], &one].concat();
        let cut = &one[..one.len() - 1];
        let more = [&one[..], b"N"].concat();
        for wrong in [&twice[..], cut, &more, b"T", &framed(b""), &framed(b"TT")] {
            assert_eq!(returned(wrong), Returned::Garbled);
        }
    }

    #[test]
    fn arguments_are_strict_json() {
        assert_eq!(
            asked("f", "[1, {\"a\": [1e400]}]").unwrap(),
            r#"{"function":"f","arguments":[1, {"a": [1e400]}]}"#
        );
        for wrong in ["", "1", "{}", "[1", "[NaN]", "[1] [2]"] {
            assert!(
                matches!(asked("f", wrong), Err(Fault::Call { .. })),
                "{wrong}"
            );
        }
    }
}
