//! Finding the Python interpreter and everything it needs, once, outside the sandbox.
//!
//! Whatever `python3` on the PATH is (a binary, a link, a shell script of a version manager), it is asked for the
//! real binary and the folders of its standard library; the system's loader is asked for the shared libraries. Of
//! site-packages it looks at what it is asked for (`packages.rs`). What it does not do: run anything but this crate's own
//! questions.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Fault;
use crate::ask::{self, timed};
use crate::packages;
use crate::root::RootPlan;

const LANGUAGE: &str = include_str!("../assets/python.toml");
const PROBE: &str = include_str!("../assets/probe.py");
const BOOT: &str = include_str!("../assets/boot.py");

/// Where the compiled boot file lies in the private root.
const BOOT_PATH: &str = "/boot.pyc";

/// The helper of the warm interpreter (`native/fork.rs`); empty where there is none for this system.
pub(crate) const HELPER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fork.so"));
/// Where the boot file looks for it in the private root.
const HELPER_PATH: &str = "/fork.so";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Language {
    file: String,
    arguments: Vec<String>,
    hidden: Vec<String>,
    warm: Vec<String>,
    environment: BTreeMap<String, String>,
}

/// The probe's answer.
#[derive(Deserialize)]
struct Answer {
    version: String,
    too_old: bool,
    #[serde(default)]
    implementation: String,
    #[serde(default)]
    executable: PathBuf,
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    exec_prefix: String,
    #[serde(default)]
    folders: Vec<PathBuf>,
    #[serde(default)]
    extensions: Vec<PathBuf>,
    #[serde(default)]
    boot: Vec<u8>,
}

/// An interpreter and how to start it.
pub(crate) struct Interpreter {
    pub version: String,
    pub executable: PathBuf,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub file: String,
    /// Modules for the warm interpreter.
    pub modules: Vec<String>,
    pub root: RootPlan,
}

impl Interpreter {
    /// `packages`: those of its site-packages that programs are to have.
    pub(crate) fn find(wanted: Option<&Path>, packages: &[String]) -> Result<Self, Fault> {
        let language: Language = toml::from_str(LANGUAGE).map_err(|e| Fault::Interpreter {
            path: "assets/python.toml".into(),
            reason: e.to_string(),
        })?;
        let name = wanted.unwrap_or(Path::new("python3"));
        let path = std::env::var_os("PATH");
        let answer = ask(name, path.as_deref(), ask::PATIENCE)?;
        let packages = packages::find(name, packages)?;
        let wrong = |reason: String| Fault::Interpreter {
            path: answer.executable.clone(),
            reason,
        };
        let mut root = RootPlan::default();
        let mut add = |path: &Path| {
            root.add(path)
                .map_err(|e| wrong(format!("{}: {e}", path.display())))
        };
        for folder in &answer.folders {
            add(folder)?;
        }
        add(&answer.executable)?;
        let mut extensions = answer.extensions.clone();
        extensions.extend(packages.extensions.iter().cloned());
        let libraries =
            libraries(&answer.executable, &extensions).map_err(|error| match error.kind() {
                io::ErrorKind::TimedOut => Fault::Silent {
                    path: answer.executable.clone(),
                    patience: ask::PATIENCE,
                },
                _ => wrong(error.to_string()),
            })?;
        for library in &libraries {
            // What a package brings along is seen in its own place.
            if !packages.shows(library) {
                add(library)?;
            }
        }
        for extra in extras(&libraries) {
            add(&extra)?;
        }
        for folder in &answer.folders {
            for name in &language.hidden {
                root.hide(&folder.join(name));
            }
        }
        root.placed.extend(packages.placed);
        root.files.insert(BOOT_PATH.into(), answer.boot);
        root.files.insert(HELPER_PATH.into(), HELPER.into());
        let mut arguments = language.arguments;
        arguments.push(BOOT_PATH.into());
        let fill = |text: &str| {
            text.replace("{prefix}", &answer.prefix)
                .replace("{exec_prefix}", &answer.exec_prefix)
        };
        Ok(Self {
            version: answer.version,
            executable: answer.executable,
            arguments,
            environment: language
                .environment
                .iter()
                .map(|(k, v)| (k.clone(), fill(v)))
                .collect(),
            file: language.file,
            modules: language.warm,
            root: root.finish(),
        })
    }
}

/// Asks what `name` starts. `path` is the PATH, where there is one.
fn ask(name: &Path, path: Option<&OsStr>, patience: Duration) -> Result<Answer, Fault> {
    let missing = |reason: String| Fault::NoInterpreter {
        wanted: name.into(),
        reason,
    };
    let wrong = |reason: String| Fault::Interpreter {
        path: name.into(),
        reason,
    };
    let answer: Answer = question(name, path, &["-S", "-c", PROBE, BOOT], patience)?;
    if answer.too_old {
        return Err(missing(format!("it is Python {}", answer.version)));
    }
    if answer.implementation != "cpython" {
        return Err(wrong(format!(
            "it is {}, only CPython can be run",
            answer.implementation
        )));
    }
    Ok(answer)
}

