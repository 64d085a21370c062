//! Hostile and wrong source texts: compiling them is bounded, tells nothing of the host, and leaves nothing.

use std::time::{Duration, Instant};

use rlef_sandbox::{CompileError, Compiled, Ending};

use super::sources::ALL;
use super::{compile, limits, run, try_compile};
use crate::text;

/// What the compiler has against it; nothing where the language is absent.
fn error(language: &str, source: &str) -> Option<CompileError> {
    match try_compile(language, source)? {
        Compiled::Error(error) => Some(error),
        Compiled::Program(_) => panic!("it compiles: {source:.200}"),
    }
}

/// As after every other program, honest ones work.
fn honest(language: &str) {
    let sources = ALL.iter().find(|s| s.language == language).expect("known");
    if let Some(program) = compile(language, sources.sum) {
        assert_eq!(text(&run(&program, "20 22", &limits()).stdout), "42\n");
    }
}

/// Nothing in a message may be a path of this machine.
fn shows_no_host(message: &str) {
    for path in [
        "/usr", "/lib", "/root", "/home", "/tmp", "/etc", "/opt", "/proc", "/nix",
    ] {
        assert!(
            !message.contains(&format!("{path}/")),
            "{path} in: {message}"
        );
    }
}

#[test]
fn errors_say_where_and_nothing_of_the_host() {
    for sources in &ALL {
        let Some(error) = error(sources.language, sources.wrong) else {
            continue;
        };
        let said = &error.message;
        assert!(said.contains(":2"), "{}: {said}", sources.language);
        assert!(said.contains("nothing") || said.contains("="), "{said}");
        assert!(
            matches!(error.ending, Ending::Exited(_)),
            "{:?}",
            error.ending
        );
        shows_no_host(said);
    }
    // Errors inside the library's own headers.
    let inside = "#include <map>\nstruct A {};\nint main() { std::map<A, int> m; m[A()] = 1; }";
    if let Some(error) = error("cpp", inside) {
        shows_no_host(&error.message);
        assert!(error.message.len() < 10_000);
    }
}

/// A linker's errors come with names of files that are called otherwise each time.
#[test]
fn errors_repeat_to_the_letter() {
    for (language, source) in [
        (
            "c",
            "int missing(void);\nint main(void) { return missing(); }",
        ),
        ("cpp", "int missing();\nint main() { return missing(); }"),
        (
            "rust",
            "extern \"C\" { fn missing(); }\nfn main() { unsafe { missing() } }",
        ),
        ("c", "__asm__(\"nonsense\");\nint main(void) { return 0; }"),
    ] {
        let Some(first) = error(language, source) else {
            continue;
        };
        for path in ["/usr/", "/tmp/", "/root/", "/home/"] {
            assert!(!first.message.contains(path), "{}", first.message);
        }
        for _ in 0..2 {
            let again = error(language, source).expect("as before");
            assert_eq!(again.message, first.message, "{language}");
        }
    }
}

#[test]
fn host_files_cannot_be_compiled_in() {
    let secret = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(secret.path(), "HOSTSECRET").expect("written");
    let secret = secret.path().display().to_string();
    let mut sources = Vec::new();
    for path in [
        "/etc/passwd",
        "/etc/shadow",
        "/proc/1/environ",
        "../../etc/passwd",
        &secret,
    ] {
        sources.push((
            "c",
            format!("#include \"{path}\"\nint main(void) {{ return 0; }}"),
        ));
    }
    for (language, source) in [
        (
            "c",
            "__asm__(\".incbin \\\"PATH\\\"\");\nint main(void) { return 0; }",
        ),
        ("cpp", "#include <PATH>\nint main() {}"),
        (
            "rust",
            "fn main() { print!(\"{}\", include_str!(\"PATH\")); }",
        ),
        ("rust", "#[path = \"PATH\"] mod m;\nfn main() {}"),
        (
            "go",
            "package main\nimport _ \"embed\"\n//go:embed PATH\nvar s string\nfunc main() { println(s) }",
        ),
    ] {
        sources.push((language, source.replace("PATH", &secret)));
    }
    for (language, source) in sources {
        if let Some(error) = error(language, &source) {
            for told in ["root:", "HOSTSECRET", "PATH="] {
                assert!(!error.message.contains(told), "{source}: {}", error.message);
            }
        }
    }
}

