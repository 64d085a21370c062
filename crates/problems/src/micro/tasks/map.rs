//! "Read integers. Print each doubled."

use super::{
    Ask, Dim, Draw, GIVEN, MicroConfig, REVERSED, Task, TaskName, Variant, join, show_numbers,
    turn, turn_code, wrap, wrap_code,
};

pub(super) fn table(config: &MicroConfig) -> Task {
    Task {
        name: TaskName::Map,
        noun: "integers",
        dims: [
            Dim::new("order", &[GIVEN, REVERSED]),
            Dim::new("separator", &config.separators),
            Dim::new("brackets", &config.brackets),
        ],
        variants: vec![
            Variant {
                name: "doubled",
                phrases: [
                    "each doubled",
                    "every number doubled",
                    "all of them doubled",
                ],
                code: "*2",
                rule: |x| x.checked_mul(2),
            },
            Variant {
                name: "plus 1",
                phrases: ["each plus 1", "every number plus 1", "all of them plus 1"],
                code: "+1",
                rule: |x| x.checked_add(1),
            },
            Variant {
                name: "squared",
                phrases: [
                    "each squared",
                    "every number squared",
                    "all of them squared",
                ],
                code: "**2",
                rule: |x| x.checked_mul(x),
            },
        ],
        draw,
        show: show_numbers,
        solve: |variant, input, [order, separator, brackets]| {
            let mut numbers: Vec<u32> = input.iter().filter_map(|&x| (variant.rule)(x)).collect();
            turn(&mut numbers, order);
            wrap(&join(&numbers, separator), brackets)
        },
        program: |variant, [order, separator, brackets]| {
            let read = format!(
                "a=[int(x){} for x in input().split()]{}",
                variant.code,
                turn_code(order)
            );
            format!(
                "{read}\nprint({})\n",
                wrap_code(&format!("'{separator}'.join(map(str,a))"), brackets)
            )
        },
    }
}

/// A public input begins with 0 and has no other, so that the first or last item of the output tells the order at a
/// glance.
fn draw(ask: &Ask, draw: &mut Draw) -> Vec<u32> {
    let count = draw.between(ask.count.0, ask.count.1);
    let mut input = draw.distinct(1, if ask.public { 9 } else { 99 }, count);
    if ask.public
        && let Some(first) = input.first_mut()
    {
        *first = 0;
    }
    input
}
