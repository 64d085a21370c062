//! What a compiler said, fit to be shown to whoever wrote the program: no paths of this machine, no control
//! characters, and no longer than somebody would read.

use std::path::{Path, PathBuf};

/// Longest message, in bytes. The first errors are those that count; the rest mostly follows from them.
const LONGEST: usize = 8 << 10;

/// Cleans a message. `visible` are the paths that the compiler could see.
pub(super) fn clean(said: &[u8], visible: &[PathBuf]) -> String {
    // Ten times as much as is kept: what is replaced may become shorter, but nothing here is to take time over a flood.
    let said = &said[..said.len().min(10 * LONGEST)];
    let mut text = String::from_utf8_lossy(said).replace("\r\n", "\n");
    text = without_escapes(&text);
    let mut paths: Vec<&Path> = visible.iter().map(PathBuf::as_path).collect();
    // The longest first, as others may be parts of it.
    paths.sort_by_key(|p| std::cmp::Reverse(p.as_os_str().len()));
    for path in paths {
        if let (Some(whole), Some(name)) = (path.to_str(), path.file_name()) {
            text = text.replace(whole, &format!("<{}>", name.to_string_lossy()));
        }
    }
    cut(without_folder(&text).trim(), LONGEST)
}

/// The compiler's working folder.
const FOLDER: &str = "/tmp/";

/// Without the working folder in front of names. What a compiler puts there under names that differ from one run to the next
/// is called the same each time.
fn without_folder(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(FOLDER) {
        plain.push_str(before);
        rest = after;
        // A folder of this name further down in another path is another one.
        let word = plain.rsplit(|c: char| c.is_whitespace() || "\"'`(=:".contains(c));
        if word
            .into_iter()
            .next()
            .is_some_and(|w| w.contains('/') || w.ends_with('>'))
        {
            plain.push_str(FOLDER);
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let (name, beyond) = rest.split_at(end.unwrap_or(rest.len()));
        if let Some(object) = OBJECTS.iter().find_map(|o| after_object(name, beyond, o)) {
            plain.push_str("<object>");
            rest = object;
        } else if name.len() == 11 && name.starts_with("rustc")
            || (name.strip_prefix("go-build")).is_some_and(|n| n.parse::<u64>().is_ok())
        {
            plain.push_str("<build>");
            rest = beyond;
        }
    }
    plain.push_str(rest);
    plain
}

/// Endings of files that the parts of a compiler hand on to each other.
const OBJECTS: [&str; 6] = [".o", ".s", ".i", ".ii", ".res", ".ld"];

/// What follows `ccA7BOSZ.o` (gcc) or `main-1f09ab.o` (clang).
fn after_object<'t>(name: &str, beyond: &'t str, ending: &str) -> Option<&'t str> {
    let gcc = name.len() == 8 && name.starts_with("cc");
    let clang = (name.rsplit_once('-'))
        .is_some_and(|(_, n)| n.len() == 6 && n.chars().all(|c| c.is_ascii_hexdigit()));
    let after = beyond.strip_prefix(ending)?;
    let whole = !after.starts_with(|c: char| c.is_ascii_alphanumeric());
    (whole && (gcc || clang)).then_some(after)
}

/// Whether a compiler says (on stderr) that somebody has killed a part of it. Drivers then end as after a mistake in the
/// program. The lines have to be whole, and there may be no other that a mistake would leave: a text can have anything
/// printed, but only behind the place where it stands.
pub(super) fn part_was_killed(stderr: &[u8]) -> bool {
    let text = without_escapes(&String::from_utf8_lossy(stderr));
    let plain = |name: &str| !name.is_empty() && !name.contains([':', ' ', '"']);
    // `g++: fatal error: Killed signal terminated program cc1plus`, `collect2: fatal error: ld terminated with signal 9
    // [Killed]`, `clang: error: unable to execute command: Killed`.
    let killed = |line: &str| {
        let gcc = line
            .split_once(": fatal error: ")
            .is_some_and(|(driver, what)| {
                let part = what.strip_prefix("Killed signal terminated program ");
                let linker = what.strip_suffix(" terminated with signal 9 [Killed]");
                plain(driver) && part.or(linker).is_some_and(plain)
            });
        let clang = line.strip_suffix(": error: unable to execute command: Killed");
        gcc || clang.is_some_and(plain)
    };
    let follows = |line: &str| {
        let clang = line.split_once(": error: ").is_some_and(|(driver, what)| {
            let said = " command failed due to signal (use -v to see invocation)";
            plain(driver) && what.ends_with(said)
        });
        clang || line == "compilation terminated."
    };
    let lines = || text.lines().filter(|l| !l.is_empty());
    if lines().any(killed) && lines().all(|l| killed(l) || follows(l)) {
        return true;
    }
    // rustc, which links last and tells of mistakes before with their place; notes of its own stand two blanks in.
    let first = lines().next().unwrap_or_default();
    if first.starts_with("error: linking with `") {
        let signal = first.ends_with("` failed: signal: 9 (SIGKILL)");
        let note = |l: &str| l.strip_prefix("  = note: ").is_some_and(killed);
        return !text.contains("--> ") && (signal || lines().any(note));
    }
    // `go build main: /usr/lib/go/pkg/tool/linux_amd64/compile: signal: killed`
    let go = |l: &str| l.starts_with("go build ") && l.ends_with(": signal: killed");
    lines().any(go)
}

