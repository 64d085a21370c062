//! Properties of the measure, and what the index finds.

use super::*;
use proptest::prelude::*;

const A: &str = "There are n stones in a row and each stone has a weight. Find the heaviest stone that stands between \
two lighter ones and print its place, counted from the left, or zero if no such stone exists in the row.";

fn index(texts: &[&str]) -> SimilarTexts {
    let mut index = SimilarTexts::new(Similarity::default());
    for text in texts {
        index.add(text);
    }
    index
}

proptest! {
    #[test]
    fn the_same_text_is_one_in_either_measure(text in "\\PC{0,200}", words in 1usize..9) {
        let same = overlap(words, &text, &text);
        prop_assert_eq!((same.jaccard(), same.containment()), (1.0, 1.0));
        prop_assert!(same.shared > 0);
    }

    #[test]
    fn it_does_not_matter_which_one_is_first(a in "[a-c ]{0,60}", b in "[a-c ]{0,60}", words in 1usize..6) {
        let (one, other) = (overlap(words, &a, &b), overlap(words, &b, &a));
        prop_assert_eq!(one.shared, other.shared);
        prop_assert_eq!(one.jaccard(), other.jaccard());
        prop_assert_eq!(one.containment(), other.containment());
        prop_assert!((0.0..=1.0).contains(&one.jaccard()));
        prop_assert!(one.jaccard() <= one.containment() && one.containment() <= 1.0);
    }

    #[test]
    fn texts_without_a_common_word_share_nothing(a in "[a-m]{1,5}( [a-m]{1,5}){0,30}", b in "[n-z]{1,5}( [n-z]{1,5}){0,30}") {
        prop_assert_eq!(overlap(3, &a, &b).shared, 0);
        prop_assert_eq!(overlap(3, &a, &b).jaccard(), 0.0);
    }

    #[test]
    fn the_index_finds_what_comparing_all_pairs_finds(texts in prop::collection::vec("[a-c]( [a-c]){0,25}", 0..12)) {
        let settings = Similarity { words: 2, common: 1000, near: 0.4, contained: 0.7, least_shared: 3 };
        let mut index = SimilarTexts::new(settings);
        texts.iter().for_each(|text| index.add(text));
        let mut wanted = vec![];
        for (i, a) in texts.iter().enumerate() {
            for (j, b) in texts.iter().enumerate().skip(i + 1) {
                let o = overlap(2, a, b);
                let near = o.jaccard() >= 0.4 || (o.containment() >= 0.7 && o.shared >= 3);
                if near && o.jaccard() < 1.0 {
                    wanted.push((i, j));
                }
            }
        }
        let found: Vec<_> = index.near(texts.len()).iter().map(|p| (p.first, p.second)).collect();
        prop_assert_eq!(found, wanted);
    }
}

#[test]
fn case_layout_and_punctuation_do_not_count() {
    let other = A.to_uppercase().replace(' ', "\n").replace(',', " —");
    assert_eq!(overlap(5, A, &other).jaccard(), 1.0);
    assert_eq!(index(&[A, "x y z", &other]).duplicates(), [vec![0, 2]]);
}

#[test]
fn a_text_with_a_few_other_words_is_near_and_one_on_another_subject_is_not() {
    let changed = A
        .replace("stone", "brick")
        .replace("brick that", "stone that");
    let within = format!(
        "Story: it rained for forty days in the valley where our heroes live. {A} Good luck, and mind the rain on your way home!"
    );
    let other =
        "Given a tree with n nodes, print the number of its leaves after removing the root.";
    let index = index(&[A, &changed, &within, other]);
    let near: Vec<_> = index.near(4).iter().map(|p| (p.first, p.second)).collect();
    assert!(near.contains(&(0, 2)), "{near:?}");
    assert!(!near.iter().any(|p| p.1 == 3), "{near:?}");
    let overlap = overlap(5, A, &within);
    assert_eq!(overlap.containment(), 1.0);
    assert!(overlap.jaccard() < 1.0);
}

#[test]
fn only_pairs_with_one_of_the_own_texts_are_wanted() {
    let longer = format!("{A} And print a line break.");
    let index = index(&["nothing of the kind is written here at all", A, &longer]);
    assert!(index.near(1).is_empty());
    assert_eq!(index.near(2).len(), 1);
}

#[test]
fn boilerplate_is_no_reason_to_compare_and_many_texts_take_no_long_time() {
    let mut index = SimilarTexts::new(Similarity::default());
    let start = std::time::Instant::now();
    for n in 0..15_000u64 {
        // The first 200 words are of this text alone, the others of all.
        let mut text = String::new();
        for word in 0..200u64 {
            let mixed = (n * 200 + word).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
            text.push_str(&format!("{mixed:x} "));
        }
        text.push_str(A);
        index.add(&text);
    }
    let copy = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";
    index.add(&format!("{copy} fifteen"));
    index.add(copy);
    let near = index.near(15_002);
    let pairs: Vec<_> = near.iter().map(|p| (p.first, p.second)).collect();
    assert_eq!(pairs, [(15_000, 15_001)]);
    // Comparing all pairs would take hours; this is a second or two, and tests run on busy machines.
    assert!(start.elapsed().as_secs() < 120, "{:?}", start.elapsed());
}
