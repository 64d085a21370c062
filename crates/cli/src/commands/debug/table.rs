//! The dialog on the table and the commands that move it.

use std::path::Path;

use anyhow::Result;
use rlef_env::{Episode, Step, StepError};
use rlef_judge::{Judge, Stop};
use rlef_policy::{Dialog, LocalPolicy, dialog_seed};
use rlef_rl::TrainConfig;

use super::console::{Console, Input};
use super::show::{self, Style};
use crate::commands::{judge, problems};
use crate::settings::nearest;
use crate::{parts, text};

/// Name, argument, what it does.
pub const COMMANDS: [(&str, &str, &str); 13] = [
    ("model", "", "let the model answer (also Enter)"),
    (
        "again",
        "",
        "another sample: undo, and let the model answer this turn anew",
    ),
    (
        "type",
        "",
        "type an answer, its program in a code block (```); a line with a single . ends it",
    ),
    (
        "file",
        "PATH",
        "answer with the program in a file, in a code block",
    ),
    ("undo", "", "go back a turn"),
    ("prompt", "", "the whole dialog"),
    ("tests", "", "the public tests"),
    (
        "ran",
        "",
        "what ran for the last answer: program, verdicts, outputs",
    ),
    (
        "private",
        "",
        "the private tests' verdicts on the last answer",
    ),
    (
        "tokens",
        "",
        "the last answer's tokens with their log-probabilities",
    ),
    ("reward", "", "each turn's reward and its rule"),
    ("help", "", "this list; a name may be shortened"),
    ("quit", "", "leave (also ctrl-D)"),
];

/// A dialog with everything that can be done to it.
pub struct Table<'a> {
    config: &'a TrainConfig,
    episode: Episode,
    judge: &'a Judge,
    model: Option<Model<'a>>,
    style: Style,
    /// Which of the model's samples the next answer is.
    sample: u64,
}

struct Model<'a> {
    policy: &'a LocalPolicy,
    dialog: Dialog<'a>,
}

/// Whether there is more to come.
#[derive(PartialEq)]
enum Then {
    Go,
    Quit,
}

impl<'a> Table<'a> {
    /// A dialog that has just begun.
    pub fn new(
        config: &'a TrainConfig,
        episode: Episode,
        judge: &'a Judge,
        policy: Option<&'a LocalPolicy>,
        style: Style,
    ) -> Self {
        Self {
            config,
            episode,
            judge,
            model: policy.map(|policy| Model {
                policy,
                dialog: Dialog::new(policy),
            }),
            style,
            sample: 0,
        }
    }

    /// Reads commands until there are no more.
    pub fn run(mut self, mut console: Console, about: &str) -> Result<()> {
        text::print(&format!(
            "{about}; `help` lists the commands\n{}",
            show::messages(self.episode.messages(), self.style)
        ))?;
        loop {
            let prompt = match self.episode.is_done() {
                true => "ended> ".to_owned(),
                false => format!(
                    "turn {} of {}> ",
                    self.episode.steps().len() + 1,
                    self.episode.config().max_turns
                ),
            };
            match console.command(&prompt)? {
                Input::Line(line) => {
                    if self.obey(&line, &mut console)? == Then::Quit {
                        return Ok(());
                    }
                }
                Input::Interrupted => text::print("`quit` or ctrl-D leaves\n")?,
                Input::End => return Ok(()),
            }
        }
    }

    fn obey(&mut self, line: &str, console: &mut Console) -> Result<Then> {
        let (word, argument) = match line.trim().split_once(char::is_whitespace) {
            Some((word, rest)) => (word, rest.trim()),
            None => (line.trim(), ""),
        };
        let word = if word.is_empty() { "model" } else { word };
        let said = match command(word) {
            Ok("quit") => return Ok(Then::Quit),
            Ok("type") => match self.typed(console)? {
                Some(said) => said,
                None => return Ok(Then::Quit),
            },
            Ok("file") => self.file(argument),
            Ok(name) if !argument.is_empty() => format!("`{name}` takes nothing after it\n"),
            Ok("model") => self.sampled(),
            Ok("again") => self.again(),
            Ok("undo") => self.undo(),
            Ok("prompt") => show::messages(self.episode.messages(), self.style),
            Ok("tests") => problems::tests("public", &self.episode.problem().public_tests),
            Ok("ran") => {
                self.last(|step| show::ran(step, &self.episode.problem().public_tests, self.style))
            }
            Ok("private") => self.last(|step| self.private(step)),
            Ok("tokens") => self.tokens(),
            Ok("reward") => show::rewards(self.episode.steps(), self.episode.config()),
            Ok(_) => help(),
            Err(why) => why,
        };
        text::print(&said)?;
        Ok(Then::Go)
    }

