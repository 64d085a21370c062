//! "Read integers. Print them sorted."

use super::{
    ASCENDING, Ask, DESCENDING, Dim, Draw, MicroConfig, Task, TaskName, Variant, join,
    show_numbers, turn, turn_code, wrap, wrap_code,
};

pub(super) fn table(config: &MicroConfig) -> Task {
    Task {
        name: TaskName::Sort,
        noun: "integers",
        dims: [
            Dim::new("order", &[ASCENDING, DESCENDING]),
            Dim::new("separator", &config.separators),
            Dim::new("brackets", &config.brackets),
        ],
        variants: vec![Variant {
            name: "sorted",
            phrases: ["them sorted", "the numbers sorted", "the sorted integers"],
            code: "",
            rule: Some,
        }],
        draw,
        show: show_numbers,
        solve: |_, input, [order, separator, brackets]| {
            let mut numbers = input.to_vec();
            numbers.sort_unstable();
            turn(&mut numbers, order);
            wrap(&join(&numbers, separator), brackets)
        },
        program: |_, [order, separator, brackets]| {
            let read = format!("a=sorted(map(int,input().split())){}", turn_code(order));
            format!(
                "{read}\nprint({})\n",
                wrap_code(&format!("'{separator}'.join(map(str,a))"), brackets)
            )
        },
    }
}

/// Numbers that are in neither order yet; hidden ones are drawn until sorting them as text would be wrong.
fn draw(ask: &Ask, draw: &mut Draw) -> Vec<u32> {
    let count = draw.between(ask.count.0, ask.count.1);
    let mut input = Vec::new();
    for _ in 0..100 {
        input = draw.distinct(
            u32::from(!ask.public),
            if ask.public { 9 } else { 99 },
            count,
        );
        if ask.public && !input.contains(&0) {
            // The least number there is: its place in the output tells the direction at a glance.
            let at = draw.between(0, count.saturating_sub(1)) as usize;
            if let Some(item) = input.get_mut(at) {
                *item = 0;
            }
        }
        let text_order = {
            let mut sorted = input.clone();
            sorted.sort_by_key(u32::to_string);
            sorted
        };
        let ordered = input.is_sorted() || input.iter().rev().is_sorted();
        if !ordered && (ask.public || !text_order.is_sorted()) {
            break;
        }
    }
    input
}
