//! Language files of one's own, and tools that are absent or broken: never a verdict.

use std::sync::OnceLock;

use rlef_sandbox::{Compiled, Ending, Fault, Program, Sandbox};

use super::{limits, run, with_files};
use crate::text;

/// A language of two kinds of files, "compiled" by a shell script.
fn toml(name: &str, script: &str, tool: &str) -> String {
    format!(
        r#"
name = "{name}"
title = "Shell"
aliases = ["{name}-too"]
source = "main.in"
version = ["{{sh}}", "-c", "echo 1.0"]
[tools]
sh = ["no-such-shell", "{tool}"]
[check]
source = "echo right"
output = "right\n"
[compile]
command = ["{{sh}}", "-c", '''{script}''']
see = ["{{sh}}", "/bin/cat", "/usr/bin/cat"]
libraries_of = ["{{sh}}"]
product = "main.sh"
rejects = [1]
cpu_s = 1
memory_mb = 64
output_kb = 64
processes = 8
files_mb = 8
product_mb = 1
[compile.environment]
PATH = "/usr/bin:/bin"
[run]
program = "file"
command = ["{{sh}}", "main.sh"]
see = ["{{sh}}"]
libraries_of = ["{{sh}}"]
own_memory_mb = 16
stack_mb = 8
"#
    )
}

/// Rejects what says so, crashes at what says so, and copies the rest.
const SCRIPT: &str = "read line < main.in; case $line in *bad*) echo /tmp/main.in: no >&2; exit 1;; \
    *crash*) kill -11 $$;; *killed*) kill -9 $$;; *odd*) exit 77;; *nothing*) exit 0;; *spin*) while :; do :; done;; esac; \
    while read line; do echo \"$line\"; done < main.in > main.sh; echo \"$line\" >> main.sh";

/// A machine too busy to compile is not what these tests are about.
fn compiled(language: &str, source: &str) -> Result<Compiled<'static>, Fault> {
    for _ in 0..20 {
        match sandbox().compile(&program(language, source)) {
            Err(Fault::Overloaded { .. }) => {}
            other => return other,
        }
    }
    panic!("the machine is too busy for this test");
}

fn program<'a>(language: &'a str, source: &'a str) -> Program<'a> {
    Program { language, source }
}

/// One sandbox for the tests that need no other.
fn sandbox() -> &'static Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    let unseen = "see = [\"{sh}\", \"/bin/cat\", \"/usr/bin/cat\"]";
    SANDBOX.get_or_init(|| {
        let files = [
            toml("shell", SCRIPT, "sh"),
            toml("absent", SCRIPT, "no-such-shell-either"),
            // There, but it rejects, crashes, makes nothing, or makes something that does not run.
            toml("rejects", "exit 1", "sh"),
            toml("crashes", "kill -11 $$", "sh"),
            toml("nothing", "exit 0", "sh"),
            toml("odd", "exit 77", "sh"),
            toml("wrong", "echo echo wrong > main.sh", "sh"),
            // One that cannot be started in the sandbox at all.
            toml("unseen", SCRIPT, "sh").replace(unseen, "see = []"),
            toml("misnamed", SCRIPT, "sh").replace("{sh}\", \"main.sh", "{zsh}\", \"main.sh"),
        ];
        with_files(&files).expect("a sandbox")
    })
}

#[test]
fn a_language_can_be_added_by_a_file() {
    let known = sandbox().languages();
    let added = known.iter().find(|l| l.name == "shell").expect("added");
    assert_eq!(added.tools.as_deref(), Ok("1.0"));
    for name in ["shell", "shell-too"] {
        let made = compiled(name, "read x; echo $((x + 1))");
        match made.expect("works") {
            Compiled::Program(program) => {
                let outcome = run(&program, "41\n", &limits());
                assert_eq!(text(&outcome.stdout), "42\n", "{}", text(&outcome.stderr));
            }
            Compiled::Error(error) => panic!("{}", error.message),
        }
    }
}

