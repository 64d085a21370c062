//! Programs in packages: their languages, by the endings of files.

use super::PackageError;
use super::config::Config;
use super::files::{Files, join};
use crate::SourceFile;

/// Endings and the languages they stand for.
const LANGUAGES: [(&str, &str); 33] = [
    ("py", "python"),
    ("py3", "python"),
    ("py2", "python2"),
    ("cpp", "cpp"),
    ("cc", "cpp"),
    ("cxx", "cpp"),
    ("c++", "cpp"),
    ("C", "cpp"),
    ("c", "c"),
    ("java", "java"),
    ("rs", "rust"),
    ("go", "go"),
    ("js", "javascript"),
    ("mjs", "javascript"),
    ("ts", "typescript"),
    ("kt", "kotlin"),
    ("cs", "csharp"),
    ("hs", "haskell"),
    ("rb", "ruby"),
    ("ml", "ocaml"),
    ("pas", "pascal"),
    ("php", "php"),
    ("scala", "scala"),
    ("swift", "swift"),
    ("pl", "perl"),
    ("m", "objective-c"),
    ("adb", "ada"),
    ("f90", "fortran"),
    ("lisp", "lisp"),
    ("cl", "lisp"),
    ("jl", "julia"),
    ("lua", "lua"),
    ("sh", "bash"),
];

/// The language of a source file; `None` for headers and files of no known language.
pub(super) fn language(name: &str, text: &str) -> Option<&'static str> {
    let (_, ending) = name.rsplit_once('.')?;
    let (_, language) = LANGUAGES.into_iter().find(|(known, _)| *known == ending)?;
    let first = text.lines().next().unwrap_or_default();
    if language == "python" && first.starts_with("#!") && first.contains("python2") {
        return Some("python2");
    }
    Some(language)
}

/// Whether the first line says that Python 3 runs the text.
fn is_python(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.starts_with("#!") && first.contains("python") && !first.contains("python2")
}

/// A program with all of its files.
pub(super) struct Program {
    pub(super) language: String,
    /// The file that is compiled or run.
    pub(super) entry: String,
    pub(super) files: Vec<SourceFile>,
}

impl Program {
    /// Reads the program in a folder, or one file; constants of the package are put in.
    pub(super) fn read(
        files: &mut Files,
        config: Option<&Config>,
        path: &str,
        is_folder: bool,
    ) -> Result<Self, PackageError> {
        let (folder, names) = if is_folder {
            (path, files.tree(path)?)
        } else {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            (folder, vec![name.to_owned()])
        };
        let mut sources = Vec::new();
        for name in names {
            let file = join(folder, &name);
            let Some(text) = files.text(&file)? else {
                return Err(PackageError::new(
                    file,
                    ".",
                    "cannot be read; does a link lead nowhere?",
                ));
            };
            sources.push(SourceFile {
                path: name,
                text: match config {
                    Some(config) => config.substitute(text),
                    None => text,
                },
            });
        }
        Self::of(sources).map_err(|what| PackageError::new(path, ".", what))
    }

    /// Finds out how the files make a program.
    pub(super) fn of(files: Vec<SourceFile>) -> Result<Self, String> {
        // A program may say itself how it is built and run.
        for script in ["build", "run"] {
            if let Some(file) = files.iter().find(|file| file.path == script) {
                return Ok(Self {
                    language: match is_python(&file.text) && script == "run" {
                        true => "python".to_owned(),
                        false => "script".to_owned(),
                    },
                    entry: script.to_owned(),
                    files,
                });
            }
        }
        let sources: Vec<(&SourceFile, &str)> = files
            .iter()
            .filter_map(|file| Some((file, language(&file.path, &file.text)?)))
            .collect();
        let Some((first, language)) = sources.first() else {
            return Err("holds no source file of a known language".to_owned());
        };
        if let Some((other, _)) = sources.iter().find(|(_, other)| other != language) {
            return Err(format!(
                "mixes languages: `{}` and `{}`",
                first.path, other.path
            ));
        }
        // Of several, the one that is called what it is for, or that holds the start of the program.
        let is_main = |file: &SourceFile| {
            let stem = file
                .path
                .rsplit('/')
                .next()
                .and_then(|name| name.split('.').next())
                .unwrap_or_default();
            ["main", "validator", "validate", "output_validator"]
                .contains(&stem.to_ascii_lowercase().as_str())
        };
        let starts = |file: &SourceFile| {
            [" main(", "__main__", "func main", "fn main"]
                .iter()
                .any(|start| file.text.contains(start))
        };
        let entry = sources
            .iter()
            .find(|(file, _)| is_main(file))
            .or_else(|| sources.iter().find(|(file, _)| starts(file)))
            .map_or(&first.path, |(file, _)| &file.path)
            .clone();
        let language = (*language).to_owned();
        Ok(Self {
            language,
            entry,
            files,
        })
    }
}
