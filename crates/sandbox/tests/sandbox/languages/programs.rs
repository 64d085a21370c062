//! Honest and failing programs of every language: each ends as it should.

use std::time::Duration;

use rlef_sandbox::{Ending, Fault, Limits};

use super::sources::{ALL, Sources};
use super::{compile, limits, run};
use crate::groups::memory_is_bounded;
use crate::{sandbox, text};

/// Runs one program of each language that is here.
fn each(
    choose: fn(&Sources) -> &'static str,
    stdin: &str,
    limits: &Limits,
    check: impl Fn(&str, rlef_sandbox::Outcome),
) {
    for sources in &ALL {
        if let Some(program) = compile(sources.language, choose(sources)) {
            check(sources.language, run(&program, stdin, limits));
        }
    }
}

#[test]
fn java_programs_may_start_in_any_class() {
    let main = "public static void main(String[] a) { System.out.println(new Object() {}.getClass().getName()); }";
    for (source, wanted) in [
        (format!("public class abc_JK {{ {main} }}"), "abc_JK$1\n"),
        (
            format!("package a.b; class Run {{ {main} }}"),
            "a.b.Run$1\n",
        ),
        (
            format!("public class Größe {{ {main} static class Ünter {{ }} }}"),
            "Größe$1\n",
        ),
        (format!("class Δ {{ {main} }}"), "Δ$1\n"),
        (
            format!("package a; public class Main {{ {main} }}"),
            "a.Main$1\n",
        ),
        (
            format!("class Two {{ {main} }} public class Node {{ }}"),
            "Two$1\n",
        ),
        (
            format!("class Base {{ {main} }} public class Main extends Base {{ }}"),
            "Base$1\n",
        ),
    ] {
        let Some(program) = compile("java", &source) else {
            return;
        };
        let outcome = run(&program, "", &limits());
        assert_eq!(
            text(&outcome.stdout),
            wanted,
            "{source} {}",
            text(&outcome.stderr)
        );
    }
}

#[test]
fn programs_read_and_write() {
    for sources in &ALL {
        let Some(program) = compile(sources.language, sources.sum) else {
            continue;
        };
        // Compiled once, run many times.
        for (stdin, wanted) in [("1 2 3\n", "6\n"), ("", "0\n"), ("-5 12", "7\n")] {
            let outcome = run(&program, stdin, &limits());
            assert_eq!(
                (outcome.ending, text(&outcome.stdout).as_str()),
                (Ending::Exited(0), wanted),
                "{}: {}",
                sources.language,
                text(&outcome.stderr)
            );
        }
    }
}

#[test]
fn one_program_runs_on_many_threads_at_once() {
    let Some(program) = compile("c", ALL[0].sum) else {
        return;
    };
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..40)
            .map(|n| (n, &program))
            .map(|(n, p)| scope.spawn(move || (n, run(p, &format!("{n} 1"), &limits()))))
            .collect();
        for thread in runs {
            let (n, outcome) = thread.join().expect("ran");
            assert_eq!(text(&outcome.stdout), format!("{}\n", n + 1));
        }
    });
}

#[test]
fn exit_codes_and_signals_are_told() {
    each(
        |s| s.exits,
        "",
        &limits(),
        |language, outcome| {
            assert_eq!(outcome.ending, Ending::Exited(3), "{language}");
            assert_eq!(text(&outcome.stderr), "three", "{language}");
        },
    );
    each(
        |s| s.crashes,
        "",
        &limits(),
        |language, outcome| {
            let wanted = match language {
                "c" | "cpp" | "rust" => Ending::Signalled(libc::SIGABRT),
                "go" => Ending::Exited(2),
                _ => Ending::Exited(1),
            };
            let said = text(&outcome.stderr);
            assert_eq!(outcome.ending, wanted, "{language}: {said}");
            assert!(
                wanted == Ending::Signalled(libc::SIGABRT) || said.contains("uncaught"),
                "{said}"
            );
        },
    );
    for (body, wanted) in [
        ("*(volatile int *)8 = 1;", Ending::Signalled(libc::SIGSEGV)),
        (
            "volatile int zero = 0; return 77 / zero;",
            Ending::Signalled(libc::SIGFPE),
        ),
        ("__builtin_trap();", Ending::Signalled(libc::SIGILL)),
        ("return 255;", Ending::Exited(255)),
    ] {
        let source = format!("int main(void) {{ {body} }}");
        if let Some(program) = compile("c", &source) {
            assert_eq!(run(&program, "", &limits()).ending, wanted, "{body}");
        }
    }
}

