//! Programs of several files that are given files and arguments, as output validators are.

use rlef_sandbox::{Ending, Fault, Given, Limits, Outcome, Prepared, Sandbox, Sources};

use crate::{limits, run, sandbox, text};

/// Nothing where the language's tools are absent.
fn prepared(language: &str, entry: &str, files: &[(&str, &str)]) -> Option<Prepared> {
    let sources = Sources {
        language,
        entry,
        files,
    };
    match sandbox().prepare(&sources) {
        Err(Fault::NoTools { .. }) if language != "c" => None,
        made => Some(made.expect("the sandbox works").expect("it compiles")),
    }
}

fn ran(program: &Prepared, stdin: &str, given: &Given) -> (Outcome, Option<Vec<u8>>) {
    let limits = Limits {
        memory_bytes: 512 << 20,
        ..limits()
    };
    for _ in 0..20 {
        match sandbox().run_prepared(program, stdin.as_bytes(), given, &limits) {
            Err(Fault::Overloaded { .. }) => {}
            other => return other.expect("the sandbox works"),
        }
    }
    panic!("the machine is too busy for this test");
}

/// Files with their texts.
type Texts = &'static [(&'static str, &'static str)];

/// Prints its arguments, its file and what stands in another module; keeps a note; ends with 43.
const PROGRAMS: [(&str, &str, Texts); 4] = [
    (
        "python",
        "v.py",
        &[
            (
                "v.py",
                "import sys, helper\nprint(sys.argv[1:], helper.X, open('data/in').read(), input())\n\
                 open('note/m.txt', 'w').write('kept')\nsys.exit(43)\n",
            ),
            ("helper.py", "X = 7\n"),
        ],
    ),
    (
        "c",
        "src/v.c",
        &[
            (
                "src/v.c",
                "#include <stdio.h>\n#include \"helper.h\"\nint main(int n, char **a) {\n\
                 char line[99], in[99];\n fgets(line, 99, stdin);\n fgets(in, 99, fopen(\"data/in\", \"r\"));\n\
                 printf(\"[\");\n for (int i = 1; i < n; i++) printf(i > 1 ? \", '%s'\" : \"'%s'\", a[i]);\n\
                 printf(\"] %d %s %s\\n\", x(), in, line);\n fputs(\"kept\", fopen(\"note/m.txt\", \"w\"));\n return 43; }\n",
            ),
            ("src/helper.h", "int x(void);\n"),
            ("src/helper.c", "int x(void) { return 7; }\n"),
        ],
    ),
    (
        "cpp",
        "v.cc",
        &[
            (
                "v.cc",
                "#include <fstream>\n#include <iostream>\n#include \"lib/helper.h\"\nint main(int n, char **a) {\n\
                 std::string line, in; getline(std::cin, line); std::ifstream(\"data/in\") >> in; std::cout << '[';\n\
                 for (int i = 1; i < n; i++) std::cout << (i > 1 ? \", '\" : \"'\") << a[i] << \"'\";\n\
                 std::cout << \"] \" << x() << ' ' << in << ' ' << line << std::endl;\n\
                 std::ofstream(\"note/m.txt\") << \"kept\"; return 43; }\n",
            ),
            ("lib/helper.h", "int x();\n"),
            ("lib/helper.cpp", "int x() { return 7; }\n"),
        ],
    ),
    (
        "javascript",
        "v.js",
        &[
            (
                "v.js",
                "const fs = require('fs'), helper = require('./helper.js');\n\
                 const line = fs.readFileSync(0, 'utf8').trim(), data = fs.readFileSync('data/in', 'utf8');\n\
                 const all = process.argv.slice(2).map((a) => `'${a}'`).join(', ');\n\
                 console.log(`[${all}] ${helper.X} ${data} ${line}`);\n\
                 fs.writeFileSync('note/m.txt', 'kept'); process.exitCode = 43;\n",
            ),
            ("helper.js", "exports.X = 7;\n"),
        ],
    ),
];

