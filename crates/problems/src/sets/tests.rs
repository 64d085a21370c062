use super::*;

fn message(result: Result<impl Sized, SetError>) -> String {
    match result {
        Ok(_) => panic!("no error"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn micro_is_generated_in_process() {
    let set = ProblemSet::open("micro").expect("micro");
    let family = micro::generate(0).expect("micro");
    assert_eq!(set.split("train").expect("train"), family.train);
    assert_eq!(set.split("valid").expect("valid"), family.valid);
    assert_eq!(set.split("test").expect("test"), family.test);
    assert_eq!(set.split("all").expect("all").len(), 2400);
    assert_eq!(
        set.splits().collect::<Vec<_>>(),
        ["train", "valid", "test", "all"]
    );
    let other = ProblemSet::open("micro:7").expect("micro");
    assert_eq!(
        other.split("test").expect("test"),
        micro::generate(7).expect("micro").test
    );
    assert!(message(ProblemSet::open("micro:x")).contains("whole number"));
    assert!(message(ProblemSet::open("micro:-1")).contains("whole number"));
}

#[test]
fn basics_are_complete() {
    let set = ProblemSet::open("basics").expect("basics");
    assert_eq!(set.splits().collect::<Vec<_>>(), ["all"]);
    let problems = set.split("all").expect("all");
    assert!(problems.len() >= 40);
    for problem in problems {
        let id = &problem.id;
        assert!(!problem.name.is_empty(), "{id}");
        assert!((1..=3).contains(&problem.public_tests.len()), "{id}");
        assert!((4..=8).contains(&problem.private_tests.len()), "{id}");
        assert!(
            !problem.solutions.is_empty() && !problem.wrong_solutions.is_empty(),
            "{id}"
        );
        for hidden in &problem.private_tests {
            assert!(
                problem
                    .public_tests
                    .iter()
                    .all(|shown| shown.input != hidden.input),
                "{id}"
            );
        }
    }
    for verdict in ["WA", "RTE", "TLE", "MLE"] {
        let wrong = problems.iter().flat_map(|problem| &problem.wrong_solutions);
        assert!(
            wrong
                .filter(|solution| solution.expected == verdict)
                .count()
                >= 5,
            "{verdict}"
        );
    }
    assert!(message(set.split("train")).contains("no split `train`; it has all"));
}

/// Those that end: the judge's tests run the others, whose verdict is about time and memory.
#[test]
fn programs_of_the_basics_get_their_verdicts() {
    let set = ProblemSet::open("basics").expect("basics");
    let mut cases = Vec::new();
    for problem in set.split("all").expect("all") {
        for program in problem.solutions.iter().chain(&problem.wrong_solutions) {
            if ["AC", "WA", "RTE"].contains(&program.expected.as_str()) {
                let tests = problem.public_tests.iter().chain(&problem.private_tests);
                cases.extend(tests.map(|test| (problem, program, test)));
            }
        }
    }
    let runs: Vec<_> = cases
        .iter()
        .map(|(_, program, test)| (program.code.as_str(), test.input.as_str()))
        .collect();
    let mut verdicts = std::collections::BTreeMap::new();
    for ((problem, program, test), got) in cases.iter().zip(crate::python::outputs(&runs)) {
        let verdict = match got {
            None => "RTE",
            Some(got) => {
                let same = problem
                    .checker
                    .compare(test.output.as_bytes(), got.as_bytes())
                    .expect("a usable checker");
                if same.is_same() { "AC" } else { "WA" }
            }
        };
        let seen = verdicts
            .entry((&problem.id, &program.file, &program.expected))
            .or_insert_with(Vec::new);
        seen.push(verdict);
    }
    for ((id, file, expected), seen) in verdicts {
        if expected == "AC" {
            assert!(
                seen.iter().all(|&verdict| verdict == "AC"),
                "{id} {file} {seen:?}"
            );
        } else {
            // One kind of failure only, so that the verdict does not depend on the order of the tests.
            assert!(
                seen.iter()
                    .all(|verdict| ["AC", expected].contains(verdict)),
                "{id} {file} {seen:?}"
            );
            assert!(seen.contains(&expected.as_str()), "{id} {file} {seen:?}");
        }
    }
}

#[test]
fn ids_are_found_or_the_nearest_are_named() {
    let set = ProblemSet::open("basics").expect("basics");
    assert_eq!(set.get("palindrome").expect("a problem").id, "palindrome");
    assert!(message(set.get("palindrom")).contains("nearest: `palindrome`"));
    assert!(message(set.get("leap_year")).contains("`leap-year`"));
    assert!(message(set.get("")).contains("problems: `double-it`"));
    let micro = ProblemSet::open("micro").expect("micro");
    assert!(message(micro.get("micro-sort-000")).contains("`micro-sort-000-0`"));
}

#[test]
fn unknown_sets_name_what_there_is() {
    for spec in ["", "macro", "basic", "/no/such/folder"] {
        let text = message(ProblemSet::open(spec));
        assert!(
            text.contains("`micro`") && text.contains("`basics`") && text.contains(".jsonl"),
            "{text}"
        );
    }
    assert!(message(ProblemSet::open("missing.jsonl")).starts_with("missing.jsonl: "));
}

#[test]
fn files_and_folders_are_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let family = micro::generate(0).expect("micro");
    let path = |name: &str| folder.path().join(name);
    let spec = folder.path().to_str().expect("text");
    assert!(message(ProblemSet::open(spec)).contains("no other .jsonl file"));
    jsonl::write_file(&path("more.jsonl"), &family.valid).expect("written");
    assert!(message(ProblemSet::open(spec)).contains("it has more.jsonl"));
    jsonl::write_file(&path("train.jsonl"), &family.train).expect("written");
    jsonl::write_file(&path("test.jsonl"), &family.test).expect("written");
    let set = ProblemSet::open(spec).expect("a folder with splits");
    assert_eq!(set.splits().collect::<Vec<_>>(), ["train", "test", "all"]);
    assert_eq!(set.split("test").expect("test"), family.test);
    assert_eq!(
        set.split("all").expect("all").len(),
        family.train.len() + family.test.len()
    );
    let file = ProblemSet::open(path("more.jsonl").to_str().expect("text")).expect("a file");
    assert_eq!(file.split("all").expect("all"), family.valid);

    jsonl::write_file(&path("valid.jsonl"), &family.train[..1]).expect("written");
    let text = message(ProblemSet::open(spec));
    assert!(
        text.contains("is in train and in valid") && text.contains(&family.train[0].id),
        "{text}"
    );
    std::fs::write(path("empty.jsonl"), "\n").expect("written");
    assert!(
        message(ProblemSet::open(
            path("empty.jsonl").to_str().expect("text")
        ))
        .contains("no problems")
    );
}
