//! `rlef debug`: scripted sessions.

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

const MODEL: &str = "tiny";

/// The transcript of a session in which `commands` are typed; it ends well.
fn session(arguments: &[&str], commands: &str) -> String {
    let output = Command::from_std(rlef_tests::rlef())
        .arg("debug")
        .args(arguments)
        .write_stdin(commands)
        .output()
        .expect("rlef starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(!text.contains('\x1b'), "no escapes away from a terminal");
    text
}

fn typed(arguments: &[&str], commands: &str) -> String {
    let all = ["double-it", "--model", "none"];
    session(&[&all[..], arguments].concat(), commands)
}

/// A problem of the micro family, alone in a file.
fn one_micro_problem(folder: &Path) -> (String, String) {
    let out = folder.to_str().expect("plain text");
    Command::from_std(rlef_tests::rlef())
        .args(["problems", "generate", "micro", "--out", out])
        .assert()
        .success();
    let all = std::fs::read_to_string(folder.join("test.jsonl")).expect("a file");
    let line = all.lines().next().expect("a problem");
    let problem: Value = serde_json::from_str(line).expect("JSON");
    let file = folder.join("one.jsonl");
    std::fs::write(&file, format!("{line}\n")).expect("a file");
    let id = problem["id"].as_str().expect("an id");
    (file.to_str().expect("plain text").to_owned(), id.to_owned())
}

#[test]
fn a_dialog_that_is_typed() {
    let commands = "type\nhi\n.\ntype\n```python\nprint(14)\n```\n.\nundo\ntype\n```python\nprint(int(input()) * 2)\n\
                    ```\n.\nreward\nprompt\nundo\nundo\nundo\n";
    insta::assert_snapshot!(typed(&[], commands), @"
    double-it of basics, 3 turns, feedback real, model none, temperature 0.2, seed 0; `help` lists the commands
    [user]
    One line holds an integer n (-1000000000 to 1000000000). Print twice its value.
    turn 1 of 3> type
    | hi
    | .
    no code block found, so nothing was run; reward -0.2
    [user]
    no code
    turn 2 of 3> type
    | ```python
    | print(14)
    | ```
    | .
    public: 1 of 2 accepted; private: not run; reward 0
    [user]
    `-3` gave `14` not `-6`
    turn 3 of 3> undo
    [user]
    no code
    turn 2 of 3> type
    | ```python
    | print(int(input()) * 2)
    | ```
    | .
    public: 2 of 2 accepted; private: 5 of 5 accepted; reward +1
    ended: solved
    ended> reward
    turn 1  -0.2  no valid code, and not the last answer: invalid_code_reward -0.2
    turn 2  +1    the last answer passed every test: solved_reward +1
    total   +0.8  without the price of leaving the reference policy, which training adds
    ended> prompt
    [user]
    One line holds an integer n (-1000000000 to 1000000000). Print twice its value.
    [assistant]
    hi
    [user]
    no code
    [assistant]
    ```python
    print(int(input()) * 2)
    ```
    ended> undo
    [user]
    no code
    turn 2 of 3> undo
    [user]
    One line holds an integer n (-1000000000 to 1000000000). Print twice its value.
    turn 1 of 3> undo
    this is the start
    ");
}

#[test]
fn a_program_from_a_file_and_what_ran() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("my answer.py");
    let program = "import sys\nprint(int(input()) + 7)\nprint('so so', file=sys.stderr)\n";
    std::fs::write(&file, program).expect("a file");
    let commands = format!(
        "file {}\nran\nprivate\ntests\ntokens\nquit\nundo\n",
        file.display()
    );
    let text = typed(&[], &commands);
    for part in [
        "```python\nimport sys\nprint(int(input()) + 7)",
        "public: 1 of 2 accepted; private: not run; reward 0\n[user]\n`-3` gave `4` not `-6`\n",
        "[code]\nimport sys\n",
        "  detail\n    line 1: `4` instead of `-6`\n  stdin\n    -3\n  expected\n    -6\n  stdout\n    4\n  stderr\n    so so\n",
        "  private/5  wrong answer  ",
        "public/2: output\n  -6\n",
        "there is no model, so there are no tokens\n",
    ] {
        assert!(text.contains(part), "{part}\nis not in\n{text}");
    }
    assert!(text.ends_with("> quit\n"), "nothing after quit:\n{text}");
}

#[test]
fn odd_input_is_answered() {
    let commands = "frobnicate\nt\nprivat\nprivate\nran\nreward\nagain\n\nfile\nfile /nowhere/x.py\nundo now\n\
                    \x1b[2J\n\u{202e}\nhelp\ntype\n.\ntype\nnever ended";
    let text = typed(&[], commands);
    for part in [
        "unknown command `frobnicate`",
        "`t` could be type or tests or tokens\n",
        "nothing has been answered\n",
        "there is no model, so there are no samples\n",
        "there is no model; `type` and `file PATH` answer\n",
        "`file` needs the path of a program\n",
        "cannot read /nowhere/x.py: ",
        "`undo` takes nothing after it\n",
        "unknown command `\\u{1b}[2J`",
        "unknown command `\\u{202e}`",
        "file PATH  answer with the program in a file",
        "no code block found",
    ] {
        assert!(text.contains(part), "{part}\nis not in\n{text}");
    }
    let bytes = Command::from_std(rlef_tests::rlef())
        .args(["debug", "double-it", "--model", "none"])
        .write_stdin(&b"type\n\xff\xfe\x00\r\n.\r\n\xff\n"[..])
        .output()
        .expect("rlef starts");
    assert!(bytes.status.success());
}

#[test]
fn the_last_turn_ends_it_and_turns_can_be_set() {
    let text = typed(&["--max-turns", "1"], "type\nhi\n.\n\ntype\nundo\nprompt\n");
    assert!(
        text.contains("reward -1\nended: not solved\nended> "),
        "{text}"
    );
    assert_eq!(text.matches("the dialog has ended").count(), 2, "{text}");
    assert!(text.contains("turn 1 of 1> prompt"), "{text}");
}

#[test]
fn feedback_can_be_false_or_absent() {
    let wrong = "type\n```python\nprint(1)\n```\n.\n";
    let real = typed(&[], wrong);
    let random = typed(&["--feedback", "random"], wrong);
    let none = typed(&["--feedback", "none"], wrong);
    assert!(real.contains("`7` gave `1` not `14`"), "{real}");
    assert!(!random.contains("`7` gave `1` not `14`"), "{random}");
    assert!(none.contains("[user]\ntry again\n"), "{none}");
    assert_eq!(
        random,
        typed(&["--feedback", "random"], wrong),
        "chosen by the seed"
    );
}

#[test]
fn the_model_plays_rollout_0_of_the_evaluation() {
    let folder = tempfile::tempdir().expect("a folder");
    let (set, id) = one_micro_problem(folder.path());
    let dialogs = folder.path().join("dialogs.jsonl");
    let common = ["--model", MODEL, "--problems", &set, "--seed", "5"];
    Command::from_std(rlef_tests::rlef())
        .args(["eval", "--split", "all", "--rollouts", "1", "--dialogs"])
        .arg(&dialogs)
        .args(common)
        .assert()
        .success();
    let line = std::fs::read_to_string(dialogs).expect("a file");
    let dialog: Value = serde_json::from_str(line.trim()).expect("one dialog");
    let messages = dialog["messages"].as_array().expect("messages");
    let text = session(&[&[&*id][..], &common].concat(), "\n\n\nprompt\nreward\n");
    let mut expected = String::new();
    for message in messages {
        let role = message["role"].as_str().expect("a role");
        let content = message["content"].as_str().expect("text");
        expected += &format!("[{role}]\n{}\n", visible(content));
    }
    assert!(text.contains(&expected), "{expected}\nis not in\n{text}");
    let reward = dialog["reward"].as_f64().expect("a number");
    let total = text.lines().find_map(|line| line.strip_prefix("total "));
    let total = total.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    assert!(
        total.is_some_and(|t| (t - reward).abs() < 1e-4),
        "{reward}\n{text}"
    );
}

/// A model may write anything; what a terminal would obey is shown spelt out.
fn visible(text: &str) -> String {
    let spelt = |c: char| match c {
        '\n' | '\t' => c.to_string(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(spelt).collect()
}

#[test]
fn samples_can_be_taken_back_and_drawn_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (set, id) = one_micro_problem(folder.path());
    let arguments = [
        &*id,
        "--model",
        MODEL,
        "--problems",
        &set,
        "--max-turns",
        "4",
    ];
    let answers = |commands: &str| {
        let text = session(&arguments, commands);
        let parts = text.split("[assistant: ").skip(1);
        parts
            .map(|part| part.split("; reward").next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let once = answers("model\n");
    assert_eq!(once.len(), 1);
    assert!(once[0].contains(" tokens, log-probability -"), "{once:?}");
    assert_eq!(
        answers("model\nundo\nmodel\n"),
        [&once[..], &once[..]].concat()
    );
    let again = answers("model\nagain\nagain\nagain\n");
    assert_eq!(again.len(), 4);
    assert!(again.iter().any(|answer| *answer != again[0]), "{again:?}");
    let text = session(&arguments, "type\nhi\n.\ntokens\nmodel\ntokens\n");
    assert!(
        text.contains("typed: the model gave them no log-probability"),
        "{text}"
    );
    assert!(text.contains(" tokens of prompt\n\""), "{text}");
}

#[test]
fn plans_and_mistakes() {
    insta::assert_snapshot!(typed(&["--dry-run", "--set", "episode.max_turns=2"], ""), @"double-it of basics, 2 turns, feedback real, model none, temperature 0.2, seed 0");
    for (arguments, words) in [
        (&["nosuch"][..], "has no problem `nosuch`"),
        (&["duble-it"], "nearest: `double-it`"),
        (
            &["double-it", "--set", "episode.max_turn=2"],
            "did you mean `episode.max_turns`?",
        ),
        (&["double-it", "--model", "/nowhere"], "neither `tiny`"),
        (&["double-it", "--max-turns", "0"], "max_turns"),
    ] {
        let output = Command::from_std(rlef_tests::rlef())
            .arg("debug")
            .args(arguments)
            .output()
            .expect("rlef starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
}
