//! LaTeX of statements as Markdown: what authors of problems use, not all of LaTeX. Formulas stay as they are; commands
//! that are not known vanish and their arguments stay, so that nothing of the text is lost.

mod letters;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

/// Arguments within arguments that are converted; what is deeper stays as it is.
const DEEPEST: usize = 40;

/// A converted text.
pub(super) struct Markdown {
    pub(super) text: String,
    pub(super) title: Option<String>,
    pub(super) has_figure: bool,
}

pub(super) fn to_markdown(source: &str) -> Markdown {
    let source = without_comments(source);
    let mut converter = Converter {
        title: None,
        has_figure: false,
        macros: HashMap::new(),
        // Macros may multiply a text; what authors write grows little.
        room: source.len().saturating_mul(8) + (1 << 16),
    };
    let body = match (
        source.split_once("\\begin{document}"),
        source.split_once("\\end{document}"),
    ) {
        (Some((head, body)), _) => {
            converter.convert(head, 0);
            converter.title = None;
            body.split_once("\\end{document}")
                .map_or(body, |(body, _)| body)
        }
        _ => &source,
    };
    let text = converter.convert(body, 0);
    let mut text = tidy(&text);
    if let Some(title) = &converter.title {
        text = format!("# {title}\n\n{text}");
    }
    Markdown {
        text: text.trim().to_owned(),
        title: converter.title,
        has_figure: converter.has_figure,
    }
}

/// Environments whose text is taken as it is.
const VERBATIM: [&str; 4] = ["verbatim", "lstlisting", "Verbatim", "minted"];
/// Environments that are formulas.
const FORMULAS: [&str; 9] = [
    "equation",
    "align",
    "displaymath",
    "math",
    "eqnarray",
    "gather",
    "multline",
    "alignat",
    "flalign",
];

/// Cuts comments, except in text that is taken as it is.
fn without_comments(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut verbatim: Option<&str> = None;
    for line in source.split_inclusive('\n') {
        if let Some(name) = verbatim {
            out.push_str(line);
            if line.contains(&format!("\\end{{{name}")) {
                verbatim = None;
            }
            continue;
        }
        let mut escaped = false;
        let comment = line.char_indices().find(|&(_, c)| {
            let found = c == '%' && !escaped;
            escaped = c == '\\' && !escaped;
            found
        });
        match comment {
            // The line break goes with the comment, but an empty line still ends a paragraph.
            Some((at, _)) => out.push_str(line.get(..at).unwrap_or_default()),
            None => out.push_str(line),
        }
        verbatim = VERBATIM.into_iter().find(|name| {
            line.contains(&format!("\\begin{{{name}")) && !line.contains(&format!("\\end{{{name}"))
        });
    }
    out
}

/// Without blanks at the ends of lines and without runs of empty lines, outside of code.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    let mut code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        let line = if code { line } else { line.trim_end() };
        if line.is_empty() && !code {
            empty += 1;
            continue;
        }
        if !out.is_empty() {
            out.push_str(if empty > 0 { "\n\n" } else { "\n" });
        }
        empty = 0;
        let indented_list =
            line.trim_start().starts_with("- ") || starts_numbered(line.trim_start());
        out.push_str(if code || indented_list {
            line
        } else {
            line.trim_start()
        });
    }
    out
}

struct Converter {
    title: Option<String>,
    has_figure: bool,
    /// Macros of the author without arguments.
    macros: HashMap<String, String>,
    /// How much text may still be made.
    room: usize,
}

/// A place in a text.
struct Cursor<'t> {
    rest: &'t str,
}