/// Has the interpreter run a text of ours, apart from the user's own settings, and reads the line of JSON that it prints.
/// `arguments` end with `-c`, the text, and what it is told.
pub(crate) fn question<T: DeserializeOwned>(
    name: &Path,
    path: Option<&OsStr>,
    arguments: &[&str],
    patience: Duration,
) -> Result<T, Fault> {
    let missing = |reason: String| Fault::NoInterpreter {
        wanted: name.into(),
        reason,
    };
    let command = match name.components().nth(1) {
        // A name. Without a PATH the system looks in folders of its own, and the interpreter does not find itself.
        None if path.is_none_or(OsStr::is_empty) => {
            return Err(missing(
                "PATH is not set, so it cannot be looked for".into(),
            ));
        }
        None => name.to_path_buf(),
        // A file, whose name would mean another one in the folder that the interpreter is started in.
        Some(_) => std::path::absolute(name).map_err(|e| {
            missing(format!(
                "the folder that it is named from cannot be told ({e}); give its whole path"
            ))
        })?,
    };
    let mut command = Command::new(command);
    command
        .args(["-I", "-B"])
        .args(arguments)
        // Ours may have been removed, and then it could not even start.
        .current_dir("/");
    let output = ask::within(command, patience).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => Fault::Silent {
            path: name.into(),
            patience,
        },
        io::ErrorKind::NotFound => missing(match name.components().nth(1) {
            None => format!("there is none in the folders of PATH ({error})"),
            Some(_) => error.to_string(),
        }),
        // A limit on descriptors, processes or memory, which says nothing about the interpreter.
        _ if matches!(
            error.raw_os_error(),
            Some(libc::EMFILE | libc::ENFILE | libc::EAGAIN | libc::ENOMEM)
        ) =>
        {
            Fault::system("asking the interpreter where its parts are")(error)
        }
        _ => missing(error.to_string()),
    })?;
    // A version manager may print before the interpreter does: the answer is the last line.
    let text = String::from_utf8_lossy(&output);
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).map_err(|e| Fault::Interpreter {
        path: name.into(),
        reason: format!(
            "asked where its parts are, it said `{}` ({e})",
            line.chars().take(200).collect::<String>()
        ),
    })
}

/// Extension modules that one start of the loader is asked about: their paths are one variable of the environment, which
/// the kernel keeps below 128 KiB.
const PRELOADED_AT_ONCE: usize = 256;

/// The shared libraries of the binary and of the extension modules, under the names by which the loader finds them.
pub(crate) fn libraries(
    executable: &Path,
    extensions: &[PathBuf],
) -> io::Result<BTreeSet<PathBuf>> {
    let Some(loader) = loader_of(executable)? else {
        return Ok(BTreeSet::new()); // linked statically
    };
    let mut found = BTreeSet::from([loader.clone()]);
    // One start of the loader lists everything, with the extension modules as if preloaded, which is also how they
    // see the libraries that the binary already brings. Blanks and colons cannot be written in that list.
    let plain = |p: &&PathBuf| !p.to_string_lossy().contains([' ', ':', '\t', '\n']);
    let preload: Vec<_> = extensions
        .iter()
        .filter(plain)
        .map(|p| p.to_string_lossy().into_owned())
        .collect();
    let mut listed = BTreeSet::new();
    // The binary alone as well, should there be no extension.
    for some in preload
        .chunks(PRELOADED_AT_ONCE)
        .chain(preload.is_empty().then_some(&[][..]))
    {
        let mut command = Command::new(executable);
        command
            .env("LD_TRACE_LOADED_OBJECTS", "1")
            .env("LD_PRELOAD", some.join(":"));
        // A loader that does not know this way starts the binary, which reads an empty stdin and ends.
        listed.extend(self::listed(command)?);
    }
    let rest: Vec<&PathBuf> = if listed.is_empty() {
        extensions.iter().collect()
    } else {
        extensions.iter().filter(|p| !plain(p)).collect()
    };
    let whole = listed.is_empty().then_some(executable);
    found.extend(listed);
    for file in rest.into_iter().map(PathBuf::as_path).chain(whole) {
        let mut command = Command::new(&loader);
        command.arg("--list").arg(file);
        found.extend(self::listed(command)?);
    }
    Ok(found)
}

/// The libraries that a loader lists; none if it fails: an extension whose library is not installed cannot be imported
/// outside either. One that does not answer in time has said nothing.
fn listed(command: Command) -> io::Result<BTreeSet<PathBuf>> {
    match timed(command) {
        Ok(text) => Ok(parse(&text)),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(error),
        Err(_) => Ok(BTreeSet::new()),
    }
}

