use super::*;
use crate::{Checker, Numbers, Problem, ProblemSet, WhiteSpace};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

fn problem() -> Problem {
    ProblemSet::open("basics")
        .expect("bundled")
        .get("double-it")
        .expect("there")
        .clone()
}

/// The reward that a task's own script gives a program.
fn reward(task: &Path, program: &str) -> String {
    let solution = task.join("try.py");
    std::fs::write(&solution, program).expect("written");
    let reward = task.join("reward.txt");
    let status = Command::new("python3")
        .arg(task.join("tests/check.py"))
        .env("RLEF_SOLUTION", &solution)
        .env("RLEF_REWARD", &reward)
        .status()
        .expect("python3 on PATH");
    assert!(status.success());
    std::fs::read_to_string(reward)
        .expect("a reward")
        .trim()
        .to_owned()
}

#[test]
fn a_harbor_task_rewards_what_is_right() {
    let folder = tempfile::tempdir().expect("a folder");
    // Where the tests run as another user, it must get at the program.
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))
        .expect("opened");
    let problem = problem();
    let task = write_harbor_task(folder.path(), &problem).expect("written");
    for name in [
        "instruction.md",
        "task.toml",
        "environment/Dockerfile",
        "environment/public/1.in",
        "tests/test.sh",
        "tests/private/5.out",
        "solution/solve.sh",
    ] {
        assert!(task.join(name).is_file(), "{name}");
    }
    assert!(!task.join("environment/private").exists());
    let instruction = std::fs::read_to_string(task.join("instruction.md")).expect("read");
    assert!(instruction.contains("twice its value") && instruction.contains("/app/solution.py"));
    for test in &problem.private_tests {
        assert!(
            !instruction.contains(&test.output) || test.output.len() < 3,
            "no answers in the instruction"
        );
    }
    assert_eq!(reward(&task, &problem.solutions[0].code), "1");
    assert_eq!(reward(&task, &problem.wrong_solutions[0].code), "0");
    assert_eq!(reward(&task, "print('1')\nraise SystemExit(0)"), "0");
    assert_eq!(reward(&task, "raise SystemExit(1)"), "0");
    assert!(
        matches!(
            write_harbor_task(folder.path(), &problem),
            Err(ExportError::Io { .. })
        ),
        "it is there"
    );
}

#[test]
fn what_a_format_cannot_hold_is_refused_or_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.parquet");
    let mut writer = CodeContestsWriter::create(&file).expect("a file");
    let notes = writer.write(&problem()).expect("written");
    assert!(
        notes.iter().any(|note| note.contains("checker")),
        "{notes:?}"
    );
    let mut function = problem();
    function.function = Some("f".into());
    assert!(matches!(
        writer.write(&function),
        Err(ExportError::Unfit { .. })
    ));
    assert!(matches!(
        write_harbor_task(folder.path(), &function),
        Err(ExportError::Unfit { .. })
    ));
    let mut custom = problem();
    custom.checker = Checker::Custom(Default::default());
    assert!(matches!(
        writer.write(&custom),
        Err(ExportError::Unfit { .. })
    ));
    drop(writer);
    assert!(!file.exists(), "an unfinished file is not there");
}

/// Compares by the script's rule, many at once.
fn by_script(pairs: &[(Checker, Vec<u8>, Vec<u8>)]) -> Vec<bool> {
    let script = format!(
        "{}\nfor line in sys.stdin:\n    c, a, b = json.loads(line)\n    print(int(compare(c, bytes(a), bytes(b))))\n",
        include_str!("harbor/check.py").replace("if __name__ == \"__main__\":\n    main()\n", "")
    )
    .replace("pathlib.Path(__file__)", "pathlib.Path('.')");
    let mut python = Command::new("python3")
        .args(["-I", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 on PATH");
    let text: String = pairs
        .iter()
        .map(|pair| serde_json::to_string(pair).expect("JSON") + "\n")
        .collect();
    let mut stdin = python.stdin.take().expect("a pipe");
    let writing = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = python.wait_with_output().expect("it ends");
    writing.join().expect("joined").expect("written");
    output
        .stdout
        .iter()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|&byte| byte == b'1')
        .collect()
}

/// The script in a task and the checkers here must agree on everything.
#[test]
fn the_script_of_a_task_compares_as_checkers_do() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let byte = prop::sample::select(b" \n\r\t01.eE+-aA\xc3".to_vec());
    let texts = (
        prop::collection::vec(byte.clone(), 0..9),
        prop::collection::vec(byte, 0..9),
    );
    let numbers = Some(Numbers {
        abs: 0.5,
        rel: 0.0,
        integers_exact: true,
    });
    let tokens = |case_sensitive, white_space, numbers| Checker::Tokens {
        case_sensitive,
        white_space,
        numbers,
    };
    let checkers = [
        Checker::Exact,
        Checker::Lines,
        Checker::AnyOrder {
            case_sensitive: false,
        },
        Checker::Float {
            abs: 0.0,
            rel: 0.1,
            case_sensitive: true,
        },
        Checker::Float {
            abs: 0.0,
            rel: 0.0,
            case_sensitive: true,
        },
        tokens(true, WhiteSpace::Lines, None),
        tokens(false, WhiteSpace::Any, numbers),
        tokens(false, WhiteSpace::Exact, numbers),
    ];
    let mut pairs = Vec::new();
    for round in 0..4000 {
        let (a, b) = texts.new_tree(&mut runner).expect("a value").current();
        pairs.push((
            checkers[round % checkers.len()].clone(),
            a.clone(),
            if round % 3 == 0 {
                [&a[..], b" \n"].concat()
            } else {
                b
            },
        ));
    }
    let found = by_script(&pairs);
    assert_eq!(found.len(), pairs.len());
    let mut same = 0;
    for ((checker, a, b), found) in pairs.iter().zip(found) {
        let wanted = checker.compare(a, b).expect("usable").is_same();
        same += usize::from(wanted);
        assert_eq!(
            found,
            wanted,
            "{checker:?} {:?} {:?}",
            String::from_utf8_lossy(a),
            String::from_utf8_lossy(b)
        );
    }
    assert!(same > 500, "{same}");
}
