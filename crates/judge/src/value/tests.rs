use proptest::prelude::*;
use rlef_problems::Checker;

use super::*;

fn exact() -> Checker {
    Checker::Value {
        abs: 0.0,
        rel: 0.0,
        numbers_by_value: true,
    }
}

fn verdict(checker: &Checker, expected: &str, got: Value) -> Verdict {
    compare(checker, expected, &Returned::Value(got)).unwrap().0
}

fn accepted(expected: &str, got: Value) -> bool {
    verdict(&exact(), expected, got) == Verdict::Accepted
}

fn int(hex: &str) -> Value {
    Value::Int(hex.into())
}

fn string(s: &str) -> Value {
    Value::Str(s.into())
}

#[test]
fn values_compare_by_type() {
    assert!(accepted("[1, 2]", Value::List(vec![int("1"), int("2")])));
    assert!(accepted("[1, 2]", Value::Tuple(vec![int("1"), int("2")])));
    assert!(!accepted("[1, 2]", Value::Set(vec![int("1"), int("2")])));
    assert!(!accepted("[1, 2]", Value::List(vec![int("2"), int("1")])));
    assert!(!accepted("[1, 2]", Value::List(vec![int("1")])));
    assert!(!accepted("[]", Value::None));
    assert!(!accepted("null", Value::Bool(false)));
    assert!(!accepted("1", Value::Bool(true)));
    assert!(!accepted("true", int("1")));
    assert!(!accepted("1", string("1")));
    assert!(!accepted("\"a\"", Value::Bytes(b"a".to_vec())));
    assert!(!accepted("\"X\"", Value::Object("X".into())));
    assert!(accepted(r#""a\u00e9\n\"""#, string("aé\n\"")));
    let pair = |k: &str, v| (string(k), v);
    let dict = Value::Dict(vec![pair("b", int("2")), pair("a", int("1"))]);
    assert!(accepted(r#"{"a": 1, "b": 2}"#, dict.clone()));
    assert!(!accepted(r#"{"a": 1, "c": 2}"#, dict.clone()));
    assert!(!accepted(r#"{"a": 1}"#, dict));
    let by_int = Value::Dict(vec![(int("1"), int("1"))]);
    assert!(!accepted(r#"{"1": 1}"#, by_int));
}

#[test]
fn numbers_compare_by_value_or_also_by_type() {
    assert!(accepted("2", Value::Float(2.0)) && accepted("2.0", int("2")));
    let typed = Checker::Value {
        abs: 0.0,
        rel: 0.0,
        numbers_by_value: false,
    };
    assert_eq!(
        verdict(&typed, "2", Value::Float(2.0)),
        Verdict::WrongAnswer
    );
    assert_eq!(verdict(&typed, "2.0", int("2")), Verdict::WrongAnswer);
    assert_eq!(verdict(&typed, "2.0", Value::Float(2.0)), Verdict::Accepted);
    // Beyond 2^53 a floating-point number stands for several whole ones.
    assert!(!accepted(
        "9007199254740993",
        Value::Float(9_007_199_254_740_992.0)
    ));
    assert!(accepted("-0.0", Value::Float(0.0)) && accepted("-0", int("0")));
    assert!(!accepted("1", int("-1")));
    let googol = format!("1{}", "0".repeat(100));
    assert!(accepted(
        &googol,
        int("1249ad2594c37ceb0b2784c4ce0bf38ace408e211a7caab24308a82e8f10000000000000000000000000")
    ));
    assert!(!accepted(&googol, Value::Float(1e100)));
}

#[test]
fn tolerances_are_for_numbers_and_nothing_else() {
    let near = Checker::Value {
        abs: 0.0,
        rel: 1e-6,
        numbers_by_value: true,
    };
    assert_eq!(
        verdict(&near, "[3.0]", Value::List(vec![Value::Float(3.000_001)])),
        Verdict::Accepted
    );
    for wrong in [
        Value::Float(3.1),
        Value::Float(f64::NAN),
        Value::Float(f64::INFINITY),
        string("3.0"),
    ] {
        assert_eq!(verdict(&near, "3.0", wrong), Verdict::WrongAnswer);
    }
    assert_eq!(
        verdict(&near, "1e400", Value::Float(f64::INFINITY)),
        Verdict::WrongAnswer
    );
    // Whole numbers are exact.
    assert_eq!(
        verdict(&near, "10000000", int("989681")),
        Verdict::WrongAnswer
    );
}

#[test]
fn the_deepest_values_are_compared_on_a_small_stack() {
    let nested = |depth: usize| format!("{}7{}", "[".repeat(depth), "]".repeat(depth));
    let value = |depth: usize| (0..depth).fold(int("7"), |inner, _| Value::List(vec![inner]));
    let compared = move || {
        assert!(accepted(&nested(500), value(500)));
        assert!(!accepted(&nested(500), value(499)));
        assert!(!accepted(&nested(499), value(600)));
        assert!(compare(&exact(), &nested(501), &Returned::Nothing).is_err());
    };
    let small = std::thread::Builder::new().stack_size(1 << 20);
    small.spawn(compared).unwrap().join().unwrap();
}

#[test]
fn a_difference_says_where() {
    let got = Value::List(vec![
        int("1"),
        Value::Tuple(vec![string("it's"), Value::None]),
    ]);
    let (_, detail) = compare(&exact(), r#"[1, ["its", null]]"#, &Returned::Value(got)).unwrap();
    assert_eq!(
        detail.to_string(),
        r#"result[1][0]: `"it's"` instead of `'its'`"#
    );
    let (verdict, detail) = compare(&exact(), "1", &Returned::Nothing).unwrap();
    assert_eq!(verdict, Verdict::WrongAnswer);
    assert_eq!(detail.to_string(), "nothing: the program ended before it");
}

#[test]
fn values_are_shown_as_python_writes_them() {
    let value = Value::List(vec![
        Value::Float(1.0),
        Value::Float(1e300),
        Value::Tuple(vec![int("-ff")]),
        Value::Set(vec![]),
        Value::Dict(vec![(string("a\n"), Value::Bytes(vec![255]))]),
        Value::Object("Foo".into()),
    ]);
    let text = "[1.0, 1e300, (-255,), set(), {'a\\n': b'\\xff'}, <Foo object>]";
    assert_eq!(shown(&value, 200), text);
    assert_eq!(shown(&value, 10), "[1.0, 1e30…");
    let long = Value::List(vec![string(&"é".repeat(1000)); 1000]);
    assert!(shown(&long, 101).len() < 110);
}

proptest! {
    /// Whatever JSON serde_json writes is read as the value it stands for.
    #[test]
    fn whole_numbers_of_any_size_are_read(n in any::<i128>()) {
        let sign = if n < 0 { "-" } else { "" };
        let hex = format!("{sign}{:x}", n.unsigned_abs());
        prop_assert_eq!(json::read(&n.to_string()), Some(Value::Int(hex)));
    }

    #[test]
    fn any_text_is_read_or_refused_as_by_the_library(text in "[\\[\\]{}:,\"\\\\0-9.eE+\\- a-u]{0,12}") {
        let library = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        let ours = json::read(&text).is_some();
        // The library does not look into strings that it throws away.
        prop_assert!(!ours || library, "{text}");
        if !text.contains('"') {
            prop_assert_eq!(ours, library, "{}", text);
        }
    }
}
