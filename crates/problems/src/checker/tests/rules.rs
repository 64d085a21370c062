//! The rules of data sets and packages: exact, tokens whatever the lines, numbers, lines in any order.

use super::*;

fn with(case_sensitive: bool, white_space: WhiteSpace, numbers: Option<Numbers>) -> Checker {
    Checker::Tokens {
        case_sensitive,
        white_space,
        numbers,
    }
}

fn any_order() -> Checker {
    Checker::AnyOrder {
        case_sensitive: true,
    }
}

#[test]
fn exact_is_every_byte() {
    assert!(same(&Checker::Exact, "a \n", "a \n"));
    for got in ["a\n", "a \r\n", "a ", "A \n", "a \n\n", ""] {
        assert!(!same(&Checker::Exact, "a \n", got), "{got:?}");
    }
    // What differs can be seen.
    let found = difference(&Checker::Exact, "x\na \n", "x\na\n");
    assert_eq!(
        (found.line, found.expected.as_deref(), found.got.as_deref()),
        (2, Some("a \\n"), Some("a\\n"))
    );
    let found = difference(&Checker::Exact, "1\n", "1");
    assert_eq!(
        (found.line, found.expected.as_deref(), found.got.as_deref()),
        (1, Some("1\\n"), Some("1"))
    );
    let found = difference(&Checker::Exact, "1\n", "1\n2");
    assert_eq!(
        (found.line, found.expected, found.got.as_deref()),
        (2, None, Some("2"))
    );
    let long = "y".repeat(10_000);
    let found = difference(
        &Checker::Exact,
        &format!("{long}a{long}"),
        &format!("{long}b{long}"),
    );
    assert!(found.got.expect("a line").contains('b'));
}

#[test]
fn code_contests_compares_as_its_tools_do() {
    let rule = Checker::code_contests();
    for (expected, got) in [
        ("1 2\n3\n", "1\n2 3"),
        ("YES", "yes"),
        ("0.5", "0.500009"),
        ("1", "1.000001"),
        ("1.0", "1"),
        ("1e3", "1000"),
        (
            "10000000000000000000000000001",
            "10000000000000000000000000001",
        ),
        ("-0", "0"),
        ("", "\n \n"),
    ] {
        assert!(same(&rule, expected, got), "{expected:?} {got:?}");
    }
    for (expected, got) in [
        ("1 2", "12"),
        ("1 2", "1"),
        ("1", "1 2"),
        ("0.5", "0.50002"),
        // Within 1e-5 of each other, relatively; absolutely they are not.
        ("1000000.5", "1000001.0"),
        (
            "10000000000000000000000000001",
            "10000000000000000000000000002",
        ),
        ("1", "x"),
        ("nan", "1"),
        ("a", "a\u{0}"),
    ] {
        assert!(!same(&rule, expected, got), "{expected:?} {got:?}");
    }
}

#[test]
fn each_rule_of_tokens_is_a_setting() {
    let numbers = |integers_exact| {
        Some(Numbers {
            abs: 1.5,
            rel: 0.0,
            integers_exact,
        })
    };
    assert!(same(&with(true, WhiteSpace::Any, numbers(false)), "3", "4"));
    assert!(!same(&with(true, WhiteSpace::Any, numbers(true)), "3", "4"));
    assert!(same(
        &with(true, WhiteSpace::Any, numbers(true)),
        "3",
        "4.0"
    ));
    assert!(!same(
        &with(true, WhiteSpace::Lines, numbers(false)),
        "3 3",
        "3\n3"
    ));
    assert!(same(
        &with(true, WhiteSpace::Any, numbers(false)),
        "3 3",
        "3\n3"
    ));
    let exact = with(false, WhiteSpace::Exact, numbers(false));
    assert!(same(&exact, "a  1\n", "A  2\n"));
    for got in ["a 1\n", "a  1", "a  1\n ", " a  1\n", "a  1\r\n"] {
        assert!(!same(&exact, "a  1\n", got), "{got:?}");
    }
    let read: Checker = serde_json::from_str(
        r#"{"kind": "tokens", "case_sensitive": false, "white_space": "any", "numbers": {"abs": 1e-5, "integers_exact": true}}"#,
    )
    .expect("readable");
    assert_eq!(read, Checker::code_contests());
    assert_eq!(
        serde_json::to_string(&TOKENS).expect("JSON"),
        r#"{"kind":"tokens","case_sensitive":true}"#
    );
    let bad = with(
        true,
        WhiteSpace::Any,
        Some(Numbers {
            abs: f64::NAN,
            rel: 0.0,
            integers_exact: false,
        }),
    );
    assert!(matches!(
        bad.compare(b"1", b"1"),
        Err(CheckerError::Tolerance { field: "abs", .. })
    ));
}

#[test]
fn differences_of_tokens_are_shown_by_line() {
    let rule = Checker::code_contests();
    let found = difference(&rule, "1 2 3 4", "1\r\n2\r\n9 4\n");
    assert_eq!(
        (found.line, found.expected.as_deref(), found.got.as_deref()),
        (3, Some("1 2 3 4"), Some("9 4"))
    );
    let found = difference(&rule, "1\n2\n3\n", "1 2\n");
    assert_eq!((found.expected.as_deref(), found.got), (Some("3"), None));
    let found = difference(&rule, "1\n", "1\n\n5\n");
    assert_eq!(
        (found.line, found.expected, found.got.as_deref()),
        (3, None, Some("5"))
    );
}

