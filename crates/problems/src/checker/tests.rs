mod rules;

use super::*;
use proptest::prelude::*;

const TOKENS: Checker = tokens(true);

const fn tokens(case_sensitive: bool) -> Checker {
    Checker::Tokens {
        case_sensitive,
        white_space: WhiteSpace::Lines,
        numbers: None,
    }
}

fn float(abs: f64, rel: f64) -> Checker {
    Checker::Float {
        abs,
        rel,
        case_sensitive: true,
    }
}

fn same(checker: &Checker, expected: &str, got: &str) -> bool {
    checker
        .compare(expected.as_bytes(), got.as_bytes())
        .expect("a usable checker")
        .is_same()
}

fn difference(checker: &Checker, expected: &str, got: &str) -> Difference {
    match checker
        .compare(expected.as_bytes(), got.as_bytes())
        .expect("a usable checker")
    {
        Comparison::Differs(difference) => difference,
        Comparison::Same => panic!("{expected:?} and {got:?} are the same"),
    }
}

#[test]
fn tokens_keep_lines_and_ignore_the_amount_of_white_space() {
    for got in [
        "1 2\n3\n",
        "1 2\n3",
        "  1\t 2  \r\n3 \r\n\r\n",
        "\n\n1 2\n\n \n3\n\n",
        "1 2\r3",
    ] {
        assert!(same(&TOKENS, "1 2\n3\n", got), "{got:?}");
    }
    for got in [
        "1 2 3\n",
        "1\n2\n3\n",
        "12\n3\n",
        "1 2\n",
        "1 2\n3\n4\n",
        "1 2\n03\n",
        "",
        "1 2\n3\0\n",
    ] {
        assert!(!same(&TOKENS, "1 2\n3\n", got), "{got:?}");
    }
    assert!(same(&TOKENS, "", " \n\r\n"));
    assert!(!same(&TOKENS, "", "x"));
    assert!(!same(&TOKENS, "yes", "YES"));
    assert!(same(&tokens(false), "yes", "YES"));
    // A blank beyond ASCII is part of a token.
    assert!(!same(&TOKENS, "1 2", "1\u{a0}2"));
}

#[test]
fn lines_ignore_white_space_at_their_ends_only() {
    for got in ["a  b\n\n c", "a  b \r\n\r\n c\t\n\n \n"] {
        assert!(same(&Checker::Lines, "a  b\n\n c\n", got), "{got:?}");
    }
    for got in ["a b\n\n c", "a  b\n c", "a  b\n\nc", "\na  b\n\n c", "a  b"] {
        assert!(!same(&Checker::Lines, "a  b\n\n c\n", got), "{got:?}");
    }
}

#[test]
fn the_first_differing_line_is_named() {
    let text = |text: &str| Some(text.to_owned());
    for checker in [TOKENS, Checker::Lines, float(0.0, 0.0)] {
        let found = difference(&checker, "1\n2\n3\n", "1\n2\n4\n");
        assert_eq!(
            found,
            Difference {
                line: 3,
                expected: text("3"),
                got: text("4")
            }
        );
        let ended = difference(&checker, "1\n2\n3\n", "1\n");
        assert_eq!(
            ended,
            Difference {
                line: 2,
                expected: text("2"),
                got: None
            }
        );
        let more = difference(&checker, "1\n", "1\n7 8\n9");
        assert_eq!(
            more,
            Difference {
                line: 2,
                expected: None,
                got: text("7 8")
            }
        );
        let nothing = difference(&checker, "1\n", "");
        assert_eq!(
            nothing,
            Difference {
                line: 1,
                expected: text("1"),
                got: None
            }
        );
    }
    // Tokens skip empty lines, but the number is that of the line as printed.
    assert_eq!(difference(&TOKENS, "1\n2", "1\r\n\r\n\r\n3").line, 4);
    assert_eq!(difference(&TOKENS, "1 2", "1 2 3").got, text("1 2 3"));
}

#[test]
fn long_lines_are_shown_around_the_difference() {
    let expected = "x ".repeat(1_000_000);
    let got = format!("{}y {}", "x ".repeat(500_000), "x ".repeat(499_999));
    let found = difference(&TOKENS, &expected, &got).got.expect("a line");
    assert!(
        found.starts_with('…') && found.ends_with('…') && found.contains('y'),
        "{found}"
    );
    assert!(found.chars().count() <= EXCERPT + 2);
    // Cut within a character of two bytes.
    let found = difference(&Checker::Lines, "short", &"é".repeat(1000))
        .got
        .expect("a line");
    assert_eq!(found, format!("{}…", "é".repeat(EXCERPT)));
}