#[test]
fn cpu_time_ends_programs() {
    let limits = Limits {
        cpu: Duration::from_millis(900),
        ..limits()
    };
    each(
        |s| s.spins,
        "",
        &limits,
        |language, outcome| {
            assert_eq!(outcome.ending, Ending::CpuLimit, "{language}");
            assert!(
                outcome.cpu < Duration::from_secs(3),
                "{language}: {:?}",
                outcome.cpu
            );
        },
    );
}

#[test]
fn memory_is_bounded_in_every_language() {
    each(
        |s| s.holds,
        "",
        &limits(),
        |language, outcome| {
            let said = text(&outcome.stderr);
            assert_eq!(outcome.ending, Ending::Exited(0), "{language}: {said}");
            assert_eq!(
                text(&outcome.stdout),
                format!("{}\n", 30 << 20),
                "{language}"
            );
        },
    );
    let limits = Limits {
        cpu: Duration::from_secs(20),
        ..limits()
    };
    each(
        |s| s.hogs,
        "",
        &limits,
        |language, outcome| {
            // malloc may say no before anybody looks; what a program makes of that is its own affair.
            let refused =
                !memory_is_bounded() && language == "c" && outcome.ending == Ending::Exited(9);
            let said = text(&outcome.stderr);
            assert!(
                outcome.ending == Ending::MemoryLimit || refused,
                "{language}: {:?}, {said}",
                outcome.ending
            );
            // The runtime's own part included; where memory is only looked at, some more.
            let most = if memory_is_bounded() {
                700 << 20
            } else {
                1300 << 20
            };
            let peak = outcome.peak_memory_bytes.unwrap_or(0);
            assert!(peak < most, "{language}: {peak}");
        },
    );
}

#[test]
fn output_is_bounded_in_every_language() {
    let limits = Limits {
        output_bytes: 100_000,
        ..limits()
    };
    each(
        |s| s.floods,
        "",
        &limits,
        |language, outcome| {
            assert_eq!(outcome.ending, Ending::OutputLimit, "{language}");
            assert_eq!(outcome.stdout.len(), 100_000, "{language}");
        },
    );
}

/// Libraries that the known programs of a language do without.
#[test]
fn programs_find_what_their_language_is_linked_to() {
    for (language, source, wanted) in [
        (
            "rust",
            "fn main() { let x = std::env::args().count() as f64; println!(\"{:.3} {:.3}\", (x + 0.5).powf(2.5), x.sin().ln().abs().tan()); }",
            "2.756 0.174\n",
        ),
        (
            "rust",
            "use std::panic;\nfn main() { panic::set_hook(Box::new(|_| ())); let x = std::env::args().count() as f32; let c = panic::catch_unwind(|| { panic!(\"x\") }).is_err(); println!(\"{} {:.2}\", c, x.exp()); }",
            "true 2.72\n",
        ),
        (
            "c",
            "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\nint main(void) { double (*f)(double) = (double (*)(double))dlsym(dlopen(\"libm.so.6\", RTLD_NOW), \"cos\"); printf(\"%.1f\\n\", f(0)); }",
            "1.0\n",
        ),
        (
            "c",
            "#pragma GCC optimize(\"O3,fast-math\")\n#include <math.h>\n#include <stdio.h>\ndouble a[64]; int main(void) { for (int i = 0; i < 64; i++) a[i] = i; for (int i = 0; i < 64; i++) a[i] = sin(a[i]) + pow(a[i], 1.5); printf(\"%.2f\\n\", a[4]); }",
            "7.24\n",
        ),
        (
            "cpp",
            "#include <bits/stdc++.h>\nint main() { std::string s = \"abab\"; std::cout << std::regex_replace(s, std::regex(\"a\"), \"c\") << std::beta(2.0, 3.0) << std::async(std::launch::async, [] { return std::tgamma(5.0); }).get() << '\\n'; }",
            "cbcb0.083333324\n",
        ),
        (
            "go",
            "package main\nimport (\"fmt\"; \"math\"; \"math/cmplx\")\nfunc main() { fmt.Printf(\"%.3f %.1f\\n\", math.Pow(1.5, 2.5), real(cmplx.Sqrt(4))) }",
            "2.756 2.0\n",
        ),
        (
            "java",
            "import java.util.zip.*; import java.nio.file.*; import java.lang.management.*;\npublic class Main { public static void main(String[] a) throws Exception { CRC32 c = new CRC32(); c.update(new byte[] {1, 2}); Deflater d = new Deflater(); d.setInput(new byte[100]); d.finish(); Files.write(Path.of(\"x\"), new byte[3]); System.out.println(c.getValue() + \" \" + d.deflate(new byte[200]) + \" \" + Files.size(Path.of(\"x\")) + \" \" + (ManagementFactory.getRuntimeMXBean().getUptime() >= 0) + \" \" + new java.awt.image.BufferedImage(2, 2, 1).getRGB(0, 0)); } }",
            "3066839698 12 3 true -16777216\n",
        ),
        (
            "javascript",
            "const z = require('zlib'), c = require('crypto'); console.log(z.gunzipSync(z.gzipSync('ab')).toString(), c.createHash('md5').update('a').digest('hex').slice(0, 4), (1.5 ** 2.5).toFixed(3), new Intl.NumberFormat('en').format(1234));",
            "ab 0cc1 2.756 1,234\n",
        ),
    ] {
        let Some(program) = compile(language, source) else {
            continue;
        };
        let outcome = run(&program, "", &limits());
        assert_eq!(
            (outcome.ending, text(&outcome.stdout).as_str()),
            (Ending::Exited(0), wanted),
            "{language}: {}\n{source}",
            text(&outcome.stderr)
        );
    }
}

