use super::*;
use crate::{Checker, Numbers, Solution, Validator, WhiteSpace};
use proptest::prelude::*;
use std::fs::File;
use std::io::Write as _;
use zip::write::SimpleFileOptions;

/// Packages that were written for these tests.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/packages")
}

fn found(path: &Path) -> Result<Found, PackageError> {
    read(path, &ImportOptions::default())
}

fn package(name: &str) -> (Problem, Vec<String>) {
    let Found { problem, notes, .. } = found(&folder().join(name)).expect(name);
    problem.validate().expect("valid");
    (problem, notes)
}

fn verdicts(solutions: &[Solution]) -> Vec<(&str, &str, &str)> {
    solutions
        .iter()
        .map(|s| (s.file.as_str(), s.language.as_str(), s.expected.as_str()))
        .collect()
}

fn names(problem: &Problem) -> Vec<&str> {
    problem
        .private_tests
        .iter()
        .map(|test| test.name.as_str())
        .collect()
}

#[test]
fn a_legacy_package_with_the_default_validator() {
    let (problem, notes) = package("average");
    assert_eq!(
        (problem.id.as_str(), problem.name.as_str()),
        ("average", "Average")
    );
    assert_eq!((problem.time_limit_s, problem.memory_limit_mb), (2.0, 512));
    assert_eq!(
        problem.checker,
        Checker::Tokens {
            case_sensitive: false,
            white_space: WhiteSpace::Any,
            numbers: Some(Numbers {
                abs: 1e-6,
                rel: 0.0,
                integers_exact: false
            }),
        }
    );
    insta::assert_snapshot!(problem.statement);
    assert_eq!(
        problem
            .public_tests
            .iter()
            .map(|t| t.name.as_str())
            .collect::<Vec<_>>(),
        ["sample/1", "sample/2"]
    );
    assert_eq!(
        names(&problem),
        [
            "secret/group1/01",
            "secret/group1/02-zero",
            "secret/group2/01",
            "secret/group2/02"
        ]
    );
    // A link between groups.
    assert_eq!(problem.private_tests[2].input, "3\n1 1 2\n");
    assert_eq!(
        verdicts(&problem.solutions),
        [
            ("accepted/average.cpp", "cpp", "AC"),
            ("accepted/average.py", "python", "AC"),
            ("accepted/folder", "java", "AC"),
        ]
    );
    assert_eq!(
        verdicts(&problem.wrong_solutions),
        [
            ("partially_accepted/small.py", "python", "NOT_AC"),
            ("rejected/constant.py", "python", "WA"),
            ("run_time_error/crash.py", "python", "RTE"),
            ("time_limit_exceeded/loop.py", "python", "TLE"),
            ("wrong_answer/floor.py", "python", "WA"),
        ]
    );
    for (note, word) in notes
        .iter()
        .zip(["README", "accepted/two", "mixed/unclear.py"])
    {
        assert!(note.contains(word) && note.contains("left out"), "{note}");
    }
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert_eq!(problem.meta["scoring_type"], "scoring");
    assert_eq!(problem.meta["time_multiplier"], 4.0);
}