    /// The model's answer to the turn that is due.
    fn sampled(&mut self) -> String {
        if let Some(why) = self.not_due() {
            return why;
        }
        let Some(model) = &mut self.model else {
            return "there is no model; `type` and `file PATH` answer\n".into();
        };
        let problem = self.episode.problem();
        let turn = self.episode.steps().len();
        let seed = dialog_seed(self.config.seed, &problem.id, self.sample, turn);
        let answer = match model.dialog.answer(problem, self.episode.messages(), seed) {
            Ok(answer) => answer,
            Err(error) => return format!("the model cannot answer: {error}\n"),
        };
        let about = model.dialog.turns().last().map(show::sampled);
        let heading = self
            .style
            .heading(&format!("assistant: {}", about.unwrap_or_default()));
        heading + &show::body(&answer.text) + &self.step(&answer.text)
    }

    /// Another sample for the last turn, or for the first.
    fn again(&mut self) -> String {
        if self.model.is_none() {
            return "there is no model, so there are no samples\n".into();
        }
        self.sample += 1;
        if !self.episode.steps().is_empty() {
            self.go_back();
        }
        format!("sample {}\n", self.sample + 1) + &self.sampled()
    }

    /// Lines up to a single `.`; `None` at the end of input.
    fn typed(&mut self, console: &mut Console) -> Result<Option<String>> {
        if let Some(why) = self.not_due() {
            return Ok(Some(why));
        }
        let mut lines = vec![];
        loop {
            match console.line("| ")? {
                Input::Line(line) if line == "." => break,
                Input::Line(line) => lines.push(line),
                Input::Interrupted => return Ok(Some("nothing was answered\n".into())),
                Input::End => return Ok(None),
            }
        }
        Ok(Some(self.take(&lines.join("\n"))))
    }

    fn file(&mut self, path: &str) -> String {
        if let Some(why) = self.not_due() {
            return why;
        }
        if path.is_empty() {
            return "`file` needs the path of a program\n".into();
        }
        match parts::text(Path::new(path)) {
            Err(error) => format!("{}\n", text::visible(&text::error(&error))),
            Ok(code) => {
                let answer = fenced(&code);
                self.style.heading("assistant: from a file")
                    + &show::body(&answer)
                    + &self.take(&answer)
            }
        }
    }

    /// Takes an answer that the model did not give.
    fn take(&mut self, answer: &str) -> String {
        if let Some(model) = &mut self.model
            && let Err(error) = model.dialog.take(self.episode.messages(), answer)
        {
            return format!("the answer cannot be recorded: {error}\n");
        }
        self.step(answer)
    }

    /// Runs an answer that is in the record.
    fn step(&mut self, answer: &str) -> String {
        match self.episode.step(answer, self.judge) {
            Ok(step) => {
                let next = match self.episode.messages().last() {
                    Some(message) if !step.done => {
                        show::messages(std::slice::from_ref(message), self.style)
                    }
                    _ => String::new(),
                };
                show::step(&step, self.style) + &next
            }
            Err(error) => {
                if let Some(model) = &mut self.model {
                    model.dialog.undo();
                }
                let kind = match error {
                    StepError::Fault(_) => "a fault of the machinery, the answer is not taken",
                    StepError::Ended { .. } => "the answer is not taken",
                };
                format!("{kind}: {error}\n")
            }
        }
    }

