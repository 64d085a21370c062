//! "Read two integers. Print the numbers from first to second."

use super::{
    ASCENDING, Ask, DESCENDING, Dim, Draw, MicroConfig, Task, TaskName, Variant, join,
    show_numbers, turn, turn_code,
};

const INCLUSIVE: &str = "inclusive";
const EXCLUSIVE: &str = "exclusive";

pub(super) fn table(config: &MicroConfig) -> Task {
    Task {
        name: TaskName::Range,
        noun: "two integers",
        dims: [
            Dim::new("end", &[INCLUSIVE, EXCLUSIVE]),
            Dim::new("order", &[ASCENDING, DESCENDING]),
            Dim::new("separator", &config.separators),
        ],
        variants: vec![Variant {
            name: "range",
            phrases: [
                "the range they span",
                "the numbers from first to second",
                "all integers from first to second",
            ],
            code: "",
            rule: Some,
        }],
        may_be_empty: false,
        draw,
        show: show_numbers,
        solve: |_, input, [end, order, separator]| {
            let &[first, last] = input else {
                return String::new();
            };
            let mut numbers: Vec<u32> =
                (first..last.saturating_add(u32::from(end == INCLUSIVE))).collect();
            turn(&mut numbers, order);
            join(&numbers, separator)
        },
        program: |_, [end, order, separator]| {
            let more = if end == INCLUSIVE { "+1" } else { "" };
            format!(
                "a,b=map(int,input().split())\na=range(a,b{more}){}\nprint('{separator}'.join(map(str,a)))\n",
                turn_code(order)
            )
        },
    }
}

/// As many numbers as asked for, counted with the end.
fn draw(ask: &Ask, draw: &mut Draw) -> Vec<u32> {
    let span = draw.between(ask.count.0, ask.count.1).saturating_sub(1);
    let highest = if ask.public { 9u32 } else { 99 };
    let first = draw.between(0, highest.saturating_sub(span));
    vec![first, first + span]
}
