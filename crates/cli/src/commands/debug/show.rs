//! How a dialog looks: text from its parts, nothing else.

use std::io::IsTerminal;

use rlef_env::{EpisodeConfig, FeedbackMode, Message, Step};
use rlef_judge::{Report, TestResult};
use rlef_model::ChatTokenizer;
use rlef_policy::DialogTurn;
use rlef_problems::TestCase;

use crate::text;

/// How much of a message, a program or an output is shown, in characters.
const SHOWN: usize = 20_000;

/// Width of the list of tokens, in columns.
const WIDTH: usize = 100;

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    colour: bool,
}

impl Style {
    /// Colours on a terminal that has them, unless `NO_COLOR` is set (no-color.org).
    pub fn of_this_terminal() -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        Self {
            colour: terminal && !dumb && !set("NO_COLOR"),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// A line that says whose words follow.
    pub fn heading(self, text: &str) -> String {
        self.paint("1;36", &format!("[{text}]")) + "\n"
    }

    /// Good or bad news.
    pub fn news(self, good: bool, text: &str) -> String {
        self.paint(if good { "32" } else { "31" }, text)
    }

    fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// From green for what the model was sure of to red for what surprised it.
    fn shade(self, logprob: f32, text: &str) -> String {
        let code = match logprob.exp() {
            p if p >= 0.9 => "32",
            p if p >= 0.5 => "33",
            p if p >= 0.1 => "35",
            _ => "1;31",
        };
        self.paint(code, text)
    }
}

/// A feedback mode as it is typed.
pub fn feedback(mode: FeedbackMode) -> &'static str {
    match mode {
        FeedbackMode::Real => "real",
        FeedbackMode::Random => "random",
        FeedbackMode::None => "none",
    }
}

/// Messages, each under its role.
pub fn messages(messages: &[Message], style: Style) -> String {
    let one = |m: &Message| style.heading(m.role.as_str()) + &body(&m.content);
    messages.iter().map(one).collect()
}

/// Somebody's words.
pub fn body(content: &str) -> String {
    match text::block(content, "", SHOWN) {
        empty if empty.trim().is_empty() => "(nothing but white space)\n".into(),
        block => block,
    }
}

/// What came of an answer, in a line or two; the reward's reason is [`reward`]'s business.
pub fn step(step: &Step, style: Style) -> String {
    let count = |name: &str, report: &Option<Report>| match report {
        Some(r) if r.is_compile_error() => style.news(false, &format!("{name}: compile error")),
        Some(r) => {
            let not_run = r.total - r.results.len();
            let rest = if not_run > 0 {
                format!(", {not_run} not run after the first failure")
            } else {
                String::new()
            };
            let text = format!("{name}: {} of {} accepted{rest}", r.passed(), r.total);
            style.news(r.all_passed(), &text)
        }
        None => format!("{name}: not run"),
    };
    let mut said = match &step.code {
        Some(_) => format!(
            "{}; {}",
            count("public", &step.public),
            count("private", &step.private)
        ),
        None => style.news(false, "no code block found, so nothing was run"),
    };
    said.push_str(&format!("; reward {}\n", signed(step.reward)));
    if step.done {
        let solved = step.solved == Some(true);
        let text = if solved { "solved" } else { "not solved" };
        said.push_str(&format!("ended: {}\n", style.news(solved, text)));
    }
    said
}

/// A reward with its sign, 0 without one.
fn signed(reward: f32) -> String {
    if reward == 0.0 {
        "0".into()
    } else {
        format!("{reward:+}")
    }
}

/// Each turn's reward and the rule behind it.
pub fn rewards(steps: &[Step], config: &EpisodeConfig) -> String {
    let mut rows: Vec<Vec<String>> = steps
        .iter()
        .map(|step| {
            vec![
                format!("turn {}", step.turn + 1),
                signed(step.reward),
                rule(step, config),
            ]
        })
        .collect();
    let total: f32 = steps.iter().map(|step| step.reward).sum();
    rows.push(vec![
        "total".into(),
        signed(total),
        "without the price of leaving the reference policy, which training adds".into(),
    ]);
    text::columns(&rows, "")
}

fn rule(step: &Step, config: &EpisodeConfig) -> String {
    match (step.done, step.solved) {
        (true, Some(true)) => format!(
            "the last answer passed every test: solved_reward {}",
            signed(config.solved_reward)
        ),
        (true, _) => format!(
            "the last answer failed a test: failed_reward {}",
            signed(config.failed_reward)
        ),
        (false, _) if !step.valid_code => format!(
            "no valid code, and not the last answer: invalid_code_reward {}",
            signed(config.invalid_code_reward)
        ),
        (false, _) => "valid code, and not the last answer: nothing".into(),
    }
}