fn validator(problem: &Problem) -> &Validator {
    match &problem.checker {
        Checker::Validator(validator) => validator,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_legacy_package_with_its_own_validator() {
    let (problem, _) = package("any-order");
    assert_eq!((problem.time_limit_s, problem.memory_limit_mb), (1.5, 256));
    let validator = validator(&problem);
    assert_eq!(
        (validator.language.as_str(), validator.entry.as_str()),
        ("cpp", "check.cpp")
    );
    let files: Vec<&str> = validator
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    assert_eq!(files, ["check.cpp", "validate.h"]);
    // The package's flags first, then those of the nearest group.
    assert_eq!(
        validator.flags_for("secret/strict/1"),
        ["verbose", "sorted", "of all"]
    );
    assert_eq!(validator.flags_for("secret/loose/deep/1"), ["verbose"]);
    assert_eq!(validator.flags_for("sample/1"), ["verbose"]);
}

#[test]
fn a_package_of_2023_07() {
    let (problem, notes) = package("guess");
    assert_eq!(problem.name, "A number nearby");
    assert_eq!((problem.time_limit_s, problem.memory_limit_mb), (1.5, 128));
    assert!(
        problem.statement.contains("n ≤ 1000") && !problem.statement.contains("{{"),
        "{}",
        problem.statement
    );
    assert!(
        problem
            .statement
            .ends_with("## Sample Output 1\n\n```\n5\n```\n"),
        "{}",
        problem.statement
    );
    assert_eq!(
        names(&problem),
        ["secret/large/1", "secret/small/1", "secret/small/2"]
    );
    let validator = validator(&problem);
    assert_eq!(
        (validator.language.as_str(), validator.entry.as_str()),
        ("python", "validate.py")
    );
    for (test, distance) in [
        ("secret/small/1", "2"),
        ("secret/small/2", "0"),
        ("secret/large/1", "1000"),
    ] {
        assert_eq!(validator.flags_for(test), ["distance", distance], "{test}");
    }
    assert_eq!(validator.flags_for("sample/1"), Vec::<String>::new());
    assert_eq!(
        verdicts(&problem.solutions),
        [
            ("accepted/same.py", "python", "AC"),
            ("odd/fine.py", "python", "AC")
        ]
    );
    let wrong: Vec<(&str, &str)> = verdicts(&problem.wrong_solutions)
        .into_iter()
        .map(|(file, _, v)| (file, v))
        .collect();
    assert_eq!(
        wrong,
        [
            ("brute_force/count.py", "NOT_AC"),
            ("odd/slow-1.py", "TLE"),
            ("rejected/crash.py", "RTE"),
            ("run_time_error/zero.py", "RTE"),
            ("time_limit_exceeded/loop.py", "TLE"),
            ("wrong_answer/next.py", "WA"),
        ]
    );
    assert!(
        notes.iter().any(|note| note.contains("odd/unclear.py")),
        "{notes:?}"
    );
    assert_eq!(problem.meta["package_format"], "2023-07");
}

/// Zips a folder, links as links.
fn zip_folder(from: &Path, to: &Path, top: &str) {
    fn add(writer: &mut zip::ZipWriter<File>, from: &Path, name: &str) {
        let mut entries: Vec<PathBuf> = from
            .read_dir()
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        entries.sort();
        for path in entries {
            let part = path.file_name().expect("a name").to_str().expect("UTF-8");
            let inner = if name.is_empty() {
                part.to_owned()
            } else {
                format!("{name}/{part}")
            };
            let options = SimpleFileOptions::default();
            if path.is_symlink() {
                let target = path.read_link().expect("a link");
                writer
                    .add_symlink(inner, target.to_str().expect("UTF-8"), options)
                    .expect("added");
            } else if path.is_dir() {
                add(writer, &path, &inner);
            } else {
                writer.start_file(inner, options).expect("added");
                writer
                    .write_all(&std::fs::read(&path).expect("read"))
                    .expect("written");
            }
        }
    }
    let mut writer = zip::ZipWriter::new(File::create(to).expect("a file"));
    add(&mut writer, from, top);
    writer.finish().expect("finished");
}

#[test]
fn archives_give_what_their_folders_give() {
    let out = tempfile::tempdir().expect("a folder");
    for (name, top) in [
        ("average", "average"),
        ("any-order", ""),
        ("guess", "some/../guess"),
    ] {
        let file = out.path().join(format!("{name}.zip"));
        zip_folder(&folder().join(name), &file, top);
        if top.contains("..") {
            let error = found(&file)
                .map(|found| found.problem.id)
                .expect_err("a path that leads out");
            assert!(error.message.contains("leads out"), "{error:?}");
            zip_folder(&folder().join(name), &file, "guess");
        }
        let (of_folder, notes) = package(name);
        let of_archive = found(&file).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(of_archive.problem, of_folder, "{name}");
        assert_eq!(of_archive.notes, notes);
    }
}

/// A copy of `average` in which files can be changed.
struct Copy(tempfile::TempDir);

impl Copy {
    fn new() -> Self {
        fn copy(from: &Path, to: &Path) {
            std::fs::create_dir_all(to).expect("made");
            for entry in from.read_dir().expect("a folder") {
                let path = entry.expect("an entry").path();
                let place = to.join(path.file_name().expect("a name"));
                if path.is_symlink() {
                    std::os::unix::fs::symlink(path.read_link().expect("a link"), place)
                        .expect("linked");
                } else if path.is_dir() {
                    copy(&path, &place);
                } else {
                    std::fs::write(place, std::fs::read(path).expect("read")).expect("written");
                }
            }
        }
        let out = tempfile::tempdir().expect("a folder");
        copy(&folder().join("average"), out.path());
        Self(out)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
        self
    }

    fn remove(self, name: &str) -> Self {
        std::fs::remove_file(self.path(name)).expect("removed");
        self
    }

    fn read(&self) -> Result<Found, PackageError> {
        found(self.0.path())
    }

    fn error(&self) -> PackageError {
        match self.read() {
            Err(error) => error,
            Ok(_) => panic!("no error"),
        }
    }
}

#[test]
fn a_mistake_is_named_with_its_file_and_field() {
    for (name, text, file, field, word) in [
        ("problem.yaml", "name: [", "problem.yaml", ".", "no YAML"),
        ("problem.yaml", "- a\n", "problem.yaml", ".", "mapping"),
        (
            "problem.yaml",
            "problem_format_version: 2031-01",
            "problem.yaml",
            "problem_format_version",
            "2031-01",
        ),
        (
            "problem.yaml",
            "validation: custom interactive",
            "problem.yaml",
            "type",
            "interactive",
        ),
        (
            "problem.yaml",
            "type: [pass-fail, multi-pass]",
            "problem.yaml",
            "type",
            "multi-pass",
        ),
        (
            "problem.yaml",
            "limits: {memory: -1}",
            "problem.yaml",
            "limits.memory",
            "above 0",
        ),
        (
            "problem.yaml",
            "limits: 3",
            "problem.yaml",
            "limits",
            "mapping",
        ),
        (
            "problem.yaml",
            "validation: custom",
            "output_validators",
            ".",
            "no validator",
        ),
        (
            "problem.yaml",
            "validator_flags: float_tolerance x",
            "problem.yaml",
            "validator_flags",
            "`x`",
        ),
        (
            "problem.yaml",
            "validator_flags: fuzzy",
            "problem.yaml",
            "validator_flags",
            "`fuzzy`",
        ),
        (".timelimit", "soon", ".timelimit", "timelimit", "seconds"),
        (
            "data/secret/new.in",
            "1\n",
            "data/secret/new.in",
            ".",
            "`new.ans` is missing",
        ),
        (
            "data/secret/new.in",
            "1\n",
            "data/secret/new.in",
            ".",
            "no answer",
        ),
        (
            "data/secret/group1/01.args",
            "1\n",
            "data/secret/group1/01.args",
            ".",
            "arguments",
        ),
        (
            "data/secret/testdata.yaml",
            "a: b: c",
            "data/secret/testdata.yaml",
            ".",
            "no YAML",
        ),
        (
            "data/secret/group2/testdata.yaml",
            "output_validator_flags: fuzzy",
            "data",
            "validator_flags",
            "fuzzy",
        ),
        (
            "submissions/submissions.yaml",
            "accepted: {permitted: [MAYBE]}",
            "submissions/submissions.yaml",
            "accepted.permitted",
            "MAYBE",
        ),
    ] {
        let error = Copy::new().write(name, text).error();
        assert_eq!(
            (error.file.as_str(), error.field.as_str()),
            (file, field),
            "{name}: {text}"
        );
        assert!(error.message.contains(word), "{name}: {}", error.message);
    }
    let error = Copy::new()
        .write("data/secret/new.in", [0xff])
        .write("data/secret/new.ans", "1")
        .error();
    assert!(error.message.contains("UTF-8") && error.file == "data/secret/new.in");
    let error = Copy::new()
        .remove("problem_statement/problem.en.tex")
        .remove("problem_statement/problem.sv.tex")
        .write("problem_statement/problem.en.pdf", "%PDF")
        .error();
    assert!(
        error.message.contains("problem.en.pdf only"),
        "{}",
        error.message
    );
    assert!(
        Copy::new()
            .remove("problem.yaml")
            .error()
            .message
            .contains("missing")
    );
}

#[test]
fn defaults_are_noted_and_kept_for_an_audit() {
    let found = Copy::new().remove(".timelimit").read().expect("a problem");
    assert_eq!(found.problem.time_limit_s, 10.0);
    assert_eq!(found.problem.meta["time_limit_from"], "default");
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("no time limit")),
        "{:?}",
        found.notes
    );
    let found = Copy::new()
        .write("problem.yaml", "")
        .read()
        .expect("a problem");
    assert_eq!(found.problem.memory_limit_mb, 2048);
    // Without its name in `problem.yaml` the statement's title counts.
    assert_eq!(found.problem.name, "Average");
    assert_eq!(
        found.problem.checker,
        Checker::Tokens {
            case_sensitive: false,
            white_space: WhiteSpace::Any,
            numbers: None
        }
    );
}

