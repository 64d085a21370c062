use super::*;
use proptest::prelude::*;

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

#[track_caller]
fn refused(result: Result<(), String>, needles: &[&str]) {
    let said = result.expect_err("refused");
    assert!(needles.iter().all(|n| said.contains(n)), "{said}");
    assert!(said.len() < 400, "{said}");
}

#[test]
fn nesting_is_bounded_in_arguments_and_results() {
    assert_eq!(check_expected(&nested(500)), Ok(()));
    assert_eq!(check_arguments(&nested(501)), Ok(()));
    refused(check_expected(&nested(501)), &["500", "[0][0]", "byte 501"]);
    refused(check_arguments(&nested(502)), &["500", "byte 502"]);
    for depth in [5000, 1_000_000] {
        let list = format!("[1, {}]", nested(depth));
        refused(check_arguments(&list), &["500", "[1][0]"]);
        let objects = format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        refused(check_expected(&objects), &["500", r#"["a"]["a"]"#]);
    }
    // Brackets in a text open nothing.
    let text = format!(r#"["\"{}"]"#, "[".repeat(5000));
    assert_eq!(check_arguments(&text), Ok(()));
}

#[test]
fn whole_numbers_are_as_long_as_python_reads() {
    let digits = |n: usize| "7".repeat(n);
    for sign in ["", "-"] {
        let arguments = |n| format!(r#"[1, {{"n": [2, {sign}{}]}}]"#, digits(n));
        assert_eq!(check_arguments(&arguments(4300)), Ok(()));
        let needles = ["4301 digits", "4300", r#"[1]["n"][1]"#];
        refused(check_arguments(&arguments(4301)), &needles);
    }
    let floats = format!("[{}.5, 1e5]", digits(5000));
    assert_eq!(check_arguments(&floats), Ok(()));
    // A program can return it.
    assert_eq!(check_expected(&digits(5000)), Ok(()));
}

#[test]
fn numbers_that_no_result_is_equal_to_are_refused() {
    for wrong in ["1e999", "-1e999", "[0, 1e309]", r#"{"a": 2E+400}"#] {
        refused(check_expected(wrong), &["infinite", "byte"]);
    }
    assert_eq!(check_expected("[1.7e308, 1e-999, 0e999]"), Ok(()));
}

#[test]
fn keys_are_given_once_in_each_object() {
    for (wrong, place) in [
        (r#"{"a": 1, "a": 1}"#, r#"["a"]"#),
        (
            r#"[1, {"b": {"a": 1, "c": [], "\u0061": 2}}]"#,
            r#"[1]["b"]["a"]"#,
        ),
    ] {
        refused(check_expected(wrong), &[r#""a" twice"#, place]);
    }
    let fine = r#"[{"a": {"a": 1}}, {"a": "a", "b": {}, "c": "b"}, "a", "a"]"#;
    assert_eq!(check_expected(fine), Ok(()));
    // Nothing of a key that moves a terminal about is shown.
    let said =
        check_expected("{\"\u{202e}\u{9b}\": 1, \"\u{202e}\u{9b}\": 2}").expect_err("refused");
    assert!(!said.contains(['\u{202e}', '\u{9b}']), "{said:?}");
}

#[test]
fn half_characters_are_refused() {
    for wrong in [
        r#""\ud800""#,
        r#"["x\udfff"]"#,
        r#"{"\ud800": 1}"#,
        r#""\udc00\ud800""#,
        r#""\ud800\ud800\udc00""#,
        r#""\\\uD834x""#,
    ] {
        refused(check_expected(wrong), &["surrogate", "\\u", "byte"]);
    }
    let fine = r#"["\ud83d\ude00", "\\ud800", "é", "\uffff"]"#;
    assert_eq!(check_expected(fine), Ok(()));
}

proptest! {
    #[test]
    fn any_text_is_walked(text in any::<String>(), json in "[\\[\\]{}\",:0-9e.u\\\\d-]{0,60}") {
        for text in [text, json] {
            let _ = (check_arguments(&text), check_expected(&text));
        }
    }
}