#[test]
fn whatever_ends_the_compiler_is_the_programs_doing_while_the_compiler_works() {
    for (source, told, ending) in [
        ("bad", "main.in: no", Ending::Exited(1)),
        ("crash", "did not finish", Ending::Signalled(11)),
        ("odd", "did not finish", Ending::Exited(77)),
        ("nothing", "made no program", Ending::Exited(0)),
        ("spin", "CPU time limit (1s)", Ending::CpuLimit),
    ] {
        match compiled("shell", source).expect("works") {
            Compiled::Error(error) => {
                assert!(error.message.contains(told), "{source}: {}", error.message);
                assert_eq!(error.ending, ending, "{source}");
                assert!(!error.message.contains("/tmp"), "{}", error.message);
            }
            Compiled::Program(_) => panic!("{source} compiled"),
        }
    }
}

/// What ends a process so is outside of the sandbox: a lack of memory, or an administrator.
#[test]
fn a_compiler_that_was_killed_says_nothing_of_the_program() {
    let part = "case $(cat main.in) in *part*) echo 'gcc: fatal error: Killed signal terminated program cc1' >&2; \
                echo 'compilation terminated.' >&2; exit 1;; *) cat main.in > main.sh;; esac";
    let sandbox = with_files(&[toml("driver", part, "sh")]).expect("a sandbox");
    let told = |made: Result<Compiled, Fault>, what: &str| match made {
        Err(Fault::Broken { reason, .. }) => assert!(reason.contains("killed"), "{reason}"),
        Err(other) => panic!("{what}: {other}"),
        Ok(Compiled::Error(error)) => panic!("{what} is a compile error: {}", error.message),
        Ok(Compiled::Program(_)) => panic!("{what} compiled"),
    };
    told(compiled("shell", "killed"), "the compiler");
    told(sandbox.compile(&program("driver", "part")), "a part of it");
}

#[test]
fn tools_that_are_absent_or_broken_are_faults() {
    let listed = |name: &str| {
        let all = sandbox().languages();
        let found = all.into_iter().find(|l| l.name == name);
        found.expect("listed").tools
    };
    let fault = |name| {
        let made = compiled(name, "echo 1");
        made.err().expect("a fault")
    };
    let sought = "no `no-such-shell` or `no-such-shell-either` on the PATH";
    assert_eq!(listed("absent"), Err(sought.to_owned()));
    let absent = fault("absent");
    assert!(
        matches!(&absent, Fault::NoTools { sought: s, .. } if s == sought),
        "{absent}"
    );
    for name in ["rejects", "crashes", "nothing", "odd", "wrong"] {
        assert!(listed(name).is_ok());
        let fault = fault(name);
        assert!(matches!(&fault, Fault::Tools { .. }), "{name}: {fault}");
    }
    let unseen = fault("unseen");
    assert!(
        matches!(unseen, Fault::Broken { .. } | Fault::Tools { .. }),
        "{unseen}"
    );
}

#[test]
fn mistakes_in_files_and_names_are_told() {
    let shell = || toml("shell", SCRIPT, "sh");
    for (toml, told) in [
        ("name = 3".to_owned(), "name"),
        (shell().replace("rejects", "reject"), "reject"),
        (shell().replace("\"shell\"", "\"python\""), "built in"),
    ] {
        let fault = with_files(&[toml]).err().expect("a fault").to_string();
        assert!(fault.contains("0.toml") && fault.contains(told), "{fault}");
    }
    let misnamed = compiled("misnamed", "").err();
    assert!(misnamed.is_some_and(|f| f.to_string().contains("`zsh`")));
    let fault = compiled("cobol", "").err();
    let fault = fault.expect("a fault").to_string();
    assert!(
        fault.contains("`cobol`") && fault.contains("python, c, cpp"),
        "{fault}"
    );
}