#[test]
fn statements_in_other_languages_are_taken_where_there_is_no_english_one() {
    let found = Copy::new()
        .remove("problem_statement/problem.en.tex")
        .read()
        .expect("a problem");
    assert!(found.problem.statement.contains("Skriv ut"));
    assert_eq!(found.problem.meta["statement_language"], "sv");
}

#[test]
fn links_never_lead_out_of_a_package() {
    let copy = Copy::new();
    std::os::unix::fs::symlink("/etc/passwd", copy.path("data/secret/x.in")).expect("linked");
    std::os::unix::fs::symlink("/etc/passwd", copy.path("data/secret/x.ans")).expect("linked");
    assert!(
        copy.error().message.contains("leads out of the package"),
        "{:?}",
        copy.error()
    );
    let copy = Copy::new();
    std::os::unix::fs::symlink("/etc/passwd", copy.path("submissions/accepted/x.py"))
        .expect("linked");
    assert!(copy.error().message.contains("leads out of the package"));
    // Round in circles, and to nowhere.
    let copy = Copy::new();
    std::os::unix::fs::symlink("..", copy.path("data/secret/again")).expect("linked");
    assert!(
        copy.error().message.contains("too deep"),
        "{:?}",
        copy.error()
    );
    let copy = Copy::new();
    std::os::unix::fs::symlink("none", copy.path("data/secret/x.in")).expect("linked");
    let copy = copy.write("data/secret/x.ans", "1");
    assert!(
        copy.error().message.contains("nowhere"),
        "{:?}",
        copy.error()
    );
}