/// Chance comes from the kernel and costs next to nothing.
#[test]
fn chance_is_cheap() {
    let source = "import java.security.SecureRandom; import java.util.UUID;\npublic class Main { public static void main(String[] a) throws Exception { byte[] b = SecureRandom.getSeed(8); new SecureRandom().nextBytes(b); System.out.println(b.length + \" \" + UUID.randomUUID().toString().length()); } }";
    if let Some(program) = compile("java", source) {
        let outcome = run(&program, "", &limits());
        let said = text(&outcome.stderr);
        assert_eq!(text(&outcome.stdout), "8 36\n", "{said}");
        assert!(outcome.cpu < Duration::from_secs(3), "{:?}", outcome.cpu);
    }
    let python =
        "for name in 'random', 'urandom': print(len(open('/dev/' + name, 'rb', 0).read(8)))";
    assert_eq!(crate::printed(python), "8\n8\n");
}

#[test]
fn threads_work() {
    each(
        |s| s.threads,
        "",
        &limits(),
        |language, outcome| {
            let said = text(&outcome.stderr);
            assert_eq!(outcome.ending, Ending::Exited(0), "{language}: {said}");
            assert_eq!(text(&outcome.stdout), "36\n", "{language}");
        },
    );
}

#[test]
fn deep_recursion_has_room() {
    let source = "#include <cstdio>\n__attribute__((noinline)) long f(long n) { volatile char room[1000]; room[0] = 1; return n ? f(n - 1) + room[0] : 0; }\nint main() { printf(\"%ld\\n\", f(40000)); }";
    if let Some(program) = compile("cpp", source) {
        let outcome = run(&program, "", &limits());
        assert_eq!(text(&outcome.stdout), "40000\n", "{:?}", outcome.ending);
    }
}

#[test]
fn functions_are_called_in_python_only() {
    let Some(program) = compile("c", ALL[0].sum) else {
        return;
    };
    let fault = program.call("f", "[]", &limits()).expect_err("no function");
    assert!(matches!(fault, Fault::Call { .. }), "{fault}");
}

#[test]
fn languages_are_listed_with_their_tools() {
    let all = sandbox().languages();
    let names: Vec<&str> = all.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(
        names,
        ["python", "c", "cpp", "rust", "java", "go", "javascript"]
    );
    for language in &all {
        println!("{}: {:?}", language.title, language.tools);
        match &language.tools {
            Ok(version) => assert!(version.contains(|c: char| c.is_ascii_digit()), "{version}"),
            Err(sought) => assert!(sought.contains('`'), "{sought}"),
        }
    }
    assert!(all[0].tools.is_ok() && all[1].tools.is_ok());
    assert_eq!(sandbox().time_factor("python3").expect("known"), 1.0);
    assert_eq!(sandbox().time_factor("c++").expect("known"), 1.0);
    assert!(sandbox().time_factor("java").expect("known") > 1.0);
}