/// Compiling ends soon, as an error or not, and honest programs are as before.
fn ends_soon(language: &str, name: &str, source: &str) -> Option<Result<(), CompileError>> {
    let start = Instant::now();
    let made = try_compile(language, source)?;
    let took = start.elapsed();
    // The CPU limit of a compiler is 20 s at most, and the machine may be busy.
    assert!(
        took < Duration::from_secs(150),
        "{language}, {name}: {took:?}"
    );
    Some(match made {
        Compiled::Program(_) => Ok(()),
        Compiled::Error(error) => {
            assert!(
                !error.message.is_empty() && error.message.len() < 10_000,
                "{language}, {name}"
            );
            println!(
                "{language}, {name}, {took:?}: {}",
                error.message.lines().next().unwrap_or_default()
            );
            Err(error)
        }
    })
}

/// As [`ends_soon`], and it must not compile.
fn bomb(language: &str, name: &str, source: &str) {
    let made = ends_soon(language, name, source);
    assert!(
        made.is_none_or(|m| m.is_err()),
        "{language}, {name}: it compiled"
    );
}

#[test]
fn compile_bombs_in_c_end() {
    let laughs = |last: u32| {
        let mut text = String::from("#define A0 x x x x x x x x x x\n");
        for n in 1..=last {
            let before = format!("A{} ", n - 1).repeat(10);
            text += &format!("#define A{n} {before}\n");
        }
        text
    };
    bomb(
        "c",
        "endless input",
        "#include \"/dev/zero\"\nint main(void) { return 0; }",
    );
    bomb(
        "c",
        "endless input by random",
        "#include </dev/urandom>\nint main(void) { return 0; }",
    );
    bomb(
        "c",
        "includes itself",
        "#include \"main.c\"\n#include \"main.c\"\n",
    );
    bomb(
        "c",
        "macros without end",
        &format!("{}int main(void) {{ A12 }}", laughs(12)),
    );
    bomb(
        "c",
        "a large initialiser",
        "int a[1000000000] = {1};\nint main(void) { return a[5]; }",
    );
    bomb(
        "c",
        "large constants",
        "static const char a[1 << 30] = {[(1 << 30) - 1] = 1};\nconst char *f(void) { return a; }\nint main(void) { return f()[7]; }",
    );
    bomb(
        "c",
        "fill",
        "__asm__(\".fill 1000000000, 8, 1\");\nint main(void) { return 0; }",
    );
    bomb(
        "c",
        "repeated assembly",
        "__asm__(\".rept 2000000000\\n.quad 1\\n.endr\");\nint main(void) { return 0; }",
    );
    bomb(
        "c",
        "endless binary",
        "__asm__(\".incbin \\\"/dev/zero\\\"\");\nint main(void) { return 0; }",
    );
    bomb(
        "c",
        "deep nesting",
        &format!(
            "int main(void) {{ return {}1{}; }}",
            "(".repeat(3_000_000),
            ")".repeat(3_000_000)
        ),
    );
    bomb(
        "c",
        "errors without end",
        &format!(
            "{}\nint main(void) {{ return 0; }}",
            "@ x y;\n".repeat(200_000)
        ),
    );
    bomb(
        "c",
        "an error of a megabyte",
        &format!("#error {}\n", "x".repeat(1 << 20)),
    );
    bomb(
        "c",
        "other options",
        "#pragma GCC plugin \"/tmp/x.so\"\n#pragma GCC dependency \"/etc/passwd\"\nint main(void) { return nothing; }",
    );
    honest("c");
}

