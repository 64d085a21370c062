//! "Read letters. Print them in one case."

use super::{
    Ask, Dim, Draw, GIVEN, MicroConfig, REVERSED, Task, TaskName, Variant, turn, turn_code,
};

const UPPER: &str = "upper";
const LOWER: &str = "lower";

pub(super) fn table(config: &MicroConfig) -> Task {
    Task {
        name: TaskName::Letters,
        noun: "letters",
        dims: [
            Dim::new("case", &[UPPER, LOWER]),
            Dim::new("order", &[GIVEN, REVERSED]),
            Dim::new("separator", &config.separators),
        ],
        variants: vec![Variant {
            name: "one case",
            phrases: [
                "them in one case",
                "the letters in one case",
                "all of them in one case",
            ],
            code: "",
            rule: Some,
        }],
        draw,
        show: |input| text(input).join(" "),
        solve: |_, input, [case, order, separator]| {
            let mut letters = input.to_vec();
            turn(&mut letters, order);
            let joined = text(&letters).join(separator);
            if case == UPPER {
                joined.to_uppercase()
            } else {
                joined.to_lowercase()
            }
        },
        program: |_, [case, order, separator]| {
            format!(
                "a=input().{case}().split(){}\nprint('{separator}'.join(a))\n",
                turn_code(order)
            )
        },
    }
}

/// Letters are carried as their code points.
fn text(input: &[u32]) -> Vec<String> {
    input
        .iter()
        .filter_map(|&code| char::from_u32(code))
        .map(String::from)
        .collect()
}

/// Different letters, at least one of each case. A public input begins with a or A, so that the first or last item of
/// the output tells the order at a glance.
fn draw(ask: &Ask, draw: &mut Draw) -> Vec<u32> {
    let count = draw.between(ask.count.0, ask.count.1);
    let mut letters = draw.distinct(u32::from('b'), u32::from('z'), count);
    if ask.public
        && let Some(first) = letters.first_mut()
    {
        *first = u32::from('a');
    }
    let upper = u32::from('a') - u32::from('A');
    let one_upper = draw.between(0, count.saturating_sub(1)) as usize;
    let one_lower = (one_upper + 1) % letters.len().max(1);
    for (at, letter) in letters.iter_mut().enumerate() {
        let raise = draw.coin();
        if at == one_upper || (raise && at != one_lower) {
            *letter -= upper;
        }
    }
    letters
}
