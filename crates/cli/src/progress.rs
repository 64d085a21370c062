//! Progress for people: a bar on a terminal, lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar with an estimate of the time left.
pub struct Bar {
    bar: ProgressBar,
    terminal: bool,
    start: Instant,
    last_line: std::sync::Mutex<Instant>,
    what: String,
}

impl Bar {
    /// `what` is being done, `total` of it.
    pub fn new(what: &str, total: u64) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(
            Some(total),
            if terminal {
                ProgressDrawTarget::stderr()
            } else {
                ProgressDrawTarget::hidden()
            },
        );
        if let Ok(style) = ProgressStyle::with_template(
            "{prefix} {bar:24} {pos}/{len} {msg} [{elapsed} gone, {eta} left]",
        ) {
            bar.set_style(style);
        }
        bar.set_prefix(what.to_owned());
        Self {
            bar,
            terminal,
            start: Instant::now(),
            last_line: std::sync::Mutex::new(Instant::now()),
            what: what.into(),
        }
    }

    /// Changes how much there is to do.
    pub fn resize(&self, total: u64) {
        self.bar.set_length(total);
    }

    /// Moves to `done`, with a note. Off a terminal a line is written at most every ten seconds.
    pub fn set(&self, done: u64, note: &str) {
        self.bar.set_position(done);
        self.bar.set_message(note.to_owned());
        if !self.terminal
            && let Ok(mut last) = self.last_line.try_lock()
            && last.elapsed() > Duration::from_secs(10)
        {
            *last = Instant::now();
            crate::say_err!(
                "{} {done}/{} {note}{}",
                self.what,
                self.bar.length().unwrap_or(0),
                self.left(done)
            );
        }
    }

    /// Writes a line above the bar.
    pub fn line(&self, text: &str) {
        if self.terminal {
            self.bar.println(text);
        } else {
            crate::say_err!("{text}");
        }
    }

    /// Changes the note only.
    pub fn note(&self, note: &str) {
        self.bar.set_message(note.to_owned());
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// ", about 3 min left" at the speed so far.
    pub fn left(&self, done: u64) -> String {
        let total = self.bar.length().unwrap_or(0);
        if done == 0 || done >= total {
            return String::new();
        }
        let left = self.start.elapsed().as_secs_f64() / done as f64 * (total - done) as f64;
        format!(", about {} left", duration(left))
    }
}

/// 75 → "1 min 15 s".
pub fn duration(seconds: f64) -> String {
    let s = seconds.round().max(0.0) as u64;
    match (s / 3600, s % 3600 / 60, s % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}
