//! Packages that programs are to have besides the standard library: found once, outside, with what they need.
//!
//! Each lies in the private root in one folder, by itself: of the host's site-packages nothing else can be seen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
    missing: Vec<String>,
    /// File or folder of each entry, by the name that it has in its site-packages.
    entries: BTreeMap<String, PathBuf>,
    extensions: Vec<PathBuf>,
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
    let mut placed = BTreeMap::new();
    for (name, file) in answer.entries {
        let host = file
            .canonicalize()
            .map_err(|error| wrong(format!("{}: {error}", file.display())))?;
        placed.insert(Path::new(PLACE).join(name), host);
    }
    Ok(Packages {
        placed,
        extensions: answer.extensions,
    })
}
