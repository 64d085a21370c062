//! `rlef run`: what the program wrote, how it ended, and the exit code.

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use serde_json::Value;

fn run(program: &str, options: &[&str]) -> Assert {
    Command::from_std(rlef_tests::rlef())
        .args(["run", "-"])
        .args(options)
        .write_stdin(program)
        .assert()
}

fn json(program: &str, options: &[&str], code: i32) -> Value {
    let mut all = vec!["--json"];
    all.extend(options);
    let output = run(program, &all).code(code).get_output().clone();
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

#[test]
fn stdin_stdout_stderr_and_exit_code_pass_through() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.py");
    let program = "import sys\nprint(sys.stdin.read().upper(), end='')\nsys.stderr.write('oh')\nsys.exit(7)\n";
    std::fs::write(&file, program).expect("a file");
    let output = Command::from_std(rlef_tests::rlef())
        .arg("run")
        .arg(&file)
        .write_stdin("one\ntwo")
        .assert()
        .code(7)
        .get_output()
        .clone();
    assert_eq!(output.stdout, b"ONE\nTWO");
    let stderr = String::from_utf8(output.stderr).expect("text");
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines[0], "oh");
    assert!(lines[1].starts_with("rlef: exit status 7, "), "{stderr}");
    for part in ["s CPU", "s wall", "MiB"] {
        assert!(lines[1].contains(part), "{stderr}");
    }
}

#[test]
fn a_program_from_stdin_has_an_empty_stdin() {
    let output = run("import sys; print(repr(sys.stdin.read()))", &[])
        .code(0)
        .get_output()
        .clone();
    assert_eq!(output.stdout, b"''\n");
}

#[test]
fn each_limit_has_its_exit_code() {
    let cases = [
        ("while True: pass", &["--cpu", "0.3"][..], 124, "cpu_limit"),
        (
            "import time; time.sleep(60)",
            &["--cpu", "1", "--wall", "0.5"],
            124,
            "wall_limit",
        ),
        (
            "x = bytearray(10**9)",
            &["--memory", "200"],
            137,
            "memory_limit",
        ),
        ("import os; os.kill(os.getpid(), 11)", &[], 139, "signalled"),
        ("while True: print('a' * 100000)", &[], 153, "output_limit"),
    ];
    for (program, options, code, ending) in cases {
        let report = json(program, options, code);
        assert_eq!(report["ending"], ending, "{program}: {report}");
        assert_eq!(report["exit_code"], code, "{program}");
    }
}

#[test]
fn json_says_it_all() {
    let program = "import os, sys\nos.write(1, b'a\\xff')\nprint('é', file=sys.stderr)\n";
    let report = json(program, &[], 0);
    assert_eq!(report["ending"], "exited");
    assert_eq!(report["detail"], 0);
    assert_eq!(report["stdout"], "a\u{fffd}");
    assert_eq!(report["stderr"], "é\n");
    assert!(
        report["cpu_s"]
            .as_f64()
            .is_some_and(|s| s > 0.0 && s < 10.0)
    );
    assert!(report["wall_s"].as_f64().is_some_and(|s| s > 0.0));
    assert!(
        report["peak_memory_bytes"]
            .as_u64()
            .is_some_and(|b| b > 1 << 20)
    );
}

#[test]
fn what_cannot_be_run_is_said() {
    Command::from_std(rlef_tests::rlef())
        .args(["run", "/nowhere/a.py"])
        .assert()
        .code(2);
    for (option, value) in [("--cpu", "0"), ("--wall", "soon"), ("--memory", "0")] {
        run("print(1)", &[option, value]).code(2);
    }
    let output = Command::from_std(rlef_tests::rlef())
        .args(["run", "-"])
        .write_stdin(&b"\xff\xfe"[..])
        .assert()
        .code(2)
        .get_output()
        .clone();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("not UTF-8"), "{stderr}");
}