    fn undo(&mut self) -> String {
        if self.episode.steps().is_empty() {
            return "this is the start\n".into();
        }
        self.go_back();
        match self.episode.messages().last() {
            Some(message) => show::messages(std::slice::from_ref(message), self.style),
            None => String::new(),
        }
    }

    fn go_back(&mut self) {
        self.episode.undo();
        if let Some(model) = &mut self.model {
            model.dialog.undo();
        }
    }

    /// Why no answer can be given now, if so.
    fn not_due(&self) -> Option<String> {
        let ended = self.episode.is_done();
        ended.then(|| "the dialog has ended; `undo` or `again` goes back a turn\n".into())
    }

    /// Something about the last answer.
    fn last(&self, show: impl Fn(&Step) -> String) -> String {
        match self.episode.steps().last() {
            Some(step) => show(step),
            None => "nothing has been answered\n".into(),
        }
    }

    /// Judged for this view alone: the episode stops at the first failure, and does not run them at all after a
    /// public one.
    fn private(&self, step: &Step) -> String {
        let Some(code) = &step.code else {
            return "nothing to run: the answer has no code block\n".into();
        };
        let problem = self.episode.problem();
        match self
            .judge
            .judge(problem, code, &problem.private_tests, Stop::Never)
        {
            Ok(report) => judge::table(&report),
            Err(fault) => format!("a fault of the machinery: {fault}\n"),
        }
    }

    fn tokens(&self) -> String {
        match &self.model {
            None => "there is no model, so there are no tokens\n".into(),
            Some(model) => match model.dialog.turns().last() {
                Some(turn) => show::tokens(turn, model.policy.tokenizer(), self.style),
                None => "nothing has been answered\n".into(),
            },
        }
    }
}

/// The command that `word` is or begins.
fn command(word: &str) -> Result<&'static str, String> {
    let names = COMMANDS.iter().map(|(name, ..)| *name);
    let begun: Vec<&str> = names.clone().filter(|n| n.starts_with(word)).collect();
    match begun[..] {
        [one] => Ok(one),
        [] => {
            let known: Vec<String> = names.map(str::to_owned).collect();
            let shown = text::line(word, 40);
            Err(format!(
                "unknown command `{shown}`{}\n",
                nearest(word, &known)
            ))
        }
        _ => Err(format!("`{word}` could be {}\n", begun.join(" or "))),
    }
}

fn help() -> String {
    let rows: Vec<Vec<String>> = COMMANDS
        .iter()
        .map(|(name, argument, what)| {
            vec![
                format!("{name} {argument}").trim().to_owned(),
                (*what).to_owned(),
            ]
        })
        .collect();
    text::columns(&rows, "")
}

/// A program in a code block that no line of it can close.
fn fenced(code: &str) -> String {
    let longest = code
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(3.max(longest + 1));
    let end = if code.is_empty() || code.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{fence}python\n{code}{end}{fence}")
}

#[cfg(test)]
mod tests {
    use rlef_env::{CodeBlock, extract_code};

    use super::*;

    #[test]
    fn names_may_be_shortened_and_slips_are_noticed() {
        assert_eq!(command("model"), Ok("model"));
        assert_eq!(command("q"), Ok("quit"));
        assert_eq!(
            command("t").unwrap_err(),
            "`t` could be type or tests or tokens\n"
        );
        let error = command("promt").unwrap_err();
        assert_eq!(error, "unknown command `promt`; did you mean `prompt`?\n");
        assert_eq!(
            command("\u{1b}[2J").unwrap_err().matches('\u{1b}').count(),
            0
        );
    }

    #[test]
    fn a_program_comes_out_of_its_block_as_it_was() {
        let tags = ["python".to_owned()];
        for code in [
            "print(1)\n",
            "s = '''\n```\n'''\n",
            "x = '`````'\nprint(x)\n",
        ] {
            let answer = fenced(code);
            let found = extract_code(&answer, &tags, CodeBlock::Last);
            assert_eq!(found.as_deref(), Some(code));
        }
        let found = extract_code(&fenced("print(1)"), &tags, CodeBlock::Last);
        assert_eq!(found.as_deref(), Some("print(1)\n"));
    }
}