/// Without terminal escapes and other control characters.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if c == '\u{1b}' && characters.peek() == Some(&'[') {
            characters.next();
            // Parameters, up to the letter that says what they are for.
            while characters.next_if(|c| !('@'..='~').contains(c)).is_some() {}
            characters.next();
        } else if c == '\n' || c == '\t' || !c.is_control() {
            plain.push(c);
        }
    }
    plain
}

/// The beginning, to the end of a line where there is one.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept = &text[..end];
    let kept = kept.rfind('\n').map_or(kept, |line| &kept[..line]);
    format!("{kept}\n… (more was said)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_of_the_machine_is_shown() {
        let visible = [
            "/usr/include",
            "/usr",
            "/home/ann/.rustup/toolchains/stable",
        ];
        let visible = visible.map(PathBuf::from);
        let said = b"\x1b[1m/tmp/main.cpp:3:1:\x1b[0m error: no\r\n/usr/include/c++/12/x: note\n\
            /home/ann/.rustup/toolchains/stable/lib/y\x07\n/usr/lib/z\n";
        assert_eq!(
            clean(said, &visible),
            "main.cpp:3:1: error: no\n<include>/c++/12/x: note\n<stable>/lib/y\n<usr>/lib/z"
        );
    }

    #[test]
    fn names_that_change_are_replaced_and_other_folders_kept() {
        let visible = [
            PathBuf::from("/home/ann/tmp/gcc"),
            PathBuf::from("/usr/bin/ld"),
        ];
        for (said, wanted) in [
            (
                "/usr/bin/ld: /tmp/ccA7BOSZ.o: in function `main':\nmain.c:(.text+0x5): undefined",
                "<ld>: <object>: in function `main':\nmain.c:(.text+0x5): undefined",
            ),
            (
                "\"-L\" \"/tmp/rustcTEhT2X/raw-dylibs\" \"-L/tmp/rustcAAAAAA\" /tmp/main-1f09ab.o",
                "\"-L\" \"<build>/raw-dylibs\" \"-L<build>\" <object>",
            ),
            ("/tmp/go-build123/b001/x.a", "<build>/b001/x.a"),
            (
                "/tmp/cctables.c:1: /tmp/ccheader.h",
                "cctables.c:1: ccheader.h",
            ),
            (
                "/home/ann/tmp/gcc/x.h:1 /var/tmp/x",
                "<gcc>/x.h:1 /var/tmp/x",
            ),
        ] {
            assert_eq!(clean(said.as_bytes(), &visible), wanted);
        }
    }

    #[test]
    fn killed_parts_are_told_from_mistakes() {
        for said in [
            "g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.\n",
            "x86_64-linux-gnu-gcc-12: fatal error: Killed signal terminated program as\ncompilation terminated.\n",
            "collect2: fatal error: ld terminated with signal 9 [Killed]\ncompilation terminated.\n",
            "clang: error: unable to execute command: Killed\n\
             clang: error: linker command failed due to signal (use -v to see invocation)\n",
            "error: linking with `/usr/bin/cc` failed: signal: 9 (SIGKILL)\n  |\n  = note: LC_ALL=\"C\" \"cc\"\n",
            "error: linking with `cc` failed: exit status: 1\n  |\n  = note: \"cc\"\n  \
             = note: collect2: fatal error: ld terminated with signal 9 [Killed]\n          compilation terminated.\n",
            "# internal/abi\ngo build internal/abi: /usr/lib/go/pkg/tool/linux_amd64/compile: signal: killed\n",
        ] {
            assert!(part_was_killed(said.as_bytes()), "{said}");
        }
        for said in [
            "",
            "compilation terminated.\n",
            "main.c:1:2: error: #error gcc: fatal error: Killed signal terminated program cc1\n",
            // What stands in `#line` and `static_assert` may go on to the next line.
            "a\ngcc: fatal error: Killed signal terminated program cc1\ncompilation terminated.\n:1:2: error: #error\n",
            "main.c: fatal error: Killed signal terminated program cc1: no such file\n",
            "error: linking with `cc` failed: signal: 9 (SIGKILL)\n --> main.rs:1:1\n",
            "error: linking with `cc` failed: exit status: 1\n  = note: cannot find -lld terminated with signal 9 [Killed]\n",
            "./main.go:2:1: go build x: signal: killed\n",
        ] {
            assert!(!part_was_killed(said.as_bytes()), "{said}");
        }
    }

    #[test]
    fn long_messages_end_with_a_whole_line() {
        let said = "main.c:1: error: ä\n".repeat(100_000);
        let message = clean(said.as_bytes(), &[]);
        assert!(message.len() <= LONGEST + 100);
        assert!(message.ends_with("error: ä\n… (more was said)"));
        assert!(clean(&[b'x'; 1 << 20], &[]).len() <= LONGEST + 100);
    }

    proptest! {
        #[test]
        fn any_bytes_become_a_message(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let message = clean(&bytes, &["/tmp".into(), "/".into()]);
            let escapes = message.contains(char::is_control) && message.contains('\x1b');
            prop_assert!(!escapes);
        }
    }
}
