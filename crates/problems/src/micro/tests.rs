use super::wordings::words_of;
use super::*;
use sha2::{Digest, Sha256};

fn set() -> MicroSet {
    generate(0).expect("the default family")
}

fn all(set: &MicroSet) -> impl Iterator<Item = &Problem> {
    set.train.iter().chain(&set.valid).chain(&set.test)
}

fn statements(problems: &[Problem]) -> BTreeSet<&str> {
    problems
        .iter()
        .map(|problem| problem.statement.as_str())
        .collect()
}

fn meta_text<'a>(problem: &'a Problem, key: &str) -> &'a str {
    problem
        .meta
        .get(key)
        .and_then(Value::as_str)
        .expect("meta text")
}

/// Changes of the family are deliberate: a trained checkpoint belongs to the digest that it was trained on.
#[test]
fn seed_zero_is_stable() {
    let set = set();
    let mut hash = Sha256::new();
    for problem in all(&set) {
        hash.update(serde_json::to_string(problem).expect("JSON"));
        hash.update("\n");
    }
    let digest: String = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    insta::assert_snapshot!(digest);
}

#[test]
fn one_problem_of_each_variant() {
    let set = set();
    let mut seen = BTreeSet::new();
    let mut shown = String::new();
    let mut problems: Vec<&Problem> = all(&set).collect();
    problems.sort_by(|a, b| a.id.cmp(&b.id));
    for problem in problems {
        let key = (meta_text(problem, "task"), meta_text(problem, "variant"));
        // Another combination for each variant, so that the snapshot shows many of them.
        if problem.meta["combo"] == (seen.len() * 3) % 8 && seen.insert(key) {
            shown.push_str(&format!(
                "== {} | {}\n",
                problem.id,
                serde_json::to_string(&problem.meta).expect("JSON")
            ));
            shown.push_str(&format!("{}\n", problem.statement));
            for test in problem.public_tests.iter().chain(&problem.private_tests) {
                shown.push_str(&format!(
                    "{}: {} -> {}\n",
                    test.name,
                    test.input.trim(),
                    test.output.trim()
                ));
            }
            for solution in problem.solutions.iter().chain(&problem.wrong_solutions) {
                let class = solution.class.as_deref().unwrap_or("right");
                shown.push_str(&format!(
                    "{} {class} {}\n{}",
                    solution.expected, solution.file, solution.code
                ));
            }
        }
    }
    assert_eq!(seen.len(), 9);
    insta::assert_snapshot!(shown);
}

#[test]
fn sizes() {
    let set = set();
    assert_eq!(all(&set).count(), 5 * 60 * 8);
    let ids: BTreeSet<&str> = all(&set).map(|problem| problem.id.as_str()).collect();
    assert_eq!(ids.len(), 2400);
    let wordings =
        statements(&set.train).len() + statements(&set.valid).len() + statements(&set.test).len();
    assert_eq!(wordings, 300);
    let part = |problems: &[Problem]| problems.len() as f64 / 2400.0;
    assert!((part(&set.train) - 0.7).abs() < 0.02);
    assert!((part(&set.valid) - 0.1).abs() < 0.02);
    assert!((part(&set.test) - 0.2).abs() < 0.02);
}

#[test]
fn splits_share_no_statement_and_no_new_word() {
    for seed in [0, 1, 2, u64::MAX] {
        let set = generate(seed).expect("the default family");
        let [train, valid, test] =
            [&set.train, &set.valid, &set.test].map(|problems| statements(problems));
        assert!(train.is_disjoint(&valid) && train.is_disjoint(&test) && valid.is_disjoint(&test));
        let known: BTreeSet<&str> = train.iter().flat_map(|text| words_of(text)).collect();
        for text in valid.iter().chain(&test) {
            assert!(words_of(text).all(|word| known.contains(word)), "{text}");
        }
        for text in train.iter().chain(&valid).chain(&test) {
            assert!(words_of(text).count() <= 12, "{text}");
        }
    }
}

