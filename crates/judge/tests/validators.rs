//! Output validators in the real sandbox: what they are given, what their endings mean, and packages with the authors'
//! programs, from the folder to the audit.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use rlef_judge::audit::{AuditConfig, Done, Item, Kind, Record, check_all};
use rlef_judge::{Detail, Fault, Judge, JudgeConfig, Stop, Verdict};
use rlef_problems::{
    Checker, ImportOptions, Imported, Problem, Sink, SourceFile, TestCase, Validator, import,
};
use rlef_sandbox::{Config, Sandbox};

fn judge() -> &'static Judge {
    static JUDGE: OnceLock<Judge> = OnceLock::new();
    JUDGE.get_or_init(|| {
        let sandbox = Sandbox::new(Config::default()).expect("these tests need a sandbox");
        let config = JudgeConfig {
            // A validator that hangs is not to hold up these tests for a minute.
            validator_time_s: 2.0,
            validator_memory_mb: 256,
            ..JudgeConfig::default()
        };
        Judge::new(sandbox, config).unwrap()
    })
}

fn validator(language: &str, files: &[(&str, &str)]) -> Validator {
    let file = |(path, text): &(&str, &str)| SourceFile {
        path: (*path).into(),
        text: (*text).into(),
    };
    Validator {
        language: language.into(),
        entry: files[0].0.into(),
        files: files.iter().map(file).collect(),
        flags: vec!["default".into()],
        group_flags: [(
            "secret/g".to_owned(),
            vec!["of".to_owned(), "a group".to_owned()],
        )]
        .into(),
    }
}

fn problem(validator: Validator) -> Problem {
    let test = |name: &str, input: &str, output: &str| TestCase {
        name: name.into(),
        input: input.into(),
        output: output.into(),
    };
    Problem {
        id: "validated".into(),
        name: String::new(),
        statement: "Print a number.".into(),
        time_limit_s: 2.0,
        memory_limit_mb: 128,
        checker: Checker::Validator(validator),
        function: None,
        public_tests: vec![test("sample/1", "3\n", "THE ANSWER\n")],
        private_tests: vec![
            test("secret/g/1", "4\n", "5\n"),
            test("secret/h/1", "6\n", "7\n"),
        ],
        generated_tests: Vec::new(),
        solutions: Vec::new(),
        wrong_solutions: Vec::new(),
        meta: serde_json::Map::new(),
    }
}

fn python(code: &str) -> Problem {
    problem(validator("python", &[("validate.py", code)]))
}

fn verdict(problem: &Problem, code: &str) -> Result<(Verdict, Detail), Fault> {
    let tests = &problem.public_tests;
    let mut report = judge().judge(problem, code, tests, Stop::Never)?;
    let result = report.results.remove(0);
    Ok((result.verdict, result.detail))
}

#[test]
fn a_validator_is_given_what_the_format_says() {
    let code = "import os, sys\n\
        a, b, c = sys.argv[1:4]\n\
        seen = [open(a).read(), open(b).read(), c[-1], os.listdir(c), sys.argv[4:], sys.stdin.read()]\n\
        open(c + 'judgemessage.txt', 'w').write(repr(seen))\n\
        sys.exit(43)\n";
    let problem = python(code);
    let (got, detail) = verdict(&problem, "print('x' * 3)").unwrap();
    assert_eq!(got, Verdict::WrongAnswer);
    assert_eq!(
        detail.to_string(),
        r"['3\n', 'THE ANSWER\n', '/', [], ['default'], 'xxx\n']"
    );
    let private = judge().judge(&problem, "", &problem.private_tests, Stop::Never);
    let details: Vec<String> = (private.unwrap().results.iter())
        .map(|result| result.detail.to_string())
        .collect();
    assert_eq!(
        details,
        [
            r"['4\n', '5\n', '/', [], ['of', 'a group'], '']",
            r"['6\n', '7\n', '/', [], ['default'], '']"
        ]
    );
}