#[test]
fn numbers_may_differ_by_the_tolerance() {
    let absolute = float(1e-6, 0.0);
    for (expected, got) in [
        ("0.5", "0.5000009"),
        ("2", "2.000001"),
        ("1e3", "1000"),
        ("-0.0", "0"),
        ("1.", "+1"),
        (".5", "5E-1"),
        ("0", "-0.000001"),
        ("0.1", "0.1000000000000000000001"),
    ] {
        assert!(same(&absolute, expected, got), "{expected} {got}");
    }
    for (expected, got) in [
        ("0.5", "0.5000011"),
        ("1", "1.1"),
        ("1", "x"),
        ("1", ""),
        ("1", "1 1"),
        ("x", "1"),
    ] {
        assert!(!same(&absolute, expected, got), "{expected} {got}");
    }
    assert!(same(&float(0.0, 1e-3), "1000", "1000.9"));
    assert!(!same(&float(0.0, 1e-3), "1000", "1001.1"));
    assert!(same(&float(0.0, 1e-3), "-1000", "-999.1"));
    // Either tolerance is enough.
    assert!(same(&float(1e-3, 1e-9), "0", "0.001"));
    assert!(same(&float(1e-9, 1e-3), "1e9", "1000000001"));
    assert!(same(
        &Checker::Float {
            abs: 0.0,
            rel: 0.0,
            case_sensitive: false
        },
        "Yes 1",
        "YES 1.0"
    ));
    assert!(!same(&float(1.0, 0.0), "1 2", "1\n2"));
}

#[test]
fn words_that_other_parsers_take_for_numbers_are_words() {
    let coarse = float(LARGEST_ABS, LARGEST_REL);
    for got in [
        "nan",
        "NaN",
        "-nan",
        "inf",
        "infinity",
        "-Infinity",
        "1_0",
        "0x1",
        "0x1p3",
        "1e",
        "1e+",
        "e5",
        ".",
        "-",
        "+",
        "--1",
        "1.2.3",
        "1,5",
        "1f",
        "１",
        "",
        "1e1e1",
        "1e9999999999999999999",
    ] {
        assert!(!same(&coarse, "1", got), "{got}");
        assert!(same(&coarse, got, got), "{got}");
    }
    assert!(!same(&coarse, "nan", "1"));
    assert!(!same(&coarse, "inf", "1e999"));
    assert!(same(&coarse, "1", "2"));
}

#[test]
fn without_a_tolerance_numbers_are_compared_exactly() {
    let exact = float(0.0, 0.0);
    for (expected, got) in [
        ("3", "3.00"),
        ("3", "30e-1"),
        ("0.1", "1e-1"),
        ("1e400", "10e399"),
        ("100000000000000000000", "1e20"),
        ("-0", "0e7"),
    ] {
        assert!(same(&exact, expected, got), "{expected} {got}");
    }
    // These are the same in binary.
    for (expected, got) in [
        ("9007199254740993", "9007199254740992"),
        ("0.1", "0.10000000000000000001"),
        ("1e400", "1e401"),
        ("1e-400", "0"),
        ("1", "-1"),
    ] {
        assert!(!same(&exact, expected, got), "{expected} {got}");
    }
    assert!(!same(
        &float(1e-6, 0.0),
        "9007199254740993",
        "9007199254740992"
    ));
    assert!(!same(&float(1e-6, 1e-6), "1e400", "1e401"));
}

