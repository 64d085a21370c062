//! Runs the programs of bundled problems in tests of this crate: one plain interpreter for all, so only programs that
//! end. How programs of a model are run is the sandbox's business.

use std::io::Write as _;
use std::process::{Command, Stdio};

const INTERPRETER: &str = r"
import sys, io, json
for line in sys.stdin.readlines():
    code, text = json.loads(line)
    real = sys.stdin, sys.stdout
    sys.stdin, sys.stdout = io.StringIO(text), io.StringIO()
    try:
        exec(compile(code, 'program.py', 'exec'), {'__name__': '__main__'})
        answer = sys.stdout.getvalue()
    except Exception:
        answer = None
    finally:
        sys.stdin, sys.stdout = real
    print(json.dumps(answer))
";

/// What each program prints for its input; `None` where it raises.
pub(crate) fn outputs(runs: &[(&str, &str)]) -> Vec<Option<String>> {
    let mut python = Command::new("python3")
        .args(["-I", "-c", INTERPRETER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 on PATH");
    let mut stdin = python.stdin.take().expect("a pipe");
    for run in runs {
        // The interpreter reads everything before it answers, so neither side waits for the other.
        writeln!(stdin, "{}", serde_json::to_string(run).expect("JSON")).expect("python3 reads");
    }
    drop(stdin);
    let output = python.wait_with_output().expect("python3 ends");
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).expect("text");
    let answers: Vec<Option<String>> = answers
        .lines()
        .map(|line| serde_json::from_str(line).expect("an answer"))
        .collect();
    assert_eq!(answers.len(), runs.len());
    answers
}