fn archive(entries: &[(&str, &str, bool)]) -> (tempfile::TempDir, PathBuf) {
    let out = tempfile::tempdir().expect("a folder");
    let file = out.path().join("x.zip");
    let mut writer = zip::ZipWriter::new(File::create(&file).expect("a file"));
    for (name, text, link) in entries {
        if *link {
            writer
                .add_symlink(*name, *text, SimpleFileOptions::default())
                .expect("added");
        } else {
            writer
                .start_file(*name, SimpleFileOptions::default())
                .expect("added");
            writer.write_all(text.as_bytes()).expect("written");
        }
    }
    writer.finish().expect("finished");
    (out, file)
}

#[test]
fn archives_cannot_lead_out_swell_or_go_round() {
    for target in ["../../../../etc/passwd", "/etc/passwd", "1.in"] {
        let (_out, file) = archive(&[
            ("problem.yaml", "name: x", false),
            ("data/secret/1.in", target, true),
            ("data/secret/1.ans", "1", false),
        ]);
        let error = found(&file).map(drop).expect_err(target);
        assert!(
            error.message.contains("leads out") || error.message.contains("circles"),
            "{error:?}"
        );
    }
    let (_out, file) = archive(&[("problem.txt", "", false)]);
    assert!(
        found(&file)
            .map(drop)
            .expect_err("no package")
            .message
            .contains("problem.yaml")
    );
    // Many megabytes of zeros in a few kilobytes.
    let out = tempfile::tempdir().expect("a folder");
    let file = out.path().join("bomb.zip");
    let mut writer = zip::ZipWriter::new(File::create(&file).expect("a file"));
    writer
        .start_file("problem.yaml", SimpleFileOptions::default())
        .expect("added");
    writer.write_all(b"name: x").expect("written");
    writer
        .start_file("data/secret/1.ans", SimpleFileOptions::default())
        .expect("added");
    writer
        .start_file("data/secret/1.in", SimpleFileOptions::default())
        .expect("added");
    let zeros = vec![0u8; 1 << 20];
    for _ in 0..32 {
        writer.write_all(&zeros).expect("written");
    }
    writer.finish().expect("finished");
    let small = ImportOptions {
        max_problem_bytes: 8 << 20,
        ..ImportOptions::default()
    };
    let error = read(&file, &small).map(drop).expect_err("a bomb");
    assert!(
        error.message.contains("limit for one problem") && error.file == "data/secret/1.in",
        "{error:?}"
    );
    let options = ImportOptions {
        max_test_bytes: Some(1 << 20),
        ..small
    };
    let error = read(&file, &options)
        .map(drop)
        .expect_err("without the bomb, without a statement");
    assert!(error.message.contains("no statement"), "{error:?}");
}

