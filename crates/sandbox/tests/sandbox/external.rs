//! Somebody else's isolation.

use std::path::Path;
use std::time::{Duration, Instant};

use rlef_sandbox::{Ending, External, Fault, Limits, Outcome};

use crate::text;

fn words(command: &str) -> Vec<String> {
    command.split_whitespace().map(String::from).collect()
}

/// A machine too busy to judge is not what these tests are about: such runs are repeated.
fn run_with(external: &External, source: &str, stdin: &[u8], limits: &Limits) -> Outcome {
    for _ in 0..20 {
        match external.run(source, stdin, limits) {
            Err(Fault::Overloaded { .. }) => {}
            other => return other.expect("it runs"),
        }
    }
    panic!("the machine is too busy for this test");
}

fn limits() -> Limits {
    Limits {
        output_bytes: 1 << 20,
        ..Limits::with_cpu(Duration::from_secs(2))
    }
}

/// No isolation at all: the same calls, on any machine.
fn bare() -> External {
    External::new(words("python3 {file}")).expect("a Python")
}

#[test]
fn programs_end_as_they_do_elsewhere() {
    let external = bare();
    let run = |source: &str| run_with(&external, source, b"21\n", &limits());
    let outcome = run("print(int(input()) * 2)");
    assert_eq!(
        (outcome.ending, &outcome.stdout[..]),
        (Ending::Exited(0), &b"42\n"[..])
    );
    let outcome = run("import sys; sys.stderr.write('no'); sys.exit(3)");
    assert_eq!(
        (outcome.ending, &outcome.stderr[..]),
        (Ending::Exited(3), &b"no"[..])
    );
    assert_eq!(
        run("import os; os.kill(os.getpid(), 9)").ending,
        Ending::Signalled(9)
    );
    assert_eq!(run("while True: pass").ending, Ending::CpuLimit);
    assert_eq!(
        run("while True: print('x' * 10000)").ending,
        Ending::OutputLimit
    );
    let large = run("print('x' * 1000000)");
    assert_eq!(
        (large.ending, large.stdout.len()),
        (Ending::Exited(0), 1_000_001)
    );
    let short = Limits {
        wall: Duration::from_millis(700),
        ..limits()
    };
    let start = Instant::now();
    let outcome = run_with(&external, "import time; time.sleep(60)", b"", &short);
    assert_eq!(outcome.ending, Ending::WallLimit);
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn what_a_program_leaves_running_is_ended_and_keeps_nobody() {
    let start = Instant::now();
    // Its own number: this test may be running as another user at the same time.
    let time = format!("41.{}", std::process::id());
    let source = format!("import subprocess\nsubprocess.Popen(['sleep', '{time}'])\nprint('done')");
    let outcome = run_with(&bare(), &source, b"", &limits());
    assert_eq!(outcome.stdout, b"done\n");
    assert!(start.elapsed() < Duration::from_secs(20));
    let left = std::fs::read_dir("/proc")
        .expect("processes")
        .flatten()
        .filter_map(|p| std::fs::read(p.path().join("cmdline")).ok())
        .filter(|c| *c == format!("sleep\0{time}\0").into_bytes())
        .count();
    assert_eq!(left, 0);
}

#[test]
fn commands_that_cannot_run_a_program_are_refused() {
    for wrong in [
        "",
        "python3",
        "no-such-command {file}",
        "/bin/cat {file}",
        "/bin/false {file}",
    ] {
        match External::new(words(wrong)) {
            Err(fault @ Fault::External { .. }) => {
                let said = fault.to_string();
                assert!(said.contains(wrong), "{said}");
            }
            other => panic!("{wrong}: {other:?}"),
        }
    }
}

/// The wall that most systems have a package for.
#[test]
fn bubblewrap_keeps_a_program_in() {
    let bwrap = Path::new("/usr/bin/bwrap");
    if !bwrap.exists() {
        eprintln!("skipped: bubblewrap is not installed");
        return;
    }
    let command = "bwrap --unshare-all --die-with-parent --new-session --ro-bind /usr /usr --symlink usr/lib /lib \
                   --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp --ro-bind {file} /main.py \
                   /usr/bin/python3 /main.py";
    let external = match External::new(words(command)) {
        Ok(external) => external,
        // Without a Python in /usr, or where it may not make its namespaces.
        Err(fault) => return eprintln!("skipped: {fault}"),
    };
    let run = |source: &str| run_with(&external, source, b"5\n", &limits());
    assert_eq!(run("print(int(input()) + 1)").stdout, b"6\n");
    let outcome = run("import os\nprint(os.path.exists('/etc/passwd'), sorted(os.listdir('/')))");
    assert!(
        text(&outcome.stdout).starts_with("False"),
        "{}",
        text(&outcome.stdout)
    );
    let outcome = run("import socket\nsocket.create_connection(('1.1.1.1', 53), 1)");
    assert_eq!(outcome.ending, Ending::Exited(1));
    assert_eq!(run("while True: pass").ending, Ending::CpuLimit);
}

/// A daemon that has gone, a license that has run out … in the middle of the work.
#[test]
fn a_command_that_stops_working_is_no_failure_of_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let gone = folder.path().join("gone");
    let script = folder.path().join("vm");
    let lines = format!(
        "#!/bin/sh\n[ -e {} ] && {{ echo 'no daemon' >&2; exit 125; }}\nexec python3 \"$1\"\n",
        gone.display()
    );
    std::fs::write(&script, lines).expect("a script");
    let command = vec!["sh".into(), script.display().to_string(), "{file}".into()];
    let external = External::new(command).expect("it works");
    let failing = || external.run("import sys; sys.exit(125)", b"", &limits());
    assert_eq!(failing().expect("ran").ending, Ending::Exited(125));
    std::fs::write(&gone, "").expect("a file");
    let said = failing().expect_err("a fault").to_string();
    assert!(said.contains("no daemon"), "{said}");
}