#[test]
fn without_an_interpreter_it_is_a_fault_and_not_a_verdict() {
    for arguments in [&["run", "-"][..], &["judge", "double-it", "-"]] {
        let output = Command::from_std(rlef_tests::rlef())
            .args(arguments)
            .env("PATH", "/nowhere")
            .write_stdin("print(1)")
            .assert()
            .code(3)
            .get_output()
            .clone();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.starts_with("fault: ") && stderr.contains("python3"),
            "{stderr}"
        );
        assert!(output.stdout.is_empty());
    }
}

/// What cannot be passed on is no success, and what nobody can read changes no exit code.
#[test]
fn a_full_output_is_said_and_a_full_stderr_changes_nothing() {
    let full = || {
        let device = std::fs::File::options().write(true).open("/dev/full");
        device.expect("a full device")
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.py");
    std::fs::write(&file, "print('x')\nimport sys\nsys.exit(7)\n").expect("a file");
    let mut command = rlef_tests::rlef();
    command.arg("run").arg(&file);
    let output = command.stdout(full()).output().expect("rlef starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("cannot write to stdout"), "{stderr}");
    let mut command = rlef_tests::rlef();
    command.arg("run").arg(&file).stderr(full());
    let output = command.output().expect("rlef starts");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, b"x\n");
}

/// Not a wall, only a command: what comes back goes the same way.
#[test]
fn another_backend_can_take_the_place_of_the_sandbox() {
    let interpreter = ["--backend", "python3 -I '{file}'"];
    let report = json("print(len(input() or 'x'))\n", &interpreter, 1);
    assert_eq!(report["ending"], "exited");
    assert!(
        report["stderr"]
            .as_str()
            .expect("text")
            .contains("EOFError")
    );
    let report = json("import sys\nsys.exit(7)\n", &interpreter, 7);
    assert_eq!(report["detail"], 7);
    for (command, words) in [
        ("python3", "{file}"),
        ("/no/such/vm {file}", "cannot be started"),
        ("true {file}", "does not run a Python program"),
    ] {
        let output = run("print(1)\n", &["--backend", command]).code(3);
        let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(stderr.contains(words), "{command}: {stderr}");
    }
}

#[test]
fn limits_that_no_program_could_keep_are_refused() {
    for (options, words) in [
        (["--cpu", "1e-9"], "100ms"),
        (["--wall", "0.01"], "100ms"),
        (["--memory", "0"], "memory"),
    ] {
        let output = run("print(1)\n", &options).code(2);
        let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(stderr.contains(words), "{options:?}: {stderr}");
    }
}

#[test]
fn another_interpreter_can_be_named() {
    let report = json(
        "import sys; print(sys.version_info[0])",
        &["--python", "python3"],
        0,
    );
    assert_eq!(report["stdout"], "3\n");
    let output = run("print(1)", &["--python", "/no/such/python"]).code(3);
    let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(stderr.contains("/no/such/python"), "{stderr}");
}

#[test]
fn packages_can_be_named() {
    let report = json("import colorsys; print(1)", &["--packages", "colorsys"], 0);
    assert_eq!(report["stdout"], "1\n");
    for (name, words) in [
        ("surely_not_installed", "pip install"),
        ("numpy==2", "what stands after `import`"),
    ] {
        let output = run("print(1)", &["--packages", name]).code(3);
        let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(stderr.contains(name) && stderr.contains(words), "{stderr}");
    }
    let both = ["--packages", "json", "--backend", "python3 {file}"];
    run("print(1)", &both).code(2);
}

#[test]
fn compiled_programs_run_as_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |name: &str, source: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, source).expect("a file");
        let mut command = Command::from_std(rlef_tests::rlef());
        command.arg("run").arg(&file).write_stdin("20 1\n");
        command.output().expect("rlef starts")
    };
    let sum = "#include <cstdio>\nint main() { int a, b; scanf(\"%d %d\", &a, &b); printf(\"%d\\n\", a + b); }\n";
    let output = run("sum.cpp", sum);
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.starts_with("fault:") && stderr.contains("g++") {
        eprintln!("no C++ compiler here: not tested");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_eq!(output.stdout, b"21\n");
    let output = run("wrong.cpp", "int main() { return nothing; }\n");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(65), "{stderr}");
    assert!(stderr.contains("nothing"), "{stderr}");
}