#[test]
fn each_split_has_every_variant_and_every_combination_of_its_wordings() {
    let set = set();
    for problems in [&set.train, &set.valid, &set.test] {
        let variants: BTreeSet<_> = problems
            .iter()
            .map(|problem| (meta_text(problem, "task"), meta_text(problem, "variant")))
            .collect();
        assert_eq!(variants.len(), 9);
        let mut combos: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for problem in problems {
            combos
                .entry(&problem.statement)
                .or_default()
                .insert(problem.meta["choices"].to_string());
        }
        assert!(combos.values().all(|of_wording| of_wording.len() == 8));
    }
}

/// The outputs that the family's own solver gives for another combination, on the tests of a problem.
fn outputs_of(problem: &Problem, combo: usize, tests: &[TestCase]) -> Vec<String> {
    let config = MicroConfig::default();
    let name = TaskName::ALL
        .into_iter()
        .find(|task| task.as_str() == meta_text(problem, "task"))
        .expect("task");
    let task = name.table(&config);
    let variant = task
        .variants
        .iter()
        .find(|v| v.name == meta_text(problem, "variant"))
        .expect("variant");
    let read = |word: &str| {
        word.parse()
            .unwrap_or_else(|_| u32::from(word.chars().next().expect("a letter")))
    };
    tests
        .iter()
        .map(|test| {
            let input: Vec<u32> = test.input.split_whitespace().map(read).collect();
            format!("{}\n", (task.solve)(variant, &input, task.combos()[combo]))
        })
        .collect()
}

#[test]
fn tests_tell_the_combinations_apart() {
    let set = set();
    for problem in all(&set) {
        let right = problem.meta["combo"].as_u64().expect("combo") as usize;
        for tests in [&problem.public_tests, &problem.private_tests] {
            let expected: Vec<String> = tests.iter().map(|test| test.output.clone()).collect();
            for combo in 0..8 {
                assert_eq!(
                    outputs_of(problem, combo, tests) == expected,
                    combo == right,
                    "{} {combo}",
                    problem.id
                );
            }
        }
    }
}

#[test]
fn private_tests_repeat_no_public_one() {
    let set = set();
    for problem in all(&set) {
        assert_eq!(problem.public_tests.len(), 1);
        assert_eq!(problem.private_tests.len(), 4);
        for hidden in &problem.private_tests {
            for shown in &problem.public_tests {
                assert_ne!(hidden.input, shown.input, "{}", problem.id);
                assert_ne!(hidden.output, shown.output, "{}", problem.id);
            }
        }
    }
}

#[test]
fn public_inputs_are_short_and_private_ones_catch_sorting_as_text() {
    let set = set();
    let mut two_digits = 0;
    for problem in all(&set) {
        for test in &problem.public_tests {
            assert!(
                test.input.split_whitespace().all(|word| word.len() == 1),
                "{}",
                test.input
            );
            assert!(test.input.split_whitespace().count() <= 4);
        }
        for test in &problem.private_tests {
            two_digits += usize::from(test.input.split_whitespace().any(|word| word.len() == 2));
            if meta_text(problem, "task") == "sort" {
                let mut words: Vec<&str> = test.input.split_whitespace().collect();
                assert!((4..=7).contains(&words.len()));
                words.sort_unstable();
                let numbers: Vec<u32> = words
                    .iter()
                    .map(|word| word.parse().expect("a number"))
                    .collect();
                assert!(!numbers.is_sorted(), "{}", test.input);
            }
        }
    }
    assert!(two_digits > 2400);
}

#[test]
fn programs_are_short_and_wrong_ones_are_in_canonical_order() {
    let set = set();
    let mut programs: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for problem in all(&set) {
        let (task, variant) = (
            meta_text(problem, "task").to_owned(),
            meta_text(problem, "variant").to_owned(),
        );
        assert_eq!(problem.solutions.len(), 1);
        assert_eq!(problem.wrong_solutions.len(), 8);
        let right = problem.meta["combo"].as_u64().expect("combo") as usize;
        let mut choices: Vec<&str> = problem.wrong_solutions[..7]
            .iter()
            .map(|wrong| wrong.code.as_str())
            .collect();
        choices.insert(right, &problem.solutions[0].code);
        // The same eight programs in the same order for every problem of a variant.
        let known = programs
            .entry((task, variant))
            .or_insert_with(|| choices.iter().map(|&code| code.to_owned()).collect());
        assert_eq!(&choices, known);
        assert_eq!(choices.iter().collect::<BTreeSet<_>>().len(), 8);
        assert!(
            choices
                .iter()
                .all(|code| code.lines().count() <= 3 && code.len() <= 120)
        );
        assert_eq!(
            problem.wrong_solutions[7].class.as_deref(),
            Some("memorised")
        );
    }
}

