//! Episodes with the real sandbox: what the feedback looks like when Python itself speaks, and every micro problem of
//! a sample with the programs that come with it.

use std::sync::{Arc, OnceLock};

use rlef_env::{Episode, EpisodeConfig, FeedbackMode, PromptStyle, choose_donor};
use rlef_judge::{Judge, JudgeConfig};
use rlef_problems::{Checker, Problem, TestCase};
use rlef_sandbox::{Config, Sandbox};

fn judge() -> &'static Judge {
    static JUDGE: OnceLock<Judge> = OnceLock::new();
    JUDGE.get_or_init(|| {
        let sandbox = Sandbox::new(Config::default()).expect("these tests need a sandbox");
        Judge::new(sandbox, JudgeConfig::default()).unwrap()
    })
}

fn config(prompt: PromptStyle, feedback: FeedbackMode) -> EpisodeConfig {
    EpisodeConfig {
        prompt,
        feedback,
        ..EpisodeConfig::default()
    }
}

fn answer(code: &str) -> String {
    format!("```python\n{}\n```", code.trim_end())
}

fn squares() -> Arc<Problem> {
    let test = |n: u32| TestCase {
        name: String::new(),
        input: format!("{n}\n"),
        output: format!("{}\n", n * n),
    };
    Arc::new(Problem {
        id: "squares".into(),
        name: String::new(),
        statement: "Read an integer and print its square.".into(),
        time_limit_s: 0.5,
        memory_limit_mb: 128,
        checker: Checker::Lines,
        function: None,
        public_tests: vec![test(3)],
        private_tests: vec![test(4)],
        generated_tests: Vec::new(),
        solutions: Vec::new(),
        wrong_solutions: Vec::new(),
        meta: serde_json::Map::new(),
    })
}

fn told(code: &str, prompt: PromptStyle) -> String {
    let config = config(prompt, FeedbackMode::Real);
    let mut episode = Episode::new(squares(), None, &config, 0).unwrap();
    let step = episode.step(&answer(code), judge()).unwrap();
    step.feedback.unwrap()
}

#[test]
fn python_speaks_in_the_feedback() {
    let brief = |code| told(code, PromptStyle::Brief);
    assert_eq!(brief("print(int(input()) * 2)"), "`3` gave `6` not `9`");
    assert_eq!(
        brief("print(int(input()) // 0)"),
        "`3` raised `ZeroDivisionError: integer division or modulo by zero`"
    );
    assert_eq!(
        brief("print(nothing)"),
        "`3` raised `NameError: name 'nothing' is not defined`"
    );
    assert_eq!(brief("while True: pass"), "`3` took too long");
    assert_eq!(brief("x = 'x' * 10**9 * 10"), "`3` ran out of memory");
    assert_eq!(
        brief("while True: print('x' * 10**5)"),
        "`3` printed too much"
    );
    assert_eq!(brief("raise SystemExit(3)"), "`3` raised `exit status 3`");
    assert!(
        brief("print(").starts_with("raised `SyntaxError: "),
        "{}",
        brief("print(")
    );

    let paper = told(
        "import json\n\ndef read():\n    return json.loads('[')\n\nread()\n",
        PromptStyle::Paper,
    );
    assert!(
        paper.contains("  File \"main.py\", line 6, in <module>\n"),
        "{paper}"
    );
    assert!(
        paper.contains("  File \"main.py\", line 4, in read\n"),
        "{paper}"
    );
    assert!(paper.contains("  File \"decoder.py\", line "), "{paper}");
    assert!(
        !paper.contains("/usr") && !paper.contains("boot"),
        "no path of this machine, no frame of ours: {paper}"
    );
    let paper = told("def f(:\n    pass\n", PromptStyle::Paper);
    assert!(
        paper.contains("  File \"main.py\", line 1\n    def f(:\n"),
        "{paper}"
    );
}

#[test]
fn the_programs_of_micro_problems_do_what_they_should() {
    let set = rlef_problems::micro::generate(0).unwrap();
    let split: Vec<Arc<Problem>> = set.test.into_iter().map(Arc::new).collect();
    for problem in split.iter().take(12) {
        for prompt in [PromptStyle::Brief, PromptStyle::Paper] {
            let mut episode = Episode::new(
                Arc::clone(problem),
                None,
                &config(prompt, FeedbackMode::Real),
                0,
            )
            .unwrap();
            for wrong in problem.wrong_solutions.iter().take(2) {
                let step = episode.step(&answer(&wrong.code), judge()).unwrap();
                assert!(
                    step.valid_code && !step.public_passed && step.feedback.is_some(),
                    "{}: {}",
                    problem.id,
                    wrong.code
                );
                assert_eq!(step.reward, 0.0);
            }
            let step = episode
                .step(&answer(&problem.solutions[0].code), judge())
                .unwrap();
            assert_eq!(
                (step.done, step.solved, step.reward),
                (true, Some(true), 1.0),
                "{}",
                problem.id
            );
        }
        let donor = choose_donor(&split, &problem.id, 1);
        let random = config(PromptStyle::Brief, FeedbackMode::Random);
        let mut episode = Episode::new(Arc::clone(problem), donor.clone(), &random, 1).unwrap();
        let step = episode.step(&answer("print(1 // 0)"), judge()).unwrap();
        let feedback = step.feedback.unwrap();
        let inputs = &donor.unwrap().public_tests;
        assert!(
            inputs.iter().any(|t| feedback.contains(t.input.trim_end())),
            "{feedback}"
        );
        assert!(
            !feedback.contains("ZeroDivisionError"),
            "its own failure is told: {feedback}"
        );
    }
}
