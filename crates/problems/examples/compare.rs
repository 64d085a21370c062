//! How long checkers take: two outputs of the given size, the same but for white space or the writing of numbers, so that
//! nothing can be skipped. `cargo run --release -p rlef-problems --example compare [MEBIBYTES]`

use rlef_problems::{Checker, Numbers, WhiteSpace};
use std::time::Instant;

fn main() {
    let mebibytes = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(64);
    let bytes: usize = mebibytes << 20;
    let tokens = |white_space, numbers| Checker::Tokens {
        case_sensitive: true,
        white_space,
        numbers,
    };
    let near = Some(Numbers {
        abs: 1e-6,
        rel: 1e-6,
        integers_exact: false,
    });
    let any_order = Checker::AnyOrder {
        case_sensitive: true,
    };
    // Lines of eight whole numbers, of one number with six digits after the point, and of words.
    let integers = fill(bytes, |i| {
        format!(
            "{}{}",
            i.wrapping_mul(2_654_435_761) % 1_000_000,
            if i % 8 == 7 { "\n" } else { " " }
        )
    });
    let decimals = fill(bytes, |i| {
        format!(
            "{}.{:06}\n",
            i % 1000,
            i.wrapping_mul(2_654_435_761) % 1_000_000
        )
    });
    let words = fill(bytes, |i| {
        format!("w{:x} ", i.wrapping_mul(2_654_435_761) % 0xffff_ffff)
    });
    println!("{mebibytes} MiB against {mebibytes} MiB");
    let run = |name: &str, checker: &Checker, expected: &[u8], got: &[u8]| {
        let start = Instant::now();
        let found = checker.compare(expected, got).map(|found| found.is_same());
        println!(
            "{name:<44} {:6.3} s  {found:?}",
            start.elapsed().as_secs_f64()
        );
    };
    let crlf = |text: &[u8]| -> Vec<u8> {
        text.iter()
            .flat_map(|&b| {
                if b == b'\n' {
                    vec![b' ', b'\n']
                } else {
                    vec![b]
                }
            })
            .collect()
    };
    let mut damaged = integers.clone();
    if let Some(last) = damaged.iter().rposition(u8::is_ascii_digit) {
        damaged[last] = b'x';
    }
    let mut front = integers.clone();
    front.insert(0, b' ');
    run(
        "exact, the same",
        &Checker::Exact,
        &integers,
        &integers.clone(),
    );
    run(
        "exact, last byte wrong",
        &Checker::Exact,
        &integers,
        &damaged,
    );
    run(
        "lines, blanks at their ends",
        &Checker::Lines,
        &integers,
        &crlf(&integers),
    );
    run(
        "tokens by lines, a blank in front",
        &tokens(WhiteSpace::Lines, None),
        &integers,
        &front,
    );
    run(
        "tokens, a blank in front",
        &tokens(WhiteSpace::Any, None),
        &integers,
        &front,
    );
    run(
        "tokens, blanks at ends of lines",
        &tokens(WhiteSpace::Any, None),
        &integers,
        &crlf(&integers),
    );
    run(
        "code_contests, words, a blank in front",
        &Checker::code_contests(),
        &words,
        &[b" ", words.as_slice()].concat(),
    );
    let zeros: Vec<u8> = decimals
        .iter()
        .flat_map(|&b| {
            if b == b'\n' {
                vec![b'0', b'\n']
            } else {
                vec![b]
            }
        })
        .collect();
    run(
        "numbers, each written otherwise",
        &tokens(WhiteSpace::Any, near),
        &decimals,
        &zeros,
    );
    run(
        "code_contests, each number otherwise",
        &Checker::code_contests(),
        &decimals,
        &zeros,
    );
    let mut lines: Vec<&[u8]> = decimals.split_inclusive(|&b| b == b'\n').collect();
    lines.reverse();
    run(
        "any order, lines reversed",
        &any_order,
        &decimals,
        &lines.concat(),
    );
    lines.pop();
    run(
        "any order, one line missing",
        &any_order,
        &decimals,
        &lines.concat(),
    );
}

fn fill(bytes: usize, mut part: impl FnMut(u64) -> String) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + 64);
    let mut i = 0;
    while text.len() < bytes {
        text.extend_from_slice(part(i).as_bytes());
        i += 1;
    }
    text.truncate(bytes);
    text
}