#[test]
fn many_seeds_and_other_settings_generate() {
    for seed in 1..20 {
        let other = generate(seed * 7919).expect("the default family");
        assert_eq!(
            other.train.len() + other.valid.len() + other.test.len(),
            2400
        );
        assert_ne!(other.train, set().train);
    }
    let smaller = MicroConfig {
        tasks: vec![TaskName::Sort, TaskName::Letters],
        separators: vec![",".to_owned()],
        private_tests: 6,
        ..MicroConfig::default()
    };
    let smaller = generate_with(&smaller, 3).expect("two tasks with four combinations");
    assert_eq!(all(&smaller).count(), 2 * 60 * 4);
    assert!(
        all(&smaller)
            .all(|problem| problem.private_tests.len() == 6 && problem.wrong_solutions.len() == 4)
    );
}

#[test]
fn senseless_settings_are_errors() {
    let fails = |change: fn(&mut MicroConfig)| {
        let mut config = MicroConfig::default();
        change(&mut config);
        generate_with(&config, 0).expect_err("an error").to_string()
    };
    assert!(fails(|c| c.tasks.clear()).contains("`tasks` is empty"));
    assert!(fails(|c| c.separators = vec![",".to_owned(); 2]).contains("twice"));
    assert!(fails(|c| c.separators = vec!["'".to_owned()]).contains("separators"));
    assert!(fails(|c| c.brackets = vec!["[".to_owned()]).contains("brackets"));
    assert!(fails(|c| c.openings = vec!["Read.".to_owned()]).contains("noun"));
    assert!(fails(|c| c.wordings_per_task = 1000).contains("possible"));
    assert!(fails(|c| c.wordings_per_task = 4).contains("wordings"));
    assert!(fails(|c| c.public_items = (1, 2)).contains("public_items"));
    assert!(fails(|c| c.test_percent = 90).contains("train"));
    assert!(fails(|c| c.private_tests = 0).contains("private_tests"));
}

#[test]
fn settings_read_from_a_file_refuse_unknown_keys() {
    let config: MicroConfig =
        serde_json::from_str(r#"{"tasks": ["sort"], "private_tests": 5}"#).expect("settings");
    assert_eq!(
        (config.tasks, config.private_tests),
        (vec![TaskName::Sort], 5)
    );
    assert!(serde_json::from_str::<MicroConfig>(r#"{"task": ["sort"]}"#).is_err());
}

/// The Rust solver and the Python programs are written twice; here they must agree.
#[test]
fn programs_get_their_verdicts() {
    let set = set();
    let programs = |problem| -> Vec<&Solution> {
        let problem: &Problem = problem;
        problem
            .solutions
            .iter()
            .chain(&problem.wrong_solutions)
            .collect()
    };
    let mut runs = Vec::new();
    for problem in all(&set) {
        for program in programs(problem) {
            let tests = problem.public_tests.iter().chain(&problem.private_tests);
            runs.extend(tests.map(|test| (program.code.as_str(), test.input.as_str())));
        }
    }
    let mut outputs = crate::python::outputs(&runs).into_iter();
    for problem in all(&set) {
        for program in programs(problem) {
            let mut passes = |tests: &[TestCase]| {
                let wrong = tests
                    .iter()
                    .zip(&mut outputs)
                    .filter(|(test, got)| got.as_ref() != Some(&test.output));
                wrong.count() == 0
            };
            let (public, private) = (
                passes(&problem.public_tests),
                passes(&problem.private_tests),
            );
            assert_eq!(
                private,
                program.expected == "AC",
                "{} {}",
                problem.id,
                program.file
            );
            // A guess is told apart by the public tests already, learning them by heart is not.
            assert_eq!(
                public,
                program.class.as_deref() != Some("choice"),
                "{} {}",
                problem.id,
                program.file
            );
        }
    }
}