impl<'t> Cursor<'t> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
        Some(c)
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Everything before `end`, which is skipped; all of the rest where it is not there.
    fn until(&mut self, end: &str) -> &'t str {
        let (before, after) = self.rest.split_once(end).unwrap_or((self.rest, ""));
        self.rest = after;
        before
    }

    /// The name of a command after its backslash: letters, or one other character.
    fn name(&mut self) -> &'t str {
        let letters = self
            .rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(self.rest.len());
        let end = if letters > 0 {
            letters
        } else {
            self.rest.chars().next().map_or(0, char::len_utf8)
        };
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        if letters > 0 && !self.skip("*") {
            self.rest = self.rest.strip_prefix([' ', '\t']).unwrap_or(self.rest);
        }
        name
    }

    /// What is between the given brackets, if they come next.
    fn group(&mut self, open: char, close: char) -> Option<&'t str> {
        let trimmed = self.rest.trim_start_matches([' ', '\t']);
        let trimmed = trimmed
            .strip_prefix('\n')
            .unwrap_or(trimmed)
            .trim_start_matches([' ', '\t']);
        let inner = trimmed.strip_prefix(open)?;
        let mut depth = 0usize;
        let mut escaped = false;
        for (at, c) in inner.char_indices() {
            if escaped {
                escaped = false;
                continue;
            }
            match c {
                '\\' => escaped = true,
                _ if c == close && depth == 0 => {
                    self.rest = inner.get(at + close.len_utf8()..).unwrap_or_default();
                    return inner.get(..at);
                }
                _ if c == open => depth += 1,
                _ if c == close => depth -= 1,
                _ => {}
            }
        }
        None
    }

    fn argument(&mut self) -> Option<&'t str> {
        self.group('{', '}')
    }

    fn option(&mut self) -> Option<&'t str> {
        self.group('[', ']')
    }

    /// The text of an environment up to its end, environments of the same name within it included.
    fn environment(&mut self, name: &str) -> &'t str {
        let (begin, end) = (format!("\\begin{{{name}}}"), format!("\\end{{{name}}}"));
        let whole = self.rest;
        let mut at = 0;
        let mut depth = 0usize;
        loop {
            let rest = whole.get(at..).unwrap_or_default();
            let Some(found) = rest.find(&end) else {
                self.rest = "";
                return whole;
            };
            depth += rest
                .get(..found)
                .unwrap_or_default()
                .matches(&begin)
                .count();
            let end_at = at + found;
            at = end_at + end.len();
            if depth == 0 {
                self.rest = whole.get(at..).unwrap_or_default();
                return whole.get(..end_at).unwrap_or_default();
            }
            depth -= 1;
        }
    }
}

impl Converter {
    fn convert(&mut self, text: &str, depth: usize) -> String {
        if depth > DEEPEST || self.room < text.len() {
            return text.to_owned();
        }
        self.room -= text.len();
        let mut out = String::with_capacity(text.len());
        let mut cursor = Cursor { rest: text };
        while let Some(c) = cursor.next() {
            match c {
                '\\' => self.command(&mut cursor, &mut out, depth),
                '$' => {
                    let fence = if cursor.skip("$") { "$$" } else { "$" };
                    self.formula(cursor.until(fence), fence, &mut out);
                }
                '{' | '}' => {}
                '~' => out.push(' '),
                '`' if cursor.skip("`") => out.push('"'),
                '\'' if cursor.skip("'") => out.push('"'),
                '`' => out.push('\''),
                '-' if cursor.skip("--") => out.push('—'),
                '-' if cursor.skip("-") => out.push('–'),
                _ => out.push(c),
            }
        }
        out
    }

    /// A formula as it is, with the author's macros put in.
    fn formula(&self, formula: &str, fence: &str, out: &mut String) {
        let mut shown = String::new();
        let mut cursor = Cursor { rest: formula };
        while let Some(c) = cursor.next() {
            if c != '\\' {
                shown.push(c);
                continue;
            }
            let before = cursor.rest;
            let name = cursor.name();
            let used = before
                .get(..before.len() - cursor.rest.len())
                .unwrap_or_default();
            match self.macros.get(name) {
                Some(body) => shown.push_str(&format!(
                    "{body}{}",
                    used.get(name.len()..).unwrap_or_default()
                )),
                None => {
                    shown.push('\\');
                    shown.push_str(used);
                }
            }
        }
        out.push_str(fence);
        out.push_str(shown.trim());
        out.push_str(fence);
    }

    fn around(&mut self, mark: &str, cursor: &mut Cursor<'_>, out: &mut String, depth: usize) {
        let text = self.argument(cursor, depth);
        let inner = text.trim();
        if !inner.is_empty() {
            out.push_str(&format!("{mark}{inner}{mark}"));
        }
    }

