//! Statements: the English one of several languages, LaTeX turned into Markdown, with the samples after it as they are
//! shown to people.

mod latex;

use super::PackageError;
use super::config::Config;
use super::files::{Files, join};
use crate::TestCase;
use std::fmt::Write as _;

/// Folders of statements, of either version.
const FOLDERS: [&str; 2] = ["problem_statement", "statement"];

/// A statement as Markdown.
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) title: Option<String>,
    pub(super) language: String,
    /// `markdown` or `latex`.
    pub(super) format: &'static str,
    pub(super) has_figure: bool,
}

pub(super) fn read(
    files: &mut Files,
    config: &Config,
    samples: &[TestCase],
) -> Result<Statement, PackageError> {
    let mut found: Vec<(u8, String, u8, String)> = Vec::new();
    let mut others = Vec::new();
    for folder in FOLDERS {
        for (name, is_folder) in files.list(folder)? {
            let Some(rest) = name.strip_prefix("problem.").filter(|_| !is_folder) else {
                continue;
            };
            let (language, ending) = rest.rsplit_once('.').unwrap_or(("en", rest));
            let english = match language {
                "en" => 0,
                _ if language.starts_with("en-") || language.starts_with("en_") => 1,
                _ => 2,
            };
            let format = match ending {
                "md" => 0,
                "tex" => 1,
                _ => {
                    others.push(name);
                    continue;
                }
            };
            found.push((english, language.to_owned(), format, join(folder, &name)));
        }
    }
    found.sort();
    let Some((_, language, format, file)) = found.into_iter().next() else {
        let what = if others.is_empty() {
            "holds no statement; `problem.en.tex` or `problem.en.md` is missing".to_owned()
        } else {
            format!(
                "holds {} only; a statement in LaTeX (.tex) or Markdown (.md) is needed",
                others.join(", ")
            )
        };
        return Err(PackageError::new("problem_statement", ".", what));
    };
    let source = files.lossy_text(&file)?.unwrap_or_default();
    let source = config.substitute(source.replace("\r\n", "\n"));
    let mut statement = if format == 0 {
        let text = source
            .replace("{{nextsample}}", "")
            .replace("{{remainingsamples}}", "");
        let title = text
            .trim_start()
            .strip_prefix("# ")
            .and_then(|rest| rest.lines().next())
            .map(str::to_owned);
        let has_figure = text.contains("![") || text.contains("<img");
        Statement {
            text: text.trim().to_owned(),
            title,
            language,
            format: "markdown",
            has_figure,
        }
    } else {
        let latex::Markdown {
            text,
            title,
            has_figure,
        } = latex::to_markdown(&source);
        Statement {
            text,
            title,
            language,
            format: "latex",
            has_figure,
        }
    };
    if statement.text.is_empty() {
        return Err(PackageError::new(
            file,
            ".",
            "is empty; the model would be told nothing",
        ));
    }
    add_samples(&mut statement.text, samples);
    Ok(statement)
}

/// As problem packages are shown: each sample with its input and output.
fn add_samples(text: &mut String, samples: &[TestCase]) {
    for (at, sample) in samples.iter().enumerate() {
        for (what, shown) in [("Input", &sample.input), ("Output", &sample.output)] {
            // A fence that is in neither text.
            let mut fence = "```".to_owned();
            while shown.contains(&fence) {
                fence.push('`');
            }
            let line_end = if shown.is_empty() || shown.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            let _ = write!(
                text,
                "\n\n## Sample {what} {}\n\n{fence}\n{shown}{line_end}{fence}",
                at + 1
            );
        }
    }
    text.push('\n');
}