#[test]
fn files_arguments_and_what_is_kept() {
    let arguments = ["a b".to_owned(), "{memory_mb}".to_owned(), "--é".to_owned()];
    let given = Given {
        files: &[("data/in", b"input"), ("note/", b"")],
        arguments: &arguments,
        keep: Some(("note/m.txt", 100)),
    };
    for (language, entry, files) in PROGRAMS {
        let Some(program) = prepared(language, entry, files) else {
            continue;
        };
        // Twice: what one run changes, or is given, the next does not find.
        for _ in 0..2 {
            let (outcome, kept) = ran(&program, "line", &given);
            let said = text(&outcome.stderr);
            assert_eq!(outcome.ending, Ending::Exited(43), "{language}: {said}");
            let printed = text(&outcome.stdout);
            let wanted = "['a b', '{memory_mb}', '--é'] 7 input line";
            assert_eq!(printed.trim_end(), wanted, "{language}");
            assert_eq!(kept.as_deref(), Some(&b"kept"[..]), "{language}");
        }
        let none = Given {
            files: &[("data/in", b"input"), ("note/", b"")],
            keep: Some(("note/m.txt", 3)),
            ..Given::default()
        };
        let (outcome, kept) = ran(&program, "line", &none);
        assert_eq!(
            text(&outcome.stdout).trim_end(),
            "[] 7 input line",
            "{language}"
        );
        assert_eq!(kept, None, "{language}: longer than it may be");
    }
}

#[test]
fn nobody_else_sees_what_a_prepared_program_is_given() {
    let look =
        "import os\nprint(sorted(os.listdir('/tmp')), sorted(os.listdir('/proc/self/fd')))\n";
    let plain = text(&run(look).stdout);
    let program = prepared("python", "v.py", &[("v.py", look)]).expect("Python");
    let given = Given {
        files: &[("data/answer", b"42")],
        ..Given::default()
    };
    let (outcome, _) = ran(&program, "", &given);
    let seen = text(&outcome.stdout);
    assert!(seen.contains("'data'"), "{seen}");
    let (_, descriptors) = seen.split_once(']').expect("two lists");
    assert!(plain.ends_with(descriptors), "{plain} {seen}");
    for _ in 0..20 {
        assert_eq!(text(&run(look).stdout), plain);
    }
}

#[test]
fn files_larger_than_the_programs_own_limits_are_given() {
    let limits = Limits {
        file_bytes: 64 << 10,
        memory_bytes: 64 << 20,
        ..limits()
    };
    let source = "import os\nprint(sum(os.path.getsize(f) for f in ('a', 'b/c')))\n\
                  try:\n    open('x', 'wb', 0).write(bytes(4 << 20))\n    print(os.path.getsize('x') <= 65536)\n\
                  except OSError:\n    print(True)\n";
    let program = prepared("python", "v.py", &[("v.py", source)]).expect("Python");
    let large = vec![b'x'; 48 << 20];
    let given = Given {
        files: &[("a", &large), ("b/c", &large)],
        ..Given::default()
    };
    let (outcome, _) = sandbox()
        .run_prepared(&program, b"", &given, &limits)
        .expect("the sandbox works");
    assert_eq!(
        text(&outcome.stdout),
        format!("{}\nTrue\n", 96 << 20),
        "{outcome:?}"
    );
}

#[test]
fn what_cannot_be_given_is_a_fault() {
    let program = prepared("python", "v.py", &[("v.py", "")]).expect("Python");
    let wrong = |given: &Given| {
        let answer = sandbox().run_prepared(&program, b"", given, &limits());
        assert!(matches!(answer, Err(Fault::Files { .. })), "{given:?}");
    };
    for path in ["../x", "/x", "main.py/x/../y", ""] {
        wrong(&Given {
            files: &[(path, b"")],
            ..Given::default()
        });
    }
    for argument in ["x".repeat(9000), "\0".to_owned()] {
        wrong(&Given {
            arguments: &[argument],
            ..Given::default()
        });
    }
    let files = [("a.py", "")];
    for (entry, files) in [
        ("b.py", &files[..]),
        ("a.py", &[("a.py", ""), ("../b.py", "")]),
    ] {
        let sources = Sources {
            language: "python",
            entry,
            files,
        };
        let answer = sandbox().prepare(&sources);
        assert!(matches!(answer, Err(Fault::Files { .. })), "{entry}");
    }
}

#[test]
fn a_file_that_does_not_compile_is_named() {
    let sources = Sources {
        language: "c",
        entry: "v.c",
        files: &[("v.c", "int main(void) { return 0; }"), ("w.c", "int f( {")],
    };
    let made = Sandbox::prepare(sandbox(), &sources).expect("the sandbox works");
    let error = made.expect_err("it is wrong");
    assert!(error.message.contains("w.c:1"), "{}", error.message);
}
