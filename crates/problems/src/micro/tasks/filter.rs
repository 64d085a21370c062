//! "Read integers. Print the even ones." What to print when there are none is left open, so one more public test shows
//! it.

use super::{
    Ask, Dim, Draw, MicroConfig, Task, TaskName, Variant, join, show_numbers, wrap, wrap_code,
};

pub(super) fn table(config: &MicroConfig) -> Task {
    Task {
        name: TaskName::Filter,
        noun: "integers",
        dims: [
            Dim::new("nothing", &config.nothing),
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
        may_be_empty: true,
        draw,
        show: show_numbers,
        solve: |variant, input, [nothing, separator, brackets]| {
            let kept: Vec<u32> = input.iter().filter_map(|&x| (variant.rule)(x)).collect();
            if kept.is_empty() {
                nothing.to_owned()
            } else {
                wrap(&join(&kept, separator), brackets)
            }
        },
        // The word first: what a model writes next does not change the place where it has to choose it.
        program: |variant, [nothing, separator, brackets]| {
            format!(
                "a=[x for x in input().split() if int(x){}]\nprint('{nothing}' if not a else {})\n",
                variant.code,
                wrap_code(&format!("'{separator}'.join(a)"), brackets)
            )
        },
    }
}

/// Between two numbers that stay (two show the separator) and one that goes, the rest by chance. The first hidden input
/// also holds the border 5, so that `>=` in place of `>` fails.
fn draw(ask: &Ask, draw: &mut Draw) -> Vec<u32> {
    let keeps = |&x: &u32| (ask.variant.rule)(x).is_some();
    let highest = if ask.public { 9 } else { 99 };
    let (mut stay, mut go): (Vec<u32>, Vec<u32>) = (0..=highest).partition(keeps);
    draw.shuffle(&mut stay);
    draw.shuffle(&mut go);
    let count = draw.between(ask.count.0, ask.count.1) as usize;
    let mut input = Vec::new();
    if ask.nothing {
        input.extend(go.iter().take(count));
    } else {
        let most = stay.len().min(count.saturating_sub(1));
        let least = 2.min(most);
        let kept = draw.between(
            u32::try_from(least).unwrap_or(0),
            u32::try_from(most).unwrap_or(0),
        ) as usize;
        input.extend(stay.iter().take(kept));
        input.extend(go.iter().take(count - kept));
        // The last item is one that goes, like 5.
        if ask.index == 0
            && !ask.public
            && !keeps(&5)
            && !input.contains(&5)
            && let Some(last) = input.last_mut()
        {
            *last = 5;
        }
    }
    draw.shuffle(&mut input);
    input
}