/// What ran on the public tests: program, verdicts, input and outputs.
pub fn ran(step: &Step, tests: &[TestCase], style: Style) -> String {
    let Some(code) = &step.code else {
        return "nothing ran: the answer has no code block\n".into();
    };
    let mut shown = style.heading("code") + &text::block(code, "", SHOWN);
    for result in step.public.iter().flat_map(|report| &report.results) {
        shown.push_str(&test(result, tests.get(result.index), style));
    }
    shown
}

fn test(result: &TestResult, test: Option<&TestCase>, style: Style) -> String {
    let mut shown = style.heading(&text::line(&result.name, 80));
    let verdict = style.news(
        result.verdict == rlef_judge::Verdict::Accepted,
        &result.verdict.to_string(),
    );
    shown.push_str(&format!(
        "{verdict}, {:.3} s CPU, {:.3} s wall\n",
        result.cpu.as_secs_f64(),
        result.wall.as_secs_f64()
    ));
    let detail = result.detail.to_string();
    let mut part = |name: &str, content: &str| {
        if !content.is_empty() {
            let block = text::block(content, "    ", SHOWN);
            shown.push_str(&format!("  {}\n{block}", style.dim(name)));
        }
    };
    part("detail", &detail);
    if let Some(test) = test {
        part("stdin", &test.input);
        part("expected", &test.output);
    }
    part("stdout", &String::from_utf8_lossy(&result.stdout));
    part("stderr", &String::from_utf8_lossy(&result.stderr));
    if result.stdout_len > result.stdout.len() {
        let left = result.stdout_len - result.stdout.len();
        shown.push_str(&format!("  ({left} more bytes on stdout)\n"));
    }
    shown
}

/// A line about a sampled answer.
pub fn sampled(turn: &DialogTurn) -> String {
    let logprobs = turn.logprobs.as_deref().unwrap_or_default();
    let sum: f64 = logprobs.iter().map(|&x| f64::from(x)).sum();
    let end = if turn.finished {
        ""
    } else {
        ", cut at the length limit"
    };
    format!(
        "{} tokens, log-probability {sum:.3}{end}",
        turn.answer.len()
    )
}

/// An answer's tokens with their log-probabilities.
pub fn tokens(turn: &DialogTurn, tokenizer: &ChatTokenizer, style: Style) -> String {
    let Some(logprobs) = &turn.logprobs else {
        return format!(
            "{} tokens, typed: the model gave them no log-probability\n",
            turn.answer.len()
        );
    };
    let mut shown = format!(
        "{}, after {} tokens of prompt\n",
        sampled(turn),
        turn.prompt.len()
    );
    let mut column = 0;
    for (&token, &logprob) in turn.answer.iter().zip(logprobs) {
        let piece = format!("{:?}", tokenizer.piece(token));
        let number = format!("{logprob:.2}");
        let width = piece.chars().count() + number.len() + 3;
        if column > 0 && column + width > WIDTH {
            shown.push('\n');
            column = 0;
        } else if column > 0 {
            shown.push_str("  ");
        }
        let piece = style.shade(logprob, &text::visible(&piece));
        shown.push_str(&format!("{piece} {}", style.dim(&number)));
        column += width;
    }
    shown.push('\n');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(done: bool, valid_code: bool, solved: Option<bool>, reward: f32) -> Step {
        Step {
            turn: 0,
            code: None,
            valid_code,
            public: None,
            feedback: None,
            done,
            private: None,
            public_passed: false,
            solved,
            reward,
        }
    }

    #[test]
    fn each_reward_has_its_rule() {
        let config = EpisodeConfig::default();
        let rules = [
            (
                answered(true, true, Some(true), 1.0),
                "passed every test: solved_reward +1",
            ),
            (
                answered(true, false, Some(false), -1.0),
                "failed a test: failed_reward -1",
            ),
            (
                answered(false, false, Some(false), -0.2),
                "no valid code, and not the last answer: invalid_code_reward -0.2",
            ),
            (
                answered(false, true, Some(false), 0.0),
                "valid code, and not the last answer: nothing",
            ),
        ];
        for (step, words) in rules {
            let text = rewards(std::slice::from_ref(&step), &config);
            assert!(text.contains(words), "{text}");
            assert!(
                text.contains(&format!("total   {}", signed(step.reward))),
                "{text}"
            );
        }
    }

    #[test]
    fn without_colour_there_is_no_escape() {
        let style = Style { colour: false };
        let all = style.heading("a") + &style.news(true, "b") + &style.shade(-9.0, "c");
        assert_eq!(all, "[a]\nbc");
        assert!(
            Style { colour: true }
                .shade(-9.0, "c")
                .starts_with("\x1b[1;31m")
        );
    }
}