#[test]
fn large_tests_can_be_left_out() {
    let copy = Copy::new()
        .write("data/secret/big.in", "1\n".repeat(1000))
        .write("data/secret/big.ans", "1\n");
    let options = ImportOptions {
        max_test_bytes: Some(500),
        ..ImportOptions::default()
    };
    let found = read(copy.0.path(), &options).expect("a problem");
    assert_eq!(found.problem.private_tests.len(), 4);
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("1 tests are larger")),
        "{:?}",
        found.notes
    );
}

#[test]
fn a_folder_of_packages_is_imported_as_a_whole() {
    let mut ids = Vec::new();
    let summary = crate::import(
        &folder(),
        &ImportOptions::default(),
        &mut |imported: crate::Imported| {
            ids.push(imported.problem.id);
            Ok(())
        },
        &mut |_| {},
    );
    assert_eq!(summary.expect("imported").formats, [crate::Format::Package]);
    assert_eq!(ids, ["any-order", "average", "guess"]);
}

#[test]
fn plain_folders_need_no_settings() {
    let out = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = out.path().join("twice it").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    let path = out.path().join("twice it");
    write("statement.md", "# Twice\n\nPrint twice n.\n");
    for (name, text) in [
        ("public/1.in", "1"),
        ("public/1.out", "2"),
        ("private/10.in", "9"),
        ("private/10.ans", "18"),
    ] {
        write(name, text);
    }
    for (name, text) in [
        ("private/9.in", "3"),
        ("private/9.out", "6"),
        ("private/notes.txt", ""),
    ] {
        write(name, text);
    }
    write("solutions/right.py", "print(2 * int(input()))");
    write("solutions/wrong_answer/same.py", "print(input())");
    let read = |path: &Path| plain::read(path, &ImportOptions::default());
    let found = read(&path).expect("a problem");
    found.problem.validate().expect("valid");
    assert_eq!(
        (found.problem.id.as_str(), found.problem.name.as_str()),
        ("twice-it", "Twice")
    );
    assert_eq!(names(&found.problem), ["private/9", "private/10"]);
    assert_eq!(found.problem.checker, Checker::default());
    assert_eq!(
        verdicts(&found.problem.solutions),
        [("right.py", "python", "AC")]
    );
    assert_eq!(
        verdicts(&found.problem.wrong_solutions),
        [("wrong_answer/same.py", "python", "WA")]
    );
    write(
        "problem.json",
        r#"{"time_limit_s": 1.5, "checker": {"kind": "exact"}, "name": "Two times"}"#,
    );
    let found = read(&path).expect("a problem");
    assert_eq!(
        (found.problem.time_limit_s, found.problem.name.as_str()),
        (1.5, "Two times")
    );
    let summary = crate::import(
        &path,
        &ImportOptions::default(),
        &mut |_| Ok(()),
        &mut |_| {},
    )
    .expect("imported");
    assert_eq!(summary.formats, [crate::Format::Folder]);
    write("problem.json", r#"{"time_limit": 1.5}"#);
    let error = read(&path).map(drop).expect_err("unknown");
    assert!(
        error.file == "problem.json" && error.message.contains("time_limit_s"),
        "{error:?}"
    );
    write("problem.json", "{}");
    write("public/2.in", "1");
    let error = read(&path).map(drop).expect_err("no output");
    assert!(
        error.file == "public/2.in" && error.message.contains("`2.out`"),
        "{error:?}"
    );
}

#[test]
fn flags_of_the_default_validator() {
    let rule = |text: &str| {
        validation::rule(
            &text
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    };
    let tokens = |case_sensitive, white_space, numbers: Option<(f64, f64)>| {
        Ok(Checker::Tokens {
            case_sensitive,
            white_space,
            numbers: numbers.map(|(abs, rel)| Numbers {
                abs,
                rel,
                integers_exact: false,
            }),
        })
    };
    assert_eq!(rule(""), tokens(false, WhiteSpace::Any, None));
    assert_eq!(
        rule("case_sensitive space_change_sensitive"),
        tokens(true, WhiteSpace::Exact, None)
    );
    assert_eq!(
        rule("float_tolerance 1e-4"),
        tokens(false, WhiteSpace::Any, Some((1e-4, 1e-4)))
    );
    assert_eq!(
        rule("float_relative_tolerance 1e-3 float_absolute_tolerance 1e-9"),
        tokens(false, WhiteSpace::Any, Some((1e-9, 1e-3)))
    );
    for wrong in [
        "float_tolerance",
        "float_tolerance -1",
        "float_tolerance nan",
        "CASE_SENSITIVE",
    ] {
        assert!(rule(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn groups_have_rules_of_their_own() {
    let copy = Copy::new().write(
        "data/secret/group2/testdata.yaml",
        "output_validator_flags: case_sensitive float_tolerance 0.5\n",
    );
    let problem = copy.read().expect("read").problem;
    problem.validate().expect("valid");
    let rule = |test: &str| problem.checker.for_test(test);
    let same = |test: &str, got: &[u8]| {
        rule(test)
            .compare(b"1.0\nYes\n", got)
            .expect("usable")
            .is_same()
    };
    assert!(matches!(problem.checker, Checker::ByGroup { .. }));
    assert_eq!(rule("secret/group1/01"), rule("sample/1"));
    assert!(same("secret/group1/01", b"1.0 YES") && !same("secret/group1/01", b"1.4 Yes"));
    assert!(same("secret/group2/02", b"1.4 Yes") && !same("secret/group2/02", b"1.0 YES"));
    // Its own words for the same rule are no rule of its own.
    let copy = Copy::new().write(
        "data/secret/group2/testdata.yaml",
        "output_validator_flags: float_absolute_tolerance 0.000001\n",
    );
    assert!(matches!(
        copy.read().expect("read").problem.checker,
        Checker::Tokens { .. }
    ));
    let again: Problem =
        serde_json::from_str(&serde_json::to_string(&problem).expect("JSON")).expect("a problem");
    assert_eq!(again, problem);
}

#[test]
fn a_run_script_in_python_is_a_program() {
    let copy = Copy::new()
        .write("problem.yaml", "name: x\nvalidation: custom\n")
        .write(
            "output_validators/check/run",
            "#!/usr/bin/env python3\nraise SystemExit(42)\n",
        );
    let problem = copy.read().expect("read").problem;
    assert_eq!(
        (
            validator(&problem).language.as_str(),
            validator(&problem).entry.as_str()
        ),
        ("python", "run")
    );
    let problem = copy
        .write("output_validators/check/build", "#!/bin/sh\nmake\n")
        .read()
        .expect("read")
        .problem;
    assert_eq!(validator(&problem).language, "script");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_settings_are_read_without_a_panic(text in "([a-z_]{0,8}[:,\\[\\]{}&*!|>'\"# \\n-]{0,3}){0,30}") {
        let _ = Config::parse(&text);
    }

    #[test]
    fn a_damaged_archive_is_an_error_or_a_problem(at in 0usize..4000, byte in any::<u8>(), cut in 0usize..4000) {
        let out = tempfile::tempdir().expect("a folder");
        let file = out.path().join("x.zip");
        zip_folder(&folder().join("any-order"), &file, "");
        let mut bytes = std::fs::read(&file).expect("read");
        let end = bytes.len() - if cut % 7 == 0 { cut % bytes.len() } else { 0 };
        bytes.truncate(end);
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        std::fs::write(&file, bytes).expect("written");
        let _ = found(&file);
    }
}