#[test]
fn its_ending_is_the_verdict_or_a_fault() {
    let accepts = |ending: &str| verdict(&python(ending), "print(1)");
    assert_eq!(
        accepts("raise SystemExit(42)").unwrap().0,
        Verdict::Accepted
    );
    let (got, detail) = accepts("raise SystemExit(43)").unwrap();
    assert_eq!(got, Verdict::WrongAnswer);
    assert!(detail.to_string().contains("rejects"), "{detail}");
    for (code, told) in [
        ("", "status 0"),
        ("raise SystemExit(1)", "status 1"),
        ("raise ValueError('who knows')", "ValueError: who knows"),
        ("import os\nos.abort()", "signal 6"),
        ("while True: pass", "time limit"),
        ("x = bytearray(4 << 30)", "memory limit"),
        ("def f(:", "does not compile"),
    ] {
        match accepts(code) {
            Err(Fault::Validator { what, .. }) => assert!(what.contains(told), "{code}: {what}"),
            other => panic!("{code}: {other:?}"),
        }
    }
}

#[test]
fn a_program_that_fails_is_not_shown_to_the_validator() {
    let problem = python("raise SystemExit(42)");
    for (code, wanted) in [
        ("print(1); raise SystemExit(3)", Verdict::RuntimeError),
        ("print(1)\nwhile True: pass", Verdict::TimeLimit),
        ("print(1", Verdict::CompileError),
        ("print('x' * (20 << 20))", Verdict::OutputLimit),
    ] {
        assert_eq!(verdict(&problem, code).unwrap().0, wanted, "{code}");
    }
}

#[test]
fn programs_never_see_the_answer_or_the_validator() {
    // Whoever finds the answer anywhere prints it, and is accepted.
    let mut problem = python(
        "import sys\nprint(open(sys.argv[2]).read())\n\
         sys.exit(42 if sys.stdin.read() == open(sys.argv[2]).read() else 43)\n",
    );
    assert_eq!(
        verdict(&problem, "print('THE ANSWER')").unwrap().0,
        Verdict::Accepted
    );
    let thief = "import os, sys\n\
        found = []\n\
        for folder, folders, files in os.walk('/'):\n\
        \x20   folders[:] = [f for f in folders if f not in ('proc', 'usr', 'lib', 'lib64', 'dev') and 'python' not in f]\n\
        \x20   for name in files:\n\
        \x20       try:\n\
        \x20           text = open(os.path.join(folder, name), errors='replace').read(100)\n\
        \x20       except OSError:\n\
        \x20           continue\n\
        \x20       if text.startswith('THE ANSWE' + 'R'):\n\
        \x20           found.append(text)\n\
        for fd in range(3, 64):\n\
        \x20   try:\n\
        \x20       found.append(os.pread(fd, 100, 0).decode(errors='replace'))\n\
        \x20   except OSError:\n\
        \x20       pass\n\
        found += [a for a in sys.argv + list(os.environ.values()) if 'ANSWE' + 'R' in a]\n\
        print(*found, sep='')\n";
    problem.time_limit_s = 10.0;
    for _ in 0..5 {
        assert_eq!(verdict(&problem, thief).unwrap().0, Verdict::WrongAnswer);
    }
}

#[test]
fn hostile_output_is_the_validators_input_and_no_more() {
    let problem =
        python("import sys\nsys.exit(42 if len(sys.stdin.buffer.read()) == 5000002 else 43)\n");
    let code = "import sys\nsys.stdout.buffer.write(b'\\xff\\0' + b'x' * 5000000)\n";
    assert_eq!(verdict(&problem, code).unwrap().0, Verdict::Accepted);
}

#[test]
fn validators_of_several_files_and_languages() {
    let cpp = [
        (
            "src/check.cpp",
            "#include \"help.h\"\n#include <iostream>\nint main() { int x; return std::cin >> x && x == right() ? 42 : 43; }\n",
        ),
        ("src/help.h", "int right();\n"),
        ("src/help.cc", "int right() { return 8; }\n"),
    ];
    let python = [
        (
            "check.py",
            "import sys\nfrom lib.help import right\nsys.exit(42 if int(input()) == right() else 43)\n",
        ),
        ("lib/help.py", "def right():\n    return 8\n"),
    ];
    for (language, files) in [("cpp", &cpp[..]), ("python", &python[..])] {
        if !judge().can_run(language) {
            continue;
        }
        let problem = problem(validator(language, files));
        let before = judge().stats();
        assert_eq!(
            verdict(&problem, "print(8)").unwrap().0,
            Verdict::Accepted,
            "{language}"
        );
        assert_eq!(
            verdict(&problem, "print(9)").unwrap().0,
            Verdict::WrongAnswer,
            "{language}"
        );
        // The same output on the same test is remembered.
        assert_eq!(
            verdict(&problem, "print(7 + 1)").unwrap().0,
            Verdict::Accepted,
            "{language}"
        );
        assert!(judge().stats().cache_hits > before.cache_hits);
    }
}

