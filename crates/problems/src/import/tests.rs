use super::*;
use crate::{ProblemSet, SetWriter};
use std::path::PathBuf;

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    std::fs::write(&path, text).expect("written");
    path
}

fn problem(id: &str) -> String {
    serde_json::json!({
        "id": id, "statement": "Print 1.", "time_limit_s": 1, "memory_limit_mb": 64, "checker": {"kind": "lines"},
        "public_tests": [{"input": "", "output": "1"}], "private_tests": [{"input": "x", "output": "1"}],
    })
    .to_string()
}

fn failure(source: &Path) -> String {
    import(
        source,
        &ImportOptions::default(),
        &mut |_| Ok(()),
        &mut |_| {},
    )
    .expect_err("an error")
    .to_string()
}

#[test]
fn a_folder_of_files_becomes_a_set_with_its_splits() {
    let folder = tempfile::tempdir().expect("a folder");
    write(
        folder.path(),
        "data/train-00000-of-00002.jsonl",
        &problem("a"),
    );
    write(
        folder.path(),
        "data/train-00001-of-00002.jsonl",
        &problem("b"),
    );
    write(folder.path(), "data/validation.jsonl", &problem("c"));
    write(folder.path(), "data/more.jsonl", &problem("d"));
    let out = folder.path().join("out");
    let mut set = SetWriter::create(&out).expect("a folder");
    let options = ImportOptions {
        split: Some("test".into()),
        ..ImportOptions::default()
    };
    let mut steps = 0;
    let summary = import(folder.path(), &options, &mut set, &mut |_| steps += 1).expect("imported");
    assert_eq!((summary.problems, steps), (4, 4));
    assert!(
        ProblemSet::open(&out.display().to_string()).is_err(),
        "nothing is there before the end"
    );
    assert_eq!(set.finish().expect("written").len(), 3);
    let set = ProblemSet::open(&out.display().to_string()).expect("a set");
    let ids = |split| {
        set.split(split)
            .expect("a split")
            .iter()
            .map(|p| p.id.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (ids("train"), ids("valid"), ids("test")),
        (vec!["a", "b"], vec!["c"], vec!["d"])
    );
}

#[test]
fn what_cannot_be_recognised_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text, words) in [
        (
            "a.jsonl",
            "{\"x\": 1, \"y\": 2}",
            vec!["x, y", "no known format", "`codecontests`", "--format"],
        ),
        ("b.jsonl", "hello", vec!["no object in JSON"]),
        ("c.jsonl", "", vec!["empty"]),
        ("d.json", "[]", vec!["the array is empty"]),
        (
            "e.parquet",
            "PAR1 and then something else PAR1",
            vec!["no Parquet file that can be read"],
        ),
    ] {
        let error = failure(&write(folder.path(), name, text));
        assert!(
            words.iter().all(|word| error.contains(word)) && error.contains(name),
            "{name}: {error}"
        );
    }
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).expect("made");
    assert!(failure(&empty).contains("neither a problem nor"));
    assert!(failure(&folder.path().join("none")).contains("none"));
}

#[test]
fn ids_of_ones_own_format_are_not_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "train.jsonl", &problem("a"));
    write(folder.path(), "valid.jsonl", &problem("a"));
    let error = failure(folder.path());
    assert!(
        error.contains("valid.jsonl, line 1, field `id`") && error.contains("`a`"),
        "{error}"
    );
    let file = write(
        folder.path(),
        "train.jsonl",
        &format!("{}\n{}\n", problem("a"), problem("a")),
    );
    assert!(failure(&file).contains("already the problem of line 1"));
}

#[test]
fn a_sink_that_fails_ends_the_import_and_senseless_settings_are_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = write(folder.path(), "a.jsonl", &problem("a"));
    let full = &mut |_| Err(io::Error::other("disk full"));
    let error = import(&file, &ImportOptions::default(), full, &mut |_| {})
        .expect_err("full")
        .to_string();
    assert!(error.contains("disk full"));
    for options in [
        ImportOptions {
            time_limit_s: Some(0.0),
            ..ImportOptions::default()
        },
        ImportOptions {
            memory_limit_mb: 0,
            ..ImportOptions::default()
        },
        ImportOptions {
            max_problem_bytes: 0,
            ..ImportOptions::default()
        },
        ImportOptions {
            checker: Some(crate::Checker::Float {
                abs: -1.0,
                rel: 0.0,
                case_sensitive: true,
            }),
            ..ImportOptions::default()
        },
    ] {
        let error = import(&file, &options, &mut |_| Ok(()), &mut |_| {}).expect_err("senseless");
        assert!(matches!(error, ImportError::Setting { .. }), "{error}");
    }
}
