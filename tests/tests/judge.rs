//! `rlef judge`: verdicts, summary and exit code.

use assert_cmd::Command;
use serde_json::Value;

/// Exit code and stdout.
fn judge(arguments: &[&str], program: &str) -> (i32, String) {
    let output = Command::from_std(rlef_tests::rlef())
        .arg("judge")
        .args(arguments)
        .write_stdin(program)
        .output()
        .expect("rlef starts");
    let code = output.status.code().expect("an exit code");
    (code, String::from_utf8(output.stdout).expect("text"))
}

/// Without the CPU times.
fn stable(text: &str) -> String {
    let time =
        |word: &str| word.len() == 5 && word.starts_with("0.") && word.parse::<f64>().is_ok();
    let lines = text.lines().map(|line| {
        let words = line.split(' ').map(|w| if time(w) { "0.000" } else { w });
        words.collect::<Vec<_>>().join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn an_accepted_program() {
    let (code, text) = judge(&["double-it", "-"], "print(int(input()) * 2)\n");
    insta::assert_snapshot!(stable(&text), @"
    public tests
      public/1  accepted  0.000 s
      public/2  accepted  0.000 s
    private tests
      private/1  accepted  0.000 s
      private/2  accepted  0.000 s
      private/3  accepted  0.000 s
      private/4  accepted  0.000 s
      private/5  accepted  0.000 s
    accepted (tests accepted: public 2 of 2, private 5 of 5)
    ");
    assert_eq!(code, 0);
}

#[test]
fn a_wrong_answer_shows_the_first_difference() {
    let program = "print(int(input()) + 7)\n";
    let (code, text) = judge(&["double-it", "-", "--public-only"], program);
    insta::assert_snapshot!(stable(&text), @"
    public tests
      public/1  accepted      0.000 s
      public/2  wrong answer  0.000 s  line 1: `4` instead of `-6`
    wrong answer (tests accepted: public 1 of 2)
    ");
    assert_eq!(code, 1);
    let (code, text) = judge(&["double-it", "-", "--stop"], program);
    assert!(
        text.ends_with("wrong answer (tests accepted: public 1 of 2, private not run)\n"),
        "{text}"
    );
    assert_eq!(code, 1);
    let (code, text) = judge(&["double-it", "-", "--stop", "--private-only"], program);
    insta::assert_snapshot!(stable(&text), @"
    private tests
      private/1  wrong answer  0.000 s  line 1: `7` instead of `0`
      (4 more not run)
    wrong answer (tests accepted: private 0 of 5)
    ");
    assert_eq!(code, 1);
}

#[test]
fn crashes_and_what_does_not_parse() {
    let (code, text) = judge(&["double-it", "-", "--public-only"], "print(1 // 0)\n");
    assert!(text.contains("runtime error"), "{text}");
    assert!(text.contains("exit status 1: ZeroDivisionError"), "{text}");
    assert_eq!(code, 1);
    let (code, text) = judge(&["double-it", "-", "--public-only"], "print(\n");
    insta::assert_snapshot!(text, @"
    public tests
      all 2 tests  compile error
          File \"main.py\", line 1
            print(
                 ^
        SyntaxError: '(' was never closed
    compile error (tests accepted: public 0 of 2)
    ");
    assert_eq!(code, 1);
}

#[test]
fn long_and_hostile_output_is_cut_and_harmless() {
    let (code, text) = judge(
        &["double-it", "-", "--public-only"],
        "print('\\x1b[2J' + 'a' * 100000)\n",
    );
    assert_eq!(code, 1);
    assert!(!text.contains('\x1b'));
    assert!(
        text.lines().all(|line| line.chars().count() < 250),
        "{text}"
    );
}

#[test]
fn json_has_every_test() {
    let (code, text) = judge(&["double-it", "-", "--json"], "print(int(input()) + 7)\n");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(code, 1);
    assert_eq!(report["accepted"], false);
    assert_eq!(report["verdict"], "wrong_answer");
    assert_eq!(
        (&report["passed"], &report["total"]),
        (&1.into(), &7.into())
    );
    assert_eq!(report["public"]["results"][1]["stdout"], "4\n");
    assert_eq!(
        report["private"]["results"].as_array().map(Vec::len),
        Some(5)
    );
}

#[test]
fn known_programs_get_their_verdicts() {
    let path = rlef_tests::root().join("problems/basics/problems.jsonl");
    let text = std::fs::read_to_string(path).expect("the basics");
    let mut judged = 0;
    for line in text.lines().take(4) {
        let problem: Value = serde_json::from_str(line).expect("a problem");
        let id = problem["id"].as_str().expect("an id");
        let lists = ["solutions", "wrong_solutions"];
        for solution in lists
            .iter()
            .flat_map(|l| problem[*l].as_array().expect("a list"))
        {
            let program = solution["code"].as_str().expect("code");
            let (code, text) = judge(&[id, "-", "--problems", "basics"], program);
            let accepted = solution["expected"] == "AC";
            assert_eq!(
                code,
                i32::from(!accepted),
                "{id} {}:\n{text}",
                solution["file"]
            );
            judged += 1;
        }
    }
    assert!(judged >= 8);
}

#[test]
fn an_unknown_problem_names_the_nearest() {
    let output = Command::from_std(rlef_tests::rlef())
        .args(["judge", "duble-it", "-"])
        .output()
        .expect("rlef starts");
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("nearest: `double-it`"), "{stderr}");
}
