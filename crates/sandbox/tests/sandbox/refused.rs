//! What a system may refuse to the supervisor itself: files, processes, a folder to be in, a PATH. A fault that says
//! which, never a panic and never a verdict.

use std::process::Command;

use rlef_sandbox::{Config, Ending, Fault, Sandbox};

use crate::{alone, config, limits, passes, text};

/// Runs `supervisor` in a process of its own that a shell has prepared; what it says is the message of its fault.
fn supervised(prepare: &str, kind: &str) -> String {
    let own = alone("refused::supervisor");
    let mut command = Command::new("bash");
    command
        .args(["-c", &format!("{prepare}; exec \"$0\" \"$@\"")])
        .arg(own.get_program())
        .args(own.get_args())
        .env("KIND", kind);
    passes(&mut command)
}

#[test]
fn too_few_files_are_told_with_the_number_that_it_takes() {
    for few in [20, 40, 100] {
        let said = supervised(&format!("ulimit -n {few}"), "any");
        let wanted = format!(
            "may have {few} files open, and the sandbox needs 128: raise the limit (`ulimit -n 128`"
        );
        assert!(said.contains(&wanted), "{said}");
    }
    let said = supervised("ulimit -n 128", "any");
    assert!(said.contains("it runs"), "{said}");
}

/// A program that ran into a limit of the supervisor would be charged for it.
#[test]
fn own_limits_below_those_of_programs_are_a_fault() {
    for (few, what) in [
        ("ulimit -v 1000000", "bytes of address space (ulimit -v)"),
        ("ulimit -d 300000", "bytes of data (ulimit -d)"),
        ("ulimit -f 30000", "bytes in a file (ulimit -f)"),
        ("ulimit -t 2", "seconds of CPU time (ulimit -t)"),
        ("ulimit -u 17", "processes (ulimit -u)"),
    ] {
        let said = supervised(few, "any");
        // An ordinary user may already have as many processes as that.
        let started = said.contains(what)
            || few.contains("-u") && said.contains("raise the limit on processes");
        assert!(started && said.contains("raise"), "{few}: {said}");
    }
    let enough = "ulimit -v 3000000; ulimit -d 3000000; ulimit -f 100000; ulimit -t 60";
    let said = supervised(enough, "any");
    assert!(said.contains("it runs"), "{said}");
}

/// Of the two limits on what is mapped, the one that a language is not bounded by is as much in force.
#[test]
fn both_limits_on_memory_are_the_programs_own() {
    // A soft limit is replaced, a hard one that is too low is a fault.
    for (prepare, wanted) in [
        ("ulimit -S -d 2000000", "java runs"),
        ("ulimit -d 1500000", "fault"),
        ("ulimit -v 20000000", "bytes of address space (ulimit -v)"),
    ] {
        let said = supervised(prepare, "java");
        assert!(
            said.contains(wanted) || said.contains("on the PATH"),
            "{prepare}: {said}"
        );
    }
    let said = supervised("ulimit -S -d 300000", "allocates");
    assert!(said.contains("it runs"), "{said}");
}

#[test]
fn without_a_path_an_interpreter_is_not_looked_for() {
    for prepare in ["unset PATH", "export PATH="] {
        let said = supervised(prepare, "any");
        assert!(
            said.contains("PATH is not set") && said.contains("--python"),
            "{said}"
        );
    }
}

#[test]
fn a_removed_folder_is_no_trouble() {
    let said = supervised("d=$(mktemp -d); cd \"$d\"; rmdir \"$d\"", "any");
    assert!(said.contains("it runs"), "{said}");
}

#[test]
fn a_refused_process_or_thread_is_a_fault() {
    let said = supervised(":", "processes");
    assert!(said.contains("fault with 0 more"), "{said}");
}

#[test]
#[ignore = "started by the tests of this file, in a process of its own"]
fn supervisor() {
    match std::env::var("KIND").as_deref() {
        Ok("any") => println!("{}", tried()),
        Ok("allocates") => {
            let limits = rlef_sandbox::Limits {
                memory_bytes: 512 << 20,
                ..limits()
            };
            let config = Config {
                groups: false,
                ..config()
            };
            let sandbox = Sandbox::new(config).expect("a sandbox");
            let outcome = sandbox
                .run("x = bytearray(400 << 20)", b"", &limits)
                .expect("ran");
            assert_eq!(
                outcome.ending,
                Ending::Exited(0),
                "{}",
                text(&outcome.stderr)
            );
            println!("it runs");
        }
        Ok("java") => {
            let sandbox = Sandbox::new(config()).expect("a sandbox");
            let source = "public class Main { public static void main(String[] a) { } }";
            let program = rlef_sandbox::Program {
                language: "java",
                source,
            };
            match sandbox.compile(&program) {
                Ok(rlef_sandbox::Compiled::Program(_)) => println!("java runs"),
                Ok(rlef_sandbox::Compiled::Error(error)) => println!("charged: {}", error.message),
                Err(fault) => println!("{fault}: fault"),
            }
        }
        Ok("processes") => {
            // A user of whom there is nothing else; root has no limit on processes.
            // SAFETY: plain numbers; this process does nothing but this test.
            unsafe { libc::setresuid(61_234, 61_234, 61_234) };
            let threads = std::fs::read_dir("/proc/self/task").map_or(1, |all| all.count()) as u64;
            for more in 0..12 {
                let mut limit = libc::rlimit {
                    rlim_cur: 0,
                    rlim_max: 0,
                };
                // SAFETY: the structure is valid for both calls.
                let set = unsafe {
                    libc::getrlimit(libc::RLIMIT_NPROC, &raw mut limit);
                    limit.rlim_cur = threads + more;
                    libc::setrlimit(libc::RLIMIT_NPROC, &raw const limit)
                };
                assert_eq!(set, 0);
                println!("{} with {more} more", tried());
            }
        }
        _ => {}
    }
}

/// What comes of a sandbox and a run in it: `it runs`, or the fault's message.
fn tried() -> String {
    let run = |sandbox: Sandbox| sandbox.run("print(1)", b"", &limits());
    match Sandbox::new(config()).and_then(run) {
        Ok(outcome) => {
            assert_eq!(
                outcome.ending,
                Ending::Exited(0),
                "{}",
                text(&outcome.stderr)
            );
            "it runs".into()
        }
        Err(fault) => {
            assert!(!matches!(fault, Fault::Silent { .. }), "{fault}");
            format!("{fault}: fault")
        }
    }
}

/// An interpreter may be named from the folder that the caller is in.
#[test]
fn a_file_is_named_from_the_callers_folder() {
    let python = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .expect("python3 runs");
    let own = std::env::current_dir().expect("known");
    let up = "../".repeat(own.components().count());
    let relative = format!(
        "{up}{}",
        text(&python.stdout).trim().trim_start_matches('/')
    );
    let sandbox = Sandbox::new(Config {
        interpreter: Some(relative.into()),
        ..config()
    });
    let outcome = sandbox.expect("a sandbox").run("print(1)", b"", &limits());
    assert_eq!(outcome.expect("ran").stdout, b"1\n");
}