#[test]
fn compile_bombs_in_other_languages_end() {
    bomb(
        "cpp",
        "templates without end",
        "template <int N, int M> struct F { static const int v = F<N - 1, M>::v + F<N - 1, M + 1>::v; };\nint main() { return F<900, 0>::v; }",
    );
    bomb(
        "cpp",
        "endless constants",
        "constexpr int f(int n) { int s = 0; for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) s ^= i; return s; }\nstatic_assert(f(2000000) == 1);\nint main() {}",
    );
    bomb(
        "cpp",
        "errors of templates",
        "#include <algorithm>\n#include <vector>\n#include <string>\n#include <map>\nstruct A {};\nint main() { std::vector<std::map<A, std::vector<std::map<A, std::string>>>> v; std::sort(v.begin(), v.end()); v[0][A()][0][A()] = v; std::sort(v, v); }",
    );
    honest("cpp");
    bomb(
        "rust",
        "endless constant",
        "const X: u64 = { let mut i = 0u64; while i < u64::MAX { i += 1; } i };\nfn main() { println!(\"{}\", X); }",
    );
    bomb(
        "rust",
        "macros without end",
        "macro_rules! m { ($($t:tt)*) => { m!($($t)* $($t)*) } }\nfn main() { m!(x x) }",
    );
    bomb(
        "rust",
        "endless input",
        "fn main() { println!(\"{}\", include_bytes!(\"/dev/zero\").len()); }",
    );
    bomb(
        "rust",
        "a large constant",
        "static A: [u64; 1 << 34] = [1; 1 << 34];\nfn main() { println!(\"{}\", A[std::env::args().count()]); }",
    );
    bomb(
        "rust",
        "errors without end",
        &format!("fn main() {{ {} }}", "nothing();\n".repeat(50_000)),
    );
    bomb(
        "rust",
        "not a program",
        "#![crate_type = \"lib\"]\npub fn f() {}",
    );
    bomb(
        "rust",
        "a procedural macro",
        "#![crate_type = \"proc-macro\"]\nextern crate proc_macro;\n#[proc_macro] pub fn f(t: proc_macro::TokenStream) -> proc_macro::TokenStream { loop {} }",
    );
    honest("rust");
    bomb(
        "java",
        "deep nesting",
        &format!(
            "public class Main {{ int x = {}1{}; }}",
            "(".repeat(200_000),
            ")".repeat(200_000)
        ),
    );
    bomb(
        "java",
        "too much text",
        &format!(
            "public class Main {{ String s = {}\"\"; }}",
            "\"xxxxxxxxxxxxxxxxxxxxxxxx\" + ".repeat(60_000)
        ),
    );
    bomb(
        "java",
        "errors without end",
        &format!(
            "public class Main {{ {} }}",
            "int x = nothing;\n".repeat(100_000)
        ),
    );
    honest("java");
    bomb(
        "go",
        "a large table",
        "package main\nvar a = [1 << 33]byte{1<<33 - 1: 1}\nfunc main() { println(a[len(a)-2]) }",
    );
    bomb(
        "go",
        "through a C compiler",
        "package main\n// #include </dev/zero>\nimport \"C\"\nfunc main() { C.f() }",
    );
    bomb(
        "go",
        "errors without end",
        &format!(
            "package main\nfunc main() {{ {} }}",
            "nothing()\n".repeat(100_000)
        ),
    );
    honest("go");
    bomb("javascript", "deep nesting", &"[".repeat(5_000_000));
    bomb("javascript", "errors", "let x = ;");
    honest("javascript");
}

#[test]
fn texts_of_every_kind_are_compiled_or_not() {
    for sources in &ALL {
        for (name, source) in [
            ("nothing", String::new()),
            ("NUL", "\0".repeat(1000)),
            ("one long line", "x".repeat(4 << 20)),
            ("marks", "\u{feff}\u{202e}\u{200b}".repeat(100)),
            (
                "terminal escapes",
                "\u{1b}[2J\u{1b}]0;title\u{7} error\n".repeat(50),
            ),
        ] {
            if let Some(Err(error)) = ends_soon(sources.language, name, &source) {
                let control = |c: char| c.is_control() && c != '\n' && c != '\t';
                assert!(!error.message.contains(control), "{:?}", error.message);
                shows_no_host(&error.message);
            }
        }
    }
}

#[test]
fn a_compiler_leaves_nothing_for_the_next() {
    // It can write where it works, by debugging and dependency options that a text cannot give; what it did write is
    // gone in the next run, which finds an empty folder.
    let first = "#pragma GCC dependency \"main.c\"\nint main(void) { return 0; }";
    let _ = try_compile("c", first);
    for name in ["main", "main.o", "main.d", "a.out", "main.s"] {
        if let Some(error) = error(
            "c",
            &format!("__asm__(\".incbin \\\"{name}\\\"\");\nint main(void) {{ return 0; }}"),
        ) {
            assert!(error.message.contains(name), "{}", error.message);
        }
    }
}
