//! Where commands come from: a person at a terminal, or plain lines.

use std::collections::VecDeque;
use std::io::{BufRead, IsTerminal};

use anyhow::{Context as _, Result};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{History, MemHistory};
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};

use super::table::COMMANDS;
use crate::text;

/// What was read.
pub enum Input {
    /// A line.
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// There is no more.
    End,
}

/// A source of lines.
pub struct Console {
    /// `None`: plain lines from stdin.
    editor: Option<Box<Editor<Names, MemHistory>>>,
    /// Lines of a paste that are still to be read.
    pasted: VecDeque<String>,
}

impl Console {
    /// An editor if both ends are a terminal.
    pub fn open() -> Result<Self> {
        let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let editor = if terminal {
            let config = Config::builder().auto_add_history(false).build();
            let history = MemHistory::with_config(&config);
            let mut editor =
                Editor::with_history(config, history).context("cannot use this terminal")?;
            editor.set_helper(Some(Names(FilenameCompleter::new())));
            Some(Box::new(editor))
        } else {
            None
        };
        Ok(Self {
            editor,
            pasted: VecDeque::new(),
        })
    }

    /// A command, which the up arrow brings back.
    pub fn command(&mut self, prompt: &str) -> Result<Input> {
        let input = self.line(prompt)?;
        if let (Some(editor), Input::Line(line)) = (&mut self.editor, &input)
            && !line.trim().is_empty()
        {
            // A history that is full or switched off is no reason to stop.
            let _ = editor.history_mut().add(line);
        }
        Ok(input)
    }

    /// One line, without its end.
    pub fn line(&mut self, prompt: &str) -> Result<Input> {
        let Some(editor) = &mut self.editor else {
            return plain(prompt);
        };
        if let Some(line) = self.pasted.pop_front() {
            text::print(&format!("{prompt}{line}\n"))?;
            return Ok(Input::Line(line));
        }
        match editor.readline(prompt) {
            Ok(read) => {
                // The end of a paste's last line is not a line of its own: an empty line is a command.
                let whole = read.strip_suffix('\n').unwrap_or(&read);
                let mut lines = whole.split('\n').map(str::to_owned);
                let first = lines.next().unwrap_or_default();
                self.pasted.extend(lines);
                Ok(Input::Line(first))
            }
            Err(ReadlineError::Interrupted) => {
                self.pasted.clear();
                Ok(Input::Interrupted)
            }
            Err(ReadlineError::Eof) => {
                text::print("\n")?;
                Ok(Input::End)
            }
            Err(error) => Err(error).context("cannot read from the terminal"),
        }
    }
}

/// A line of stdin, repeated on stdout so that the output reads like a session.
fn plain(prompt: &str) -> Result<Input> {
    let mut bytes = vec![];
    let count = std::io::stdin()
        .lock()
        .read_until(b'\n', &mut bytes)
        .context("cannot read commands from stdin")?;
    if count == 0 {
        return Ok(Input::End);
    }
    let line = String::from_utf8_lossy(&bytes);
    let line = line.strip_suffix('\n').unwrap_or(&line);
    let line = line.strip_suffix('\r').unwrap_or(line).to_owned();
    text::print(&format!("{prompt}{}\n", text::visible(&line)))?;
    Ok(Input::Line(line))
}

/// Completes commands, and after `file` the names of files.
struct Names(FilenameCompleter);

impl Completer for Names {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        if line.starts_with("file ") {
            return self.0.complete(line, at, context);
        }
        let start = line.get(..at).unwrap_or_default();
        let names = COMMANDS.iter().map(|(name, ..)| *name);
        let pairs = names.filter(|name| !start.is_empty() && name.starts_with(start));
        let pairs = pairs.map(|name| Pair {
            display: name.to_owned(),
            replacement: name.to_owned(),
        });
        Ok((0, pairs.collect()))
    }
}

impl Hinter for Names {
    type Hint = String;
}

impl Highlighter for Names {}
impl Validator for Names {}
impl Helper for Names {}
