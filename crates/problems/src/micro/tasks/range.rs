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

/// As many numbers as asked for, counted with the end. A public range begins at 0, so that the first item of the output
/// tells the direction at a glance.
fn draw(ask: &Ask, draw: &mut Draw) -> Vec<u32> {
    let span = draw.between(ask.count.0, ask.count.1).saturating_sub(1);
    let first = if ask.public {
        0
    } else {
        draw.between(1, 99u32.saturating_sub(span))
    };
    vec![first, first + span]
}