#[test]
fn what_cannot_be_run_is_said_before_any_program_runs() {
    let wrong = validator("cpp", &[("check.cpp", "int main( {")]);
    if judge().can_run("cpp") {
        let fault = judge().ready(&problem(wrong)).unwrap_err().to_string();
        assert!(
            fault.contains("does not compile") && fault.contains("main.cpp"),
            "{fault}"
        );
    }
    let script = problem(validator("script", &[("build", "#!/bin/sh\nmake\n")]));
    let fault = judge().check(&script).unwrap_err();
    assert!(
        matches!(&fault, Fault::Validator { what, .. } if what.contains("script")),
        "{fault}"
    );
    let unknown = problem(validator("cobol", &[("check.cob", "")]));
    let fault = judge().check(&unknown).unwrap_err();
    assert!(
        matches!(&fault, Fault::NoValidator { what, .. } if what.contains("cobol")),
        "{fault}"
    );
}

/// The problems of the packages that the readers are tested with.
fn packages() -> Vec<Problem> {
    #[derive(Default)]
    struct Kept(Vec<Problem>);
    impl Sink for Kept {
        fn problem(&mut self, imported: Imported) -> std::io::Result<()> {
            self.0.push(imported.problem);
            Ok(())
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../problems/testdata/packages");
    let mut kept = Kept::default();
    import(&folder, &ImportOptions::default(), &mut kept, &mut |_| {}).expect("read");
    kept.0
}

fn audited(problem: Problem) -> Record {
    let sandbox = Sandbox::new(Config::default()).expect("these tests need a sandbox");
    let config = JudgeConfig {
        cache: false,
        ..JudgeConfig::default()
    };
    let judge = Judge::new(sandbox, config).unwrap();
    let item = Item {
        number: 0,
        split: None,
        problem,
    };
    let mut records = vec![];
    let items = std::iter::once(Ok::<_, std::convert::Infallible>(item));
    let (config, stop) = (AuditConfig::default(), AtomicBool::new(false));
    check_all(&judge, &config, items, 2, &stop, |done| {
        if let Done::Problem { record, .. } = done {
            records.push(record);
        }
        Ok(())
    })
    .unwrap();
    records.remove(0)
}

#[test]
fn authors_programs_get_the_verdicts_that_their_packages_say() {
    let all = packages();
    assert!(all.len() >= 3, "{}", all.len());
    for problem in all {
        let languages = problem.solutions.iter().map(|s| s.language.clone());
        let here = languages
            .chain(["cpp".to_owned()])
            .all(|l| judge().can_run(&l));
        let record = audited(problem);
        let unfounded = [
            Kind::WeakTests,
            Kind::NotRun,
            Kind::NoReference,
            Kind::LeakedOutput,
            Kind::TightTimeLimit,
        ];
        let found: Vec<_> = (record.findings.iter())
            .filter(|finding| !unfounded.contains(&finding.kind))
            .collect();
        assert!(found.is_empty() || !here, "{}: {found:#?}", record.problem);
        for (expected, got) in &record.verdicts {
            for (verdict, programs) in got {
                let agrees = verdict == expected || expected == "NOT_AC" && verdict != "AC";
                assert!(
                    agrees || verdict == "not run",
                    "{}: {programs} of {expected} got {verdict}",
                    record.problem
                );
            }
        }
    }
}

#[test]
fn a_problem_whose_validator_fails_cannot_be_judged() {
    let mut problem = python("raise KeyError(1)");
    problem.solutions = vec![rlef_problems::Solution {
        file: "a.py".into(),
        language: "python".into(),
        class: None,
        expected: "AC".into(),
        code: "print(1)".into(),
    }];
    let record = audited(problem);
    let kinds: Vec<Kind> = record.findings.iter().map(|finding| finding.kind).collect();
    assert!(
        kinds.contains(&Kind::CannotBeJudged) && record.has_errors(),
        "{kinds:?}"
    );
}
