//! A language file: what stands in it, and what is wrong with one. `assets/languages/README.md` explains it to people.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::{Fault, Limits};

/// Stands for further source files in the compiler's command.
const SOURCES: &str = "{sources}";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LanguageFile {
    /// What it is called in [`crate::Program::language`].
    pub name: String,
    /// What people call it.
    pub title: String,
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Name of the source file.
    pub source: String,
    /// Optional groups of the system-call policy, for compiling and running.
    #[serde(default)]
    pub system_calls: Vec<String>,
    /// Names of tools, and the commands by which each is looked for on the PATH, in this order.
    pub tools: BTreeMap<String, Vec<String>>,
    /// Further names, and the commands whose first line of output each stands for.
    #[serde(default)]
    pub ask: BTreeMap<String, Vec<String>>,
    /// The command whose first line of output is shown as the version.
    pub version: Vec<String>,
    pub check: Check,
    #[serde(default)]
    pub compile: Option<Compile>,
    pub run: Run,
}

/// A program that must compile and run wherever the language is to be used.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    pub source: String,
    #[serde(default)]
    pub input: String,
    pub output: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compile {
    /// The first is the full path of a file that is visible.
    pub command: Vec<String>,
    /// Files and folders of the host that are visible, where they exist.
    pub see: Vec<String>,
    /// Binaries and shared objects whose libraries are visible.
    #[serde(default)]
    pub libraries_of: Vec<String>,
    /// What the command leaves behind: a file or, with a slash at the end, a folder.
    pub product: String,
    /// Endings of further source files of a program that are compiled together with the first: they go where the command
    /// says `{sources}`.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Programs may start in a class of another name than that of `source`, and in a package, as Java programs do.
    #[serde(default)]
    pub main_class: bool,
    /// Exit statuses by which it says that the program is wrong.
    pub rejects: Vec<i32>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    pub cpu_s: f64,
    pub memory_mb: u64,
    pub output_kb: u64,
    pub processes: u32,
    pub files_mb: u64,
    pub product_mb: u64,
    #[serde(default = "yes")]
    pub address_space: bool,
}

/// What becomes of the product (or of the source, where nothing is compiled).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// It is started itself.
    Binary,
    /// It lies in the working folder.
    File,
    /// The same, as a folder.
    Folder,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    pub program: Kind,
    /// As when compiling; of a binary the first is only the name that it finds as its own.
    pub command: Vec<String>,
    #[serde(default)]
    pub see: Vec<String>,
    #[serde(default)]
    pub libraries_of: Vec<String>,
    /// Names of shared libraries that programs may be linked to or load; those that the loader finds are visible.
    #[serde(default)]
    pub libraries: Vec<String>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// By how much longer the same takes than in C.
    #[serde(default = "one")]
    pub time_factor: f64,
    /// What the runtime needs by itself, on top of a program's limits.
    pub own_memory_mb: u64,
    #[serde(default)]
    pub own_processes: u32,
    pub stack_mb: u64,
    #[serde(default = "yes")]
    pub address_space: bool,
    #[serde(default)]
    pub out_of_memory: Vec<String>,
}

fn yes() -> bool {
    true
}

fn one() -> f64 {
    1.0
}

impl LanguageFile {
    /// Reads a file; `name` is for errors.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, Fault> {
        let wrong = |reason: String| Fault::LanguageFile {
            file: name.into(),
            reason,
        };
        let file: Self = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
        file.check_all().map_err(wrong)?;
        Ok(file)
    }

    fn check_all(&self) -> Result<(), String> {
        // They become file names in the private /tmp.
        let plain = |what: &str, name: &str| {
            let good = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
            match !name.is_empty() && !name.starts_with('.') && name.chars().all(good) {
                true => Ok(()),
                false => Err(format!("`{what}` is `{name}`, which is not a plain name")),
            }
        };
        plain("name", &self.name)?;
        plain("source", &self.source)?;
        let mut commands = vec![
            ("version", &self.version),
            ("run.command", &self.run.command),
        ];
        for library in &self.run.libraries {
            plain("run.libraries", library)?;
        }
        if !(0.01..=1000.0).contains(&self.run.time_factor) {
            return Err(format!("`run.time_factor` is {}", self.run.time_factor));
        }
        match &self.compile {
            Some(compile) => {
                let product = compile.product.trim_end_matches('/');
                plain("compile.product", product)?;
                commands.push(("compile.command", &compile.command));
                let place = compile.command.iter().any(|argument| argument == SOURCES);
                if place == compile.sources.is_empty() {
                    return Err(format!(
                        "`compile.command` has an argument `{SOURCES}` if and only if there are `compile.sources`"
                    ));
                }
                if compile.product.ends_with('/') != (self.run.program == Kind::Folder) {
                    return Err("`compile.product` ends with a slash if and only if `run.program` is `folder`".into());
                }
                if !(0.0..=86400.0).contains(&compile.cpu_s) || compile.cpu_s == 0.0 {
                    return Err(format!("`compile.cpu_s` is {}", compile.cpu_s));
                }
            }
            None if self.run.program != Kind::File => {
                return Err("without `compile`, `run.program` is `file`".into());
            }
            None => {}
        }
        for (what, command) in commands
            .into_iter()
            .chain(self.ask.iter().map(|(k, v)| (k.as_str(), v)))
        {
            if command.is_empty() {
                return Err(format!("`{what}` is empty"));
            }
        }
        match self.tools.iter().find(|(_, commands)| commands.is_empty()) {
            Some((name, _)) => Err(format!("`tools.{name}` names no command")),
            None => Ok(()),
        }
    }

    /// Name of the program in the private /tmp of its runs.
    pub(crate) fn place(&self) -> &str {
        let product = self
            .compile
            .as_ref()
            .map(|c| c.product.trim_end_matches('/'));
        product.unwrap_or(&self.source)
    }
}

impl Compile {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            memory_bytes: self.memory_mb.saturating_mul(1 << 20),
            output_bytes: self.output_kb.saturating_mul(1 << 10),
            processes: self.processes,
            file_bytes: self.files_mb.saturating_mul(1 << 20),
            ..Limits::with_cpu(Duration::from_secs_f64(self.cpu_s))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_this_crate_are_right() {
        for (name, text) in crate::language::FILES {
            let file = LanguageFile::parse(name, text).expect("right");
            assert_eq!(name, format!("{}.toml", file.name));
        }
    }

    #[test]
    fn mistakes_are_told_with_the_file() {
        let (_, text) = crate::language::FILES[0];
        for (from, to, told) in [
            ("cpu_s", "cpu_seconds", "cpu_seconds"),
            ("name = \"c\"", "name = \"../c\"", "../c"),
            ("product = \"main\"", "product = \"main/\"", "slash"),
            ("product = \"main\"", "product = \"/etc/main\"", "/etc/main"),
            ("program = \"binary\"", "program = \"file\"", ""),
            ("program = \"binary\"", "program = \"binaries\"", "binaries"),
        ] {
            assert!(text.contains(from), "{from}");
            match LanguageFile::parse("x.toml", &text.replace(from, to)) {
                Err(fault) => {
                    let told_so = fault.to_string();
                    assert!(
                        told_so.contains("x.toml") && told_so.contains(told),
                        "{told_so}"
                    );
                }
                Ok(_) => assert!(told.is_empty(), "{to}"),
            }
        }
    }
}
