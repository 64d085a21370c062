//! An executor that plays programs named by one word, and a problem for it.
#![allow(dead_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rlef_env::{EpisodeConfig, FeedbackMode, PromptStyle};
use rlef_judge::{BoxError, Executor, Judge, JudgeConfig};
use rlef_problems::{Checker, Problem, Solution, TestCase};
use rlef_sandbox::{Ending, Limits, Outcome};

/// Plays the programs; see [`act`].
#[derive(Default)]
pub struct Fake {
    /// So many tries end in a fault first.
    pub faults: AtomicUsize,
}

fn outcome(ending: Ending, stdout: impl Into<Vec<u8>>, stderr: &str) -> Outcome {
    Outcome {
        ending,
        stdout: stdout.into(),
        stderr: stderr.into(),
        cpu: Duration::from_millis(5),
        wall: Duration::from_millis(5),
        peak_memory_bytes: None,
    }
}

/// What the one-word program `word` does with `input`.
fn act(word: &str, input: &str) -> Outcome {
    let number: Option<i64> = input.trim().parse().ok();
    let trace = |error: &str| {
        format!(
            "Traceback (most recent call last):\n  File \"/box/main.py\", line 1, in <module>\n    \
             print(int(input()) / 0)\n{error}\n"
        )
    };
    match word {
        "square" => outcome(
            Ending::Exited(0),
            format!("{}\n", number.unwrap_or(0).pow(2)),
            "",
        ),
        // Right on the public tests, wrong on private ones.
        "square_small" => outcome(
            Ending::Exited(0),
            format!("{}\n", number.filter(|n| *n < 10).unwrap_or(0).pow(2)),
            "",
        ),
        "double" => outcome(
            Ending::Exited(0),
            format!("{}\n", number.unwrap_or(0) * 2),
            "",
        ),
        "silent" => outcome(Ending::Exited(0), "", ""),
        "bytes" => outcome(Ending::Exited(0), [0xff, b'4', b'\n'], ""),
        "crash" => outcome(
            Ending::Exited(1),
            "",
            &trace("ZeroDivisionError: division by zero"),
        ),
        "exit" => outcome(Ending::Exited(3), "", ""),
        "segfault" => outcome(Ending::Signalled(11), "", ""),
        "cpu" => outcome(Ending::CpuLimit, "", ""),
        "memory" => outcome(Ending::MemoryLimit, "", ""),
        "flood" => outcome(Ending::OutputLimit, "1\n1\n", ""),
        "socket" => outcome(Ending::Forbidden(Some(41)), "", ""),
        "unparsable" => outcome(
            Ending::Exited(1),
            "",
            "  File \"/box/main.py\", line 1\n    print(\n         ^\nSyntaxError: '(' was never closed\n",
        ),
        "raise NotImplementedError()" => {
            outcome(Ending::Exited(1), "", &trace("NotImplementedError"))
        }
        // Another ending for each test.
        "mixed" => act(
            ["square", "double", "crash", "cpu", "memory"]
                [number.unwrap_or(0).unsigned_abs() as usize % 5],
            input,
        ),
        other => outcome(
            Ending::Exited(1),
            "",
            &trace(&format!("NameError: name '{other}' is not defined")),
        ),
    }
}

impl Fake {
    fn fails(&self) -> Result<(), BoxError> {
        let left = self
            .faults
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        left.map_or(Ok(()), |_| Err("the sandbox is out of order".into()))
    }
}

impl Executor for Fake {
    fn run(&self, source: &str, stdin: &[u8], _: &Limits) -> Result<Outcome, BoxError> {
        self.fails()?;
        Ok(act(source.trim(), &String::from_utf8_lossy(stdin)))
    }

    fn syntax_check(&self, source: &str, _: &Limits) -> Result<Option<String>, BoxError> {
        self.fails()?;
        Ok((source.trim() == "unparsable").then(|| "SyntaxError: '(' was never closed".to_owned()))
    }
}

/// A judge over [`Fake`], without retries.
pub fn judge() -> (Arc<Fake>, Judge) {
    let fake = Arc::new(Fake::default());
    let config = JudgeConfig {
        retries: 0,
        ..JudgeConfig::default()
    };
    let judge = Judge::new(Arc::clone(&fake), config).unwrap();
    (fake, judge)
}

/// A problem whose answers are the squares of the inputs.
pub fn squares(id: &str, public: &[i64], private: &[i64], wrong: &[&str]) -> Arc<Problem> {
    let test = |n: &i64| TestCase {
        name: n.to_string(),
        input: format!("{n}\n"),
        output: format!("{}\n", n * n),
    };
    let solution = |code: &&str| Solution {
        file: String::new(),
        language: "python".into(),
        class: None,
        expected: "NOT_AC".into(),
        code: format!("{code}\n"),
    };
    Arc::new(Problem {
        id: id.into(),
        name: String::new(),
        statement: "Read an integer and print its square".into(),
        time_limit_s: 1.0,
        memory_limit_mb: 64,
        checker: Checker::Lines,
        function: None,
        public_tests: public.iter().map(test).collect(),
        private_tests: private.iter().map(test).collect(),
        generated_tests: Vec::new(),
        solutions: Vec::new(),
        wrong_solutions: wrong.iter().map(solution).collect(),
        meta: serde_json::Map::new(),
    })
}

/// The problem most tests use.
pub fn problem() -> Arc<Problem> {
    squares("squares", &[3, 4], &[5, 12], &[])
}

/// A response with a one-word program.
pub fn answer(word: &str) -> String {
    format!("```python\n{word}\n```")
}

/// Settings.
pub fn config(feedback: FeedbackMode, prompt: PromptStyle) -> EpisodeConfig {
    EpisodeConfig {
        feedback,
        prompt,
        ..EpisodeConfig::default()
    }
}