#[test]
fn unusable_checkers_are_errors() {
    let custom: Checker =
        serde_json::from_str(r#"{"kind": "custom", "program": "check.py"}"#).expect("readable");
    assert_eq!(custom.compare(b"1", b"1"), Err(CheckerError::Custom));
    assert_eq!(
        serde_json::to_string(&custom).expect("JSON"),
        r#"{"kind":"custom","program":"check.py"}"#
    );
    let negative = float(-1.0, 0.0).compare(b"1", b"1").expect_err("an error");
    assert!(negative.to_string().contains("`abs` is -1"));
    assert!(matches!(
        float(0.0, f64::NAN).compare(b"1", b"1"),
        Err(CheckerError::Tolerance { field: "rel", value, .. }) if value.is_nan()
    ));
    assert!(serde_json::from_str::<Checker>(r#"{"kind": "float", "abs": 0.1, "eps": 1}"#).is_err());
    assert!(serde_json::from_str::<Checker>(r#"{"kind": "exactly"}"#).is_err());
}

#[test]
fn tolerances_out_of_range_are_refused_with_the_range() {
    let value = |abs, rel| Checker::Value {
        abs,
        rel,
        numbers_by_value: true,
    };
    for make in [float as fn(f64, f64) -> Checker, value] {
        for good in [0.0, -0.0, 1e-300, 1e-9, 0.5, 1.0] {
            assert_eq!(make(good, good).check(), Ok(()), "{good}");
        }
        assert_eq!(make(1e9, 0.0).check(), Ok(()));
        for wrong in [1e308, 1.1e9, f64::MAX, f64::INFINITY, f64::NAN, -1e-300] {
            let abs = make(wrong, 0.0).check().expect_err("refused").to_string();
            let range = abs.contains("`abs`") && abs.contains("from 0 to 1000000000.0");
            assert!(range && abs.len() < 120, "{abs}");
            let rel = make(0.0, wrong).check().expect_err("refused").to_string();
            assert!(
                rel.contains("`rel`") && rel.contains("from 0 to 1.0"),
                "{rel}"
            );
        }
        assert!(make(0.0, 1.5).check().is_err());
    }
}

/// Ten megabytes of the shapes that make careless comparisons quadratic; the bound is loose for slow machines.
#[test]
fn time_grows_with_the_length_only() {
    let start = std::time::Instant::now();
    for unit in ["\n", " ", "\r", "1", "1 ", "1\n", " \n", "0."] {
        let text = unit.repeat(10_000_000 / unit.len());
        let other = format!("{text}x");
        for checker in [
            TOKENS,
            Checker::Lines,
            float(1e-6, 1e-6),
            Checker::Exact,
            Checker::code_contests(),
            Checker::AnyOrder {
                case_sensitive: false,
            },
        ] {
            assert!(same(&checker, &text, &text));
            assert!(!same(&checker, &text, &other));
        }
    }
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

fn checkers() -> impl Strategy<Value = Checker> {
    prop_oneof![
        Just(Checker::Lines),
        any::<bool>().prop_map(tokens),
        (0.0..1.0, 0.0..1.0, any::<bool>()).prop_map(|(abs, rel, case_sensitive)| Checker::Float {
            abs,
            rel,
            case_sensitive
        }),
    ]
}

/// Few different bytes, so that white space, numbers and line breaks meet often.
fn output() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        prop::collection::vec(
            prop::sample::select(b" \n\r\t01.eE+-aA\xc3\xa9".to_vec()),
            0..40
        ),
    ]
}

/// The rule of tokens, written as plainly as it can be.
fn plain_tokens(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let blank = |byte: &u8| b" \t\x0b\x0c".contains(byte);
    let lines = text.split(|byte| b"\r\n".contains(byte));
    let tokens = lines.map(|line| {
        line.split(blank)
            .filter(|t| !t.is_empty())
            .map(<[u8]>::to_vec)
            .collect::<Vec<_>>()
    });
    tokens.filter(|line| !line.is_empty()).collect()
}

proptest! {
    #[test]
    fn an_output_equals_itself(checker in checkers(), text in output()) {
        prop_assert_eq!(checker.compare(&text, &text), Ok(Comparison::Same));
    }

    #[test]
    fn tokens_follow_the_plain_rule(expected in output(), got in output()) {
        let comparison = TOKENS.compare(&expected, &got).expect("usable");
        prop_assert_eq!(comparison.is_same(), plain_tokens(&expected) == plain_tokens(&got));
        let back = TOKENS.compare(&got, &expected).expect("usable");
        prop_assert_eq!(comparison.is_same(), back.is_same());
    }

    #[test]
    fn white_space_at_the_ends_never_counts(checker in checkers(), text in output()) {
        let mut more = text.clone();
        more.extend_from_slice(b" \r\n\n\t ");
        prop_assert_eq!(checker.compare(&text, &more), Ok(Comparison::Same));
        prop_assert_eq!(checker.compare(&more, &text), Ok(Comparison::Same));
    }

    #[test]
    fn looser_checkers_accept_what_stricter_ones_do(expected in output(), got in output()) {
        let accepts = |checker: Checker| checker.compare(&expected, &got).expect("usable").is_same();
        let without_case = accepts(tokens(false));
        prop_assert!(!accepts(TOKENS) || without_case);
        prop_assert!(!accepts(TOKENS) || accepts(float(0.0, 0.0)));
        prop_assert!(!accepts(float(0.0, 0.0)) || accepts(float(0.5, 0.5)));
    }

    #[test]
    fn a_difference_names_a_line_of_the_output(checker in checkers(), expected in output(), got in output()) {
        if let Comparison::Differs(found) = checker.compare(&expected, &got).expect("usable") {
            prop_assert!(found.line >= 1 && found.line <= Lines::new(&got).count() + 1);
            prop_assert!(found.expected.is_some() || found.got.is_some());
        }
    }

    #[test]
    fn near_numbers_are_accepted_and_far_ones_are_not(value in -1e9..1e9f64, off in -2.0..2.0f64) {
        prop_assume!((off.abs() - 1.0).abs() > 1e-3);
        let near = same(&float(1e-3, 0.0), &format!("{value}"), &format!("{:.12}", value + off * 1e-3));
        prop_assert_eq!(near, off.abs() < 1.0);
    }
}
