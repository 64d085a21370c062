//! Finding the tools of a language, asking them where their parts are, and filling in what a language file says.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::file::LanguageFile;
use crate::ask::timed;
use crate::interpreter::{extras, libraries};
use crate::root::RootPlan;

/// Names that stand for what only a run knows.
const PER_RUN: [&str; 2] = ["memory_mb", "sources"];

/// What the names in braces stand for.
#[derive(Debug)]
pub(crate) struct Tools {
    names: BTreeMap<String, String>,
    /// First line of what the version command says.
    pub version: String,
}

impl Tools {
    /// Looks for every tool and asks what is to be asked. The error says what was looked for, and where.
    pub(crate) fn find(file: &LanguageFile) -> Result<Self, String> {
        let mut tools = Self {
            names: BTreeMap::new(),
            version: String::new(),
        };
        for (name, commands) in &file.tools {
            let found = commands.iter().find_map(|c| on_path(c));
            let path = found.ok_or_else(|| {
                let tried: Vec<String> = commands.iter().map(|c| format!("`{c}`")).collect();
                format!("no {} on the PATH", tried.join(" or "))
            })?;
            let mut add = |name: String, path: &Path| {
                tools
                    .names
                    .insert(name, path.to_string_lossy().into_owned())
            };
            add(name.clone(), &path);
            let real = path.canonicalize().unwrap_or(path);
            add(format!("{name}.real"), &real);
            // bin/tool → the folder that has the bin.
            if let Some(home) = real.parent().and_then(Path::parent) {
                add(format!("{name}.home"), home);
            }
        }
        for (name, command) in &file.ask {
            let line = tools.first_line(command)?;
            tools.names.insert(name.clone(), line);
        }
        tools.version = tools.first_line(&file.version)?;
        Ok(tools)
    }

    /// First line of what a command prints.
    fn first_line(&self, command: &[String]) -> Result<String, String> {
        let filled = self.fill_all(command)?;
        let shown = filled.join(" ");
        let [program, arguments @ ..] = &filled[..] else {
            return Err("an empty command".into());
        };
        let mut command = Command::new(program);
        command.args(arguments).env("LC_ALL", "C");
        let output = timed(command).map_err(|error| format!("`{shown}` failed: {error}"))?;
        let text = String::from_utf8_lossy(&output);
        let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
        let line = lines.next().ok_or(format!("`{shown}` printed nothing"))?;
        Ok(line.to_owned())
    }

    /// Replaces `{name}` by what it stands for. What a run fills in stays.
    pub(crate) fn fill(&self, text: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| format!("`{text}` has a brace that is not closed"))?;
            filled.push_str(before);
            match self.names.get(name) {
                Some(value) => filled.push_str(value),
                None if PER_RUN.contains(&name) => filled.push_str(&format!("{{{name}}}")),
                None => return Err(format!("`{text}`: nothing is called `{name}`")),
            }
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    pub(crate) fn fill_all(&self, texts: &[String]) -> Result<Vec<String>, String> {
        texts.iter().map(|t| self.fill(t)).collect()
    }

    /// A private root in which `see` is visible, and the libraries of the binary and the shared objects given.
    pub(crate) fn root(
        &self,
        see: &[String],
        libraries_of: &[PathBuf],
    ) -> Result<RootPlan, String> {
        let mut root = RootPlan::default();
        let told = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        for path in self.seen(see)? {
            root.add(&path).map_err(|e| told(&path, e))?;
        }
        if let [binary, objects @ ..] = libraries_of {
            let found = libraries(binary, objects).map_err(|e| told(binary, e))?;
            let more = extras(&found);
            for library in found.into_iter().chain(more) {
                root.add(&library).map_err(|e| told(&library, e))?;
            }
        }
        Ok(root.finish())
    }

    /// The paths of `see` that exist.
    pub(crate) fn seen(&self, see: &[String]) -> Result<Vec<PathBuf>, String> {
        let mut paths = Vec::new();
        for text in see {
            paths.extend(matching(Path::new(&self.fill(text)?)));
        }
        // One that is not text could not be named in a plan.
        paths.retain(|p| p.is_absolute() && p.exists() && p.to_str().is_some());
        Ok(paths)
    }
}

/// A name from the PATH, or a path.
fn on_path(command: &str) -> Option<PathBuf> {
    let usable = |path: &PathBuf| {
        let executable = |m: std::fs::Metadata| m.is_file() && m.permissions().mode() & 0o111 != 0;
        path.metadata().is_ok_and(executable)
    };
    if command.contains('/') {
        return Some(PathBuf::from(command)).filter(usable);
    }
    let folders = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&folders).filter(|f| f.is_absolute());
    places.map(|f| f.join(command)).find(usable)
}

/// Paths that fit one whose parts may have a `*`, which stands for anything but a slash.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::new()];
    for part in pattern {
        let text = part.to_string_lossy();
        let Some((start, end)) = text.split_once('*') else {
            paths.iter_mut().for_each(|p| p.push(part));
            continue;
        };
        let fits = |name: &str| {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        };
        let entries = |folder: PathBuf| {
            let mut names: Vec<PathBuf> = std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .flatten()
                .filter(|e| e.file_name().to_str().is_some_and(fits))
                .map(|e| e.path())
                .collect();
            names.sort();
            names
        };
        paths = paths.into_iter().flat_map(entries).collect();
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Tools {
        Tools {
            names: BTreeMap::from([("cc".into(), "/usr/bin/gcc".into())]),
            version: String::new(),
        }
    }

    #[test]
    fn names_are_filled_in() {
        let tools = tools();
        assert_eq!(tools.fill("x{cc}y").as_deref(), Ok("x/usr/bin/gccy"));
        assert_eq!(
            tools.fill("-Xmx{memory_mb}m").as_deref(),
            Ok("-Xmx{memory_mb}m")
        );
        assert!(tools.fill("{cxx}").is_err_and(|e| e.contains("`cxx`")));
        assert!(tools.fill("{cc").is_err());
    }

    #[test]
    fn stars_stand_for_parts_of_names() {
        let place = tempfile::tempdir().expect("a folder");
        for name in ["java-17/conf", "java-21/conf", "java/conf", "go"] {
            std::fs::create_dir_all(place.path().join(name)).expect("made");
        }
        let found = matching(&place.path().join("java-*/conf"));
        let wanted = ["java-17/conf", "java-21/conf"].map(|n| place.path().join(n));
        assert_eq!(found, wanted);
        assert!(matching(&place.path().join("rust*")).is_empty());
    }

    #[test]
    fn a_missing_tool_is_told_by_the_names_that_were_tried() {
        let (_, text) = crate::language::FILES[0];
        let mut file = LanguageFile::parse("c.toml", text).expect("right");
        file.tools = BTreeMap::from([("cc".into(), vec!["no-such-cc".into(), "/no/such".into()])]);
        let told = Tools::find(&file).unwrap_err();
        assert!(told.contains("`no-such-cc` or `/no/such`"), "{told}");
    }
}