/// Lines such as `libm.so.6 => /lib/libm.so.6 (0x7f…)` or `/lib64/ld-linux.so.2 (0x7f…)`.
fn parse(text: &[u8]) -> BTreeSet<PathBuf> {
    let text = String::from_utf8_lossy(text);
    let path = |line: &str| {
        let (before, _) = line.trim().rsplit_once(" (0x")?;
        let path = before.split_once(" => ").map_or(before, |(_, path)| path);
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}

/// Not linked but loaded by name: the unwinder that ending a thread needs, and the loader's index of libraries
/// (without it, libraries outside the standard folders would not be found).
pub(crate) fn extras(libraries: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let folders: BTreeSet<&Path> = libraries.iter().filter_map(|l| l.parent()).collect();
    let unwinder = folders
        .into_iter()
        .map(|f| f.join("libgcc_s.so.1"))
        .filter(|p| p.exists());
    unwinder
        .chain(Some(PathBuf::from("/etc/ld.so.cache")).filter(|p| p.exists()))
        .collect()
}

/// The loader that the binary names (the ELF header's interpreter entry), `None` if it needs none.
fn loader_of(executable: &Path) -> io::Result<Option<PathBuf>> {
    let mut head = Vec::new();
    File::open(executable)?
        .take(1 << 20)
        .read_to_end(&mut head)?;
    parse_loader(&head)
        .map_err(|reason| io::Error::other(format!("{}: {reason}", executable.display())))
}

/// Program header type of the loader's path.
const PT_INTERP: usize = 3;

fn parse_loader(elf: &[u8]) -> Result<Option<PathBuf>, &'static str> {
    let cut = "its ELF header is cut short";
    if !elf.starts_with(b"\x7fELF\x02\x01") {
        return Err("not a 64-bit little-endian ELF binary");
    }
    let number = |at: usize, length: usize| -> Result<usize, &'static str> {
        let bytes = at
            .checked_add(length)
            .and_then(|end| elf.get(at..end))
            .ok_or(cut)?;
        Ok(bytes.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b)))
    };
    let (table, entry, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for index in 0..count {
        let at = table.checked_add(index * entry).ok_or(cut)?;
        if number(at, 4)? == PT_INTERP {
            let (start, length) = (number(at + 8, 8)?, number(at + 32, 8)?);
            let path = start
                .checked_add(length)
                .and_then(|end| elf.get(start..end))
                .ok_or(cut)?;
            let path = path.strip_suffix(b"\0").unwrap_or(path);
            return Ok(Some(PathBuf::from(
                String::from_utf8_lossy(path).into_owned(),
            )));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn loader_lines_are_read() {
        let text = b"\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/x/libm.so.6 (0x7f1)\n\
            \tlibgone.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x7f2)\n\t/a b/c.so (0x7f3)\nnoise";
        let wanted = [
            "/lib/x/libm.so.6",
            "/lib64/ld-linux-x86-64.so.2",
            "/a b/c.so",
        ];
        assert_eq!(parse(text), wanted.iter().map(PathBuf::from).collect());
    }

    #[test]
    fn this_test_names_its_loader() {
        let own = std::env::current_exe().expect("known");
        let loader = loader_of(&own).expect("an ELF file");
        assert!(loader.is_none_or(|l| l.is_absolute() && l.exists()));
    }

    #[test]
    fn absent_and_wrong_interpreters_are_told_apart() {
        let absent = Interpreter::find(Some(Path::new("/no/such/python")), &[]);
        assert!(matches!(absent, Err(Fault::NoInterpreter { .. })));
        let other = Interpreter::find(Some(Path::new("/bin/echo")), &[])
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default();
        assert!(
            other.contains("/bin/echo") && other.contains("cannot be used"),
            "{other}"
        );
    }

    /// A file that can be started, with what the shell is to do.
    fn script(text: &str) -> (tempfile::TempDir, PathBuf) {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join("python3");
        std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).expect("made");
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&file, open).expect("made");
        (place, file)
    }

    fn told(name: &Path, path: Option<&str>, patience: Duration) -> String {
        let path = path.map(OsStr::new);
        let answer = ask(name, path, patience);
        answer.err().map(|f| f.to_string()).unwrap_or_default()
    }

    #[test]
    fn one_that_hangs_is_not_called_missing() {
        let (_place, file) = script("exec sleep 60");
        let said = told(&file, Some("/bin"), Duration::from_millis(200));
        assert!(
            said.contains("did not answer within 200ms") && said.contains("busy"),
            "{said}"
        );
        assert!(
            said.contains("--python") && !said.contains("install"),
            "{said}"
        );
    }

    #[test]
    fn without_a_path_it_is_the_path_that_is_missing() {
        for path in [None, Some("")] {
            let said = told(Path::new("python3"), path, ask::PATIENCE);
            assert!(
                said.contains("PATH is not set") && said.contains("--python"),
                "{said}"
            );
            let own = std::env::current_dir().expect("known");
            assert!(!said.contains(&*own.to_string_lossy()), "{said}");
        }
        let said = told(Path::new("no-such-python"), Some("/bin"), ask::PATIENCE);
        assert!(said.contains("none in the folders of PATH"), "{said}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_error_or_a_path(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_loader(&bytes);
            bytes.splice(0..0, *b"\x7fELF\x02\x01");
            let _ = parse_loader(&bytes);
            parse(&bytes);
        }
    }
}