    /// The next argument, converted; empty where there is none.
    fn argument(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> String {
        match cursor.argument() {
            Some(text) => self.convert(text, depth + 1),
            None => String::new(),
        }
    }

    fn heading(&mut self, level: &str, cursor: &mut Cursor<'_>, out: &mut String, depth: usize) {
        cursor.option();
        let title = self.argument(cursor, depth);
        out.push_str(&format!("\n\n{level} {}\n\n", title.trim()));
    }

    fn command(&mut self, cursor: &mut Cursor<'_>, out: &mut String, depth: usize) {
        let before = cursor.rest;
        let name = cursor.name();
        match name {
            "problemname" | "problemtitle" => {
                let title = self.argument(cursor, depth).trim().to_owned();
                self.title = Some(title).filter(|title| !title.is_empty());
            }
            "section" | "chapter" => self.heading("##", cursor, out, depth),
            "subsection" => self.heading("###", cursor, out, depth),
            "subsubsection" => self.heading("####", cursor, out, depth),
            "paragraph" => {
                let text = self.argument(cursor, depth);
                out.push_str(&format!("\n\n**{}** ", text.trim()));
            }
            "Input" => out.push_str("\n\n## Input\n\n"),
            "Output" => out.push_str("\n\n## Output\n\n"),
            "Interaction" => out.push_str("\n\n## Interaction\n\n"),
            "textbf" | "bf" if cursor.rest.trim_start().starts_with('{') => {
                self.around("**", cursor, out, depth)
            }
            "emph" | "textit" | "textsl" => self.around("*", cursor, out, depth),
            "texttt" | "code" | "lstinline" | "path" | "mintinline" => {
                if name == "mintinline" {
                    cursor.argument();
                }
                cursor.option();
                match cursor.argument() {
                    Some(_) if depth > DEEPEST => {}
                    Some(text) => {
                        let text = self.convert(text, depth + 1);
                        out.push_str(&format!("`{}`", text.replace('`', "'").trim()));
                    }
                    None => verb(cursor, out),
                }
            }
            "verb" => verb(cursor, out),
            "footnote" => {
                let text = self.argument(cursor, depth);
                out.push_str(&format!(" ({})", text.trim()));
            }
            "href" => {
                let target = cursor.argument().unwrap_or_default().replace("\\", "");
                let text = self.argument(cursor, depth);
                out.push_str(&format!("[{}]({target})", text.trim()));
            }
            "url" | "nolinkurl" => {
                out.push_str(&cursor.argument().unwrap_or_default().replace("\\", ""))
            }
            "includegraphics" | "illustration" | "includesvg" => {
                self.has_figure = true;
                cursor.option();
                let mut file = cursor.argument().unwrap_or_default().trim();
                let mut text = String::new();
                if name == "illustration" {
                    file = cursor.argument().unwrap_or_default().trim();
                    text = self.argument(cursor, depth);
                }
                let text = text.trim();
                let colon = if text.is_empty() { "" } else { ": " };
                out.push_str(&format!("\n\n(figure {file}{colon}{text})\n\n"));
            }
            "caption" => {
                cursor.option();
                let text = self.argument(cursor, depth);
                out.push_str(&format!("\n\n{}\n\n", text.trim()));
            }
            "begin" => {
                let kind = cursor.argument().unwrap_or_default().trim().to_owned();
                self.environment(&kind, cursor, out, depth);
            }
            "item" => {
                let label = cursor.option().map(|label| self.convert(label, depth + 1));
                out.push_str("\n- ");
                if let Some(label) = label {
                    out.push_str(&format!("{} ", label.trim()));
                }
            }
            "newcommand" | "renewcommand" | "providecommand" | "DeclareMathOperator" | "def" => {
                self.define(name, cursor)
            }
            "par" => out.push_str("\n\n"),
            "\\" | "newline" | "linebreak" => {
                cursor.option();
                out.push('\n');
            }
            "(" => self.formula(cursor.until("\\)"), "$", out),
            "[" => self.formula(cursor.until("\\]"), "$$", out),
            // Layout, and what the samples and the index are made by.
            "label" | "vspace" | "hspace" | "input" | "include" | "usepackage"
            | "documentclass" | "pagestyle" | "setlength" | "addtolength" | "hypersetup"
            | "end" | "cline" | "color" | "sample" | "setcounter" | "vskip" | "newenvironment"
            | "centerline"
                if name != "centerline" =>
            {
                cursor.option();
                cursor.argument();
                if matches!(
                    name,
                    "setlength" | "addtolength" | "setcounter" | "newenvironment"
                ) {
                    cursor.argument();
                }
            }
            "textcolor" | "resizebox" | "scalebox" | "parbox" | "raisebox" => {
                cursor.argument();
                if name == "resizebox" {
                    cursor.argument();
                }
                out.push_str(&self.argument(cursor, depth));
            }
            "ref" | "eqref" | "autoref" | "cref" | "cite" => {
                let text = cursor.argument().unwrap_or_default();
                out.push_str(text.rsplit(':').next().unwrap_or_default());
            }
            "ensuremath" => {
                let text = cursor.argument().unwrap_or_default();
                self.formula(text, "$", out);
            }
            _ => {
                if let Some(body) = self.macros.get(name).cloned() {
                    let text = self.convert(&body, depth + 1);
                    out.push_str(&text);
                } else if let Some(text) = letters::accent(name, cursor) {
                    out.push_str(&text);
                } else if let Some(text) = letters::symbol(name) {
                    out.push_str(text);
                    // The blank after a letter's name only ended the name, unless braces did.
                    if before
                        .get(name.len()..)
                        .is_some_and(|rest| rest.starts_with(' '))
                        && letters::is_sign(name)
                    {
                        out.push(' ');
                    }
                }
            }
        }
    }

    fn define(&mut self, kind: &str, cursor: &mut Cursor<'_>) {
        let name = if kind == "def" {
            cursor.rest = cursor.rest.trim_start();
            cursor.skip("\\");
            Some(cursor.name())
        } else {
            match cursor.argument() {
                Some(name) => Some(name.trim().trim_start_matches('\\')),
                None => {
                    cursor.skip("\\");
                    Some(cursor.name())
                }
            }
        };
        let with_arguments = cursor.option().is_some();
        cursor.option();
        if kind == "def" && !cursor.rest.trim_start().starts_with('{') {
            return;
        }
        if let (Some(name), Some(body)) = (name, cursor.argument())
            && !with_arguments
        {
            let body = if kind == "DeclareMathOperator" {
                format!("\\operatorname{{{body}}}")
            } else {
                body.to_owned()
            };
            self.macros.insert(name.to_owned(), body);
        }
    }

    fn environment(&mut self, kind: &str, cursor: &mut Cursor<'_>, out: &mut String, depth: usize) {
        let plain = kind.trim_end_matches('*');
        let text = cursor.environment(kind);
        let mut inner = Cursor { rest: text };
        if VERBATIM.contains(&plain) {
            inner.option();
            if plain == "minted" {
                inner.argument();
            }
            let code = inner.rest.trim_start_matches([' ', '\t']);
            let code = code.strip_prefix('\n').unwrap_or(code).trim_end();
            out.push_str(&format!("\n\n```\n{code}\n```\n\n"));
        } else if FORMULAS.contains(&plain) {
            out.push_str("\n\n");
            self.formula(inner.rest, "$$", out);
            out.push_str("\n\n");
        } else if plain == "enumerate" || plain == "itemize" || plain == "description" {
            inner.option();
            let items = self.convert(inner.rest, depth + 1);
            out.push_str("\n\n");
            list(&items, plain == "enumerate", out);
            out.push('\n');
        } else if plain.starts_with("tabular") || plain == "array" || plain == "longtable" {
            inner.option();
            inner.argument();
            if plain == "tabularx" || plain == "tabular*" {
                inner.argument();
            }
            self.table(inner.rest, out, depth);
        } else {
            if matches!(
                plain,
                "figure" | "wrapfigure" | "table" | "minipage" | "multicols" | "center"
            ) {
                inner.option();
                while plain != "center" && inner.argument().is_some() {}
            }
            if plain == "figure" || plain == "wrapfigure" || plain == "tikzpicture" {
                self.has_figure = true;
            }
            let text = if plain == "tikzpicture" {
                "(figure)".to_owned()
            } else {
                self.convert(inner.rest, depth + 1)
            };
            out.push_str(&format!("\n\n{}\n\n", text.trim()));
        }
    }

    /// Rows as lines, with bars between the cells.
    fn table(&mut self, text: &str, out: &mut String, depth: usize) {
        out.push_str("\n\n");
        let text = text
            .replace("\\hline", "")
            .replace("\\toprule", "")
            .replace("\\midrule", "")
            .replace("\\bottomrule", "");
        for row in text.split("\\\\") {
            // An ampersand that is meant is written with a backslash.
            let row = row.replace("\\&", "\u{1}");
            let cells: Vec<String> = row
                .split('&')
                .map(|cell| {
                    self.convert(cell, depth + 1)
                        .trim()
                        .replace('\n', " ")
                        .replace('\u{1}', "&")
                })
                .collect();
            if cells.iter().any(|cell| !cell.is_empty()) {
                out.push_str(&format!("| {} |\n", cells.join(" | ")));
            }
        }
        out.push('\n');
    }
}

/// Items with their numbers or marks; what is within an item is indented.
fn list(items: &str, numbered: bool, out: &mut String) {
    let mut number = 0;
    let mut code = false;
    for line in items.lines() {
        let fence = line.trim_start().starts_with("```");
        if let Some(text) = line.strip_prefix("- ").filter(|_| !code) {
            number += 1;
            let mark = if numbered {
                format!("{number}.")
            } else {
                "-".to_owned()
            };
            out.push_str(&format!("{mark} {}\n", text.trim()));
        } else if code || fence {
            out.push_str(&format!("{line}\n"));
        } else if line.trim().is_empty() {
            continue;
        } else if number == 0 {
            out.push_str(&format!("{}\n", line.trim()));
        } else if line.trim_start().starts_with("- ") || starts_numbered(line.trim_start()) {
            out.push_str(&format!("  {}\n", line.trim_end()));
        } else {
            // One item, one line: what came on the next line of the source belongs to it.
            out.truncate(out.trim_end_matches('\n').len());
            out.push_str(&format!(" {}\n", line.trim()));
        }
        code ^= fence;
    }
}

/// Whether a line starts as an item of a numbered list does.
fn starts_numbered(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len() && rest.starts_with(". ")
}

/// `\verb|text|`, with any character for the bars.
fn verb(cursor: &mut Cursor<'_>, out: &mut String) {
    if let Some(bar) = cursor.next() {
        let text = cursor.until(&bar.to_string());
        out.push_str(&format!("`{text}`"));
    }
}
