//! "Read integers. Print the even ones."

use super::{
    Ask, Dim, Draw, GIVEN, MicroConfig, REVERSED, Task, TaskName, Variant, join, show_numbers,
    turn, turn_code, wrap, wrap_code,
};

pub(super) fn table(config: &MicroConfig) -> Task {
    Task {
        name: TaskName::Filter,
        noun: "integers",
        dims: [
            Dim::new("order", &[GIVEN, REVERSED]),
            Dim::new("separator", &config.separators),
            Dim::new("brackets", &config.brackets),
        ],
        variants: vec![
            Variant {
                name: "even",
                phrases: ["the even ones", "only even numbers", "all that are even"],
                code: "%2==0",
                rule: |x| (x % 2 == 0).then_some(x),
            },
            Variant {
                name: "odd",
                phrases: ["the odd ones", "only odd numbers", "all that are odd"],
                code: "%2==1",
                rule: |x| (x % 2 == 1).then_some(x),
            },
            Variant {
                name: "above 5",
                phrases: [
                    "the ones above 5",
                    "only numbers above 5",
                    "all that are above 5",
                ],
                code: ">5",
                rule: |x| (x > 5).then_some(x),
            },
        ],
        draw,
        show: show_numbers,
        solve: |variant, input, [order, separator, brackets]| {
            let mut kept: Vec<u32> = input.iter().filter_map(|&x| (variant.rule)(x)).collect();
            turn(&mut kept, order);
            wrap(&join(&kept, separator), brackets)
        },
        program: |variant, [order, separator, brackets]| {
            format!(
                "a=[x for x in input().split() if int(x){}]{}\nprint({})\n",
                variant.code,
                turn_code(order),
                wrap_code(&format!("'{separator}'.join(a)"), brackets)
            )
        },
    }
}

/// At least two numbers that stay, which show order and separator, and one that goes. In a public input the first that
/// stays is the least there is, so that the first or last item of the output tells the order at a glance. The first
/// hidden input also holds the border 5, so that `>=` in place of `>` fails.
fn draw(ask: &Ask, draw: &mut Draw) -> Vec<u32> {
    let keeps = |&x: &u32| (ask.variant.rule)(x).is_some();
    let highest = if ask.public { 9 } else { 99 };
    let (mut stay, mut go): (Vec<u32>, Vec<u32>) = (0..=highest).partition(keeps);
    let least = stay.first().copied();
    draw.shuffle(&mut stay);
    draw.shuffle(&mut go);
    let count = draw.between(ask.count.0, ask.count.1).max(3);
    let kept = draw.between(2, count - 1) as usize;
    let mut input = stay;
    if ask.public {
        input.sort_by_key(|&x| Some(x) != least);
    }
    input.truncate(kept);
    go.truncate(count as usize - kept);
    // The border goes, too.
    if ask.index == 0
        && !ask.public
        && !keeps(&5)
        && !go.contains(&5)
        && let Some(last) = go.last_mut()
    {
        *last = 5;
    }
    for number in go {
        let places = u32::try_from(input.len()).unwrap_or(0);
        input.insert(draw.between(0, places) as usize, number);
    }
    input
}
