//! Packages that programs are to have besides the standard library: found once, outside, with what they need.
//!
//! They lie together in one folder of the private root: of the host's site-packages nothing else can be seen. The answer is
//! made from what installers have left, which may say anything: nothing of it is bound that leads elsewhere.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::Fault;
use crate::ask;
use crate::interpreter::question;

const QUESTION: &str = include_str!("../assets/packages.py");
/// Where they lie in the private root, and where the boot file looks for them.
const PLACE: &str = "/packages";

/// The interpreter's answer (`assets/packages.py`).
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    missing: Vec<String>,
    /// File or folder of each entry, by the path that it has in its site-packages.
    #[serde(default)]
    entries: BTreeMap<String, PathBuf>,
    #[serde(default)]
    extensions: Vec<PathBuf>,
    /// Why it has given up.
    refused: Option<String>,
}

/// What was found.
#[derive(Default)]
pub(crate) struct Packages {
    /// Where they are to be, and where on the host they are, without links on the way.
    pub placed: BTreeMap<PathBuf, PathBuf>,
    /// Their extension modules and the libraries that they bring along, on the host.
    pub extensions: Vec<PathBuf>,
}

impl Packages {
    /// Whether a file of the host is within one of them.
    pub(crate) fn shows(&self, file: &Path) -> bool {
        let real = file.canonicalize().unwrap_or_else(|_| file.into());
        self.placed.values().any(|host| real.starts_with(host))
    }
}

/// What keeps programs from having them.
pub(crate) fn fault(interpreter: &Path, reason: String) -> Fault {
    Fault::Packages {
        interpreter: interpreter.into(),
        reason,
    }
}

/// Finds the packages `names` of an interpreter.
pub(crate) fn find(interpreter: &Path, names: &[String]) -> Result<Packages, Fault> {
    if names.is_empty() {
        return Ok(Packages::default());
    }
    let wrong = |reason: String| fault(interpreter, reason);
    for name in names {
        // The name of a module at the top: the interpreter would have to import a package to look into it.
        let fits = |c: char| c.is_alphanumeric() || c == '_';
        if name.is_empty() || name.starts_with(|c: char| c.is_numeric()) || !name.chars().all(fits)
        {
            return Err(wrong(format!(
                "`{name}` is not the name of one; write what stands after `import`, such as numpy"
            )));
        }
    }
    let mut arguments = vec!["-c", QUESTION];
    arguments.extend(names.iter().map(String::as_str));
    let path = std::env::var_os("PATH");
    let answer: Answer = question(interpreter, path.as_deref(), &arguments, ask::PATIENCE)?;
    if !answer.missing.is_empty() {
        return Err(wrong(format!(
            "it has no {}; install it for this interpreter (pip install), or give another interpreter \
             (`--python FILE`, setting `judge.python`)",
            answer.missing.join(", ")
        )));
    }
    if let Some(reason) = answer.refused {
        return Err(wrong(reason));
    }
    let mut never: Vec<PathBuf> = interpreter.canonicalize().into_iter().collect();
    never.extend(std::env::var_os("HOME").map(PathBuf::from));
    let placed = placed(answer.entries, &never).map_err(wrong)?;
    Ok(Packages {
        placed,
        extensions: answer.extensions,
    })
}

/// Where each is to be, and where it is. None may show a folder that holds one of `never`.
fn placed(
    entries: BTreeMap<String, PathBuf>,
    never: &[PathBuf],
) -> Result<BTreeMap<PathBuf, PathBuf>, String> {
    let mut placed = BTreeMap::new();
    for (name, file) in entries {
        let parts = Path::new(&name).components();
        let plain = parts
            .clone()
            .all(|part| matches!(part, Component::Normal(_)));
        // As it is written: `a//b` and `a/.` are the same as others when they are read.
        let same = parts.clone().collect::<PathBuf>().as_os_str() == name.as_str();
        if name.is_empty() || name.contains('\0') || !plain || !same {
            return Err(format!(
                "`{name}` is not a path below a folder of packages; install the package that has it again"
            ));
        }
        let host = (file.canonicalize()).map_err(|error| format!("{}: {error}", file.display()))?;
        if host.parent().is_none() || never.iter().any(|path| path.starts_with(&host)) {
            return Err(format!(
                "`{name}` leads to {}, which holds more than a package; install the package that has it again",
                host.display()
            ));
        }
        placed.insert(Path::new(PLACE).join(name), host);
    }
    Ok(placed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_bound_that_is_no_package() {
        let place = tempfile::tempdir().expect("a folder");
        let base = place.path().canonicalize().expect("real");
        std::fs::create_dir_all(base.join("home/ann/lib/numpy")).expect("made");
        let never = [base.join("home/ann")];
        let bind = |name: &str, host: &Path| {
            placed(BTreeMap::from([(name.to_owned(), host.into())]), &never)
        };
        let package = base.join("home/ann/lib/numpy");
        for good in ["numpy", "ns/numpy"] {
            let there = bind(good, &package).expect("bound");
            assert_eq!(there[&Path::new(PLACE).join(good)], package);
        }
        for bad in [
            "", "/", "/numpy", "..", "../x", "ns/../x", "a//b", "./a", "a/",
        ] {
            let told = bind(bad, &package).expect_err(bad);
            assert!(told.contains("install"), "{told}");
        }
        for bad in [Path::new("/"), &base, &base.join("home"), &never[0]] {
            let told = bind("numpy", bad).expect_err("too much");
            assert!(told.contains("more than a package"), "{told}");
        }
        assert!(bind("numpy", &base.join("none")).is_err());
    }
}