#[test]
fn lines_may_come_in_any_order_but_as_often_as_expected() {
    let rule = any_order();
    for got in ["b\na 1\na 1\n", "\n a  1\r\n\n b\na 1"] {
        assert!(same(&rule, "a 1\nb\na 1\n", got), "{got:?}");
    }
    for got in [
        "a 1\nb\n",
        "a 1\nb\nb\n",
        "a 1\nb\na1\n",
        "a 1\nb\na 1\na 1\n",
        "a 1 b a 1",
        "",
    ] {
        assert!(!same(&rule, "a 1\nb\na 1\n", got), "{got:?}");
    }
    assert!(!same(&rule, "A", "a"));
    assert!(same(
        &Checker::AnyOrder {
            case_sensitive: false
        },
        "A\nb",
        "B\na"
    ));
    let found = difference(&rule, "a\nb\nb\n", "b\n\nb\nb\na\n");
    assert_eq!(
        (found.line, found.expected, found.got.as_deref()),
        (4, None, Some("b"))
    );
    let found = difference(&rule, "a\nb\nc\n", "c\na\n");
    assert_eq!(
        (found.line, found.expected.as_deref(), found.got),
        (3, Some("b"), None)
    );
}

#[test]
fn validators_are_not_compared_but_run() {
    let checker: Checker = serde_json::from_str(
        r#"{"kind": "validator", "language": "python", "entry": "v.py", "files": [{"path": "v.py", "text": ""}],
            "flags": ["a"], "group_flags": {"secret/x": ["b"], "secret/x/1": []}}"#,
    )
    .expect("readable");
    assert_eq!(checker.compare(b"1", b"1"), Err(CheckerError::Validator));
    let Checker::Validator(validator) = &checker else {
        panic!("a validator")
    };
    assert_eq!(validator.flags_for("secret/y"), ["a"]);
    assert_eq!(validator.flags_for("secret/xy"), ["a"]);
    assert_eq!(validator.flags_for("secret/x/2"), ["b"]);
    assert_eq!(validator.flags_for("secret/x/1"), Vec::<String>::new());
    assert_eq!(validator.wrong(), None);
    for path in ["../v.py", "/v.py", "a//b", ""] {
        let mut bad = validator.clone();
        bad.files[0].path = path.to_owned();
        assert_eq!(
            bad.wrong().map(|(field, _)| field).as_deref(),
            Some("checker.files[0].path"),
            "{path}"
        );
    }
    let lost = crate::Validator {
        entry: "w.py".into(),
        ..validator.clone()
    };
    assert_eq!(
        lost.wrong().map(|(field, _)| field).as_deref(),
        Some("checker.entry")
    );
}

/// All rules, those that are compared otherwise included.
fn rules() -> impl Strategy<Value = Checker> {
    let numbers = prop::option::of((0.0..1.0, 0.0..1.0, any::<bool>()));
    let spaces = prop::sample::select(vec![WhiteSpace::Lines, WhiteSpace::Any, WhiteSpace::Exact]);
    prop_oneof![
        Just(Checker::Exact),
        Just(any_order()),
        (any::<bool>(), spaces, numbers).prop_map(|(case, spaces, numbers)| {
            with(
                case,
                spaces,
                numbers.map(|(abs, rel, integers_exact)| Numbers {
                    abs,
                    rel,
                    integers_exact,
                }),
            )
        }),
    ]
}

/// Sorted lines of tokens.
fn plain_lines(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut lines = plain_tokens(text);
    lines.sort();
    lines
}

proptest! {
    #[test]
    fn the_same_is_the_same_and_a_difference_names_a_line(rule in rules(), expected in output(), got in output()) {
        prop_assert_eq!(rule.compare(&expected, &expected), Ok(Comparison::Same));
        match rule.compare(&expected, &got).expect("usable") {
            Comparison::Same => {}
            Comparison::Differs(found) => {
                prop_assert!(expected != got);
                prop_assert!(found.line >= 1 && found.line <= Lines::new(&got).count() + 1, "{:?}", found);
                prop_assert!(found.expected.is_some() || found.got.is_some(), "{:?}", found);
            }
        }
    }

    #[test]
    fn any_white_space_is_the_plain_rule(expected in output(), got in output()) {
        let rule = with(true, WhiteSpace::Any, None);
        let flat = |text: &[u8]| plain_tokens(text).concat();
        prop_assert_eq!(rule.compare(&expected, &got).expect("usable").is_same(), flat(&expected) == flat(&got));
    }

    #[test]
    fn exact_white_space_without_numbers_is_exact(expected in output(), got in output()) {
        let rule = with(true, WhiteSpace::Exact, None);
        prop_assert_eq!(rule.compare(&expected, &got).expect("usable").is_same(), expected == got);
    }

    #[test]
    fn any_order_is_the_plain_rule(expected in output(), got in output()) {
        let found = any_order().compare(&expected, &got).expect("usable").is_same();
        prop_assert_eq!(found, plain_lines(&expected) == plain_lines(&got));
    }

    #[test]
    fn any_order_takes_shuffled_lines(lines in prop::collection::vec("[ab1 ]{0,4}", 0..12), seed in any::<u64>()) {
        let mut shuffled = lines.clone();
        shuffled.sort_by_key(|line| (seed ^ line.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ line.bytes().map(u64::from).sum::<u64>());
        prop_assert!(same(&any_order(), &lines.join("\n"), &shuffled.join("\n")));
    }
}
