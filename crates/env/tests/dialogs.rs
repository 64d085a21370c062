//! What the policy is told, word for word.

mod common;

use std::collections::HashSet;
use std::sync::Arc;

use common::{answer, config, judge, problem, squares};
use rlef_env::{Episode, EpisodeConfig, FeedbackMode, PromptStyle, Role, choose_donor};
use rlef_problems::Problem;

const STYLES: [(PromptStyle, &str); 2] =
    [(PromptStyle::Paper, "paper"), (PromptStyle::Brief, "brief")];

/// The feedback on each of `responses`, given as first answers.
fn feedbacks(config: &EpisodeConfig, problem: &Arc<Problem>, responses: &[String]) -> String {
    let (_, judge) = judge();
    let mut all = String::new();
    for response in responses {
        let donor = Some(squares("donor", &[7], &[8], &["double"]));
        let mut episode = Episode::new(Arc::clone(problem), donor, config, 0).unwrap();
        let feedback = episode.step(response, &judge).unwrap().feedback.unwrap();
        let shown = response.lines().nth(1).unwrap_or(response);
        all.push_str(&format!("=== {shown}\n{feedback}\n"));
    }
    all
}

#[test]
fn every_shape_of_feedback() {
    let words = [
        "double",
        "silent",
        "bytes",
        "crash",
        "exit",
        "segfault",
        "cpu",
        "memory",
        "flood",
        "socket",
        "unparsable",
    ];
    let mut responses: Vec<String> = words.map(answer).to_vec();
    responses.push("No code here.".into());
    for (style, name) in STYLES {
        let text = feedbacks(&config(FeedbackMode::Real, style), &problem(), &responses);
        insta::assert_snapshot!(format!("shapes_{name}"), text);
    }
}

#[test]
fn only_failing_tests_are_listed() {
    // 5 is right, 6 wrong, 7 crashes, 8 takes too long, 9 runs out of memory.
    let problem = squares("five", &[5, 6, 7, 8, 9], &[1], &[]);
    for (style, name) in STYLES {
        let config = config(FeedbackMode::Real, style);
        let text = feedbacks(&config, &problem, &[answer("mixed")]);
        assert!(!text.contains("`5"), "{text}");
        insta::assert_snapshot!(format!("mixed_{name}"), text);
        let two = EpisodeConfig {
            max_failures_shown: 2,
            ..config
        };
        let text = feedbacks(&two, &problem, &[answer("mixed")]);
        assert!(text.contains("`7") && !text.contains("`8"), "{text}");
    }
}

#[test]
fn the_first_message() {
    for (style, name) in STYLES {
        let settings = EpisodeConfig {
            system_prompt: Some("You write Python.".into()),
            ..config(FeedbackMode::Real, style)
        };
        let episode = Episode::new(problem(), None, &settings, 0).unwrap();
        let [system, user] = episode.messages() else {
            panic!("{:?}", episode.messages())
        };
        assert_eq!(
            (system.role, system.content.as_str()),
            (Role::System, "You write Python.")
        );
        assert_eq!(user.role, Role::User);
        insta::assert_snapshot!(format!("first_{name}"), user.content);
        let plain = Episode::new(problem(), None, &config(FeedbackMode::Real, style), 0).unwrap();
        assert_eq!(plain.messages(), &episode.messages()[1..]);
    }
}

#[test]
fn a_brief_dialog_word_for_word() {
    let (_, judge) = judge();
    let brief = config(FeedbackMode::Real, PromptStyle::Brief);
    let mut episode = Episode::new(problem(), None, &brief, 0).unwrap();
    for word in ["double", "crash", "square"] {
        episode.step(&answer(word), &judge).unwrap();
    }
    let said: Vec<_> = episode
        .messages()
        .iter()
        .map(|m| (m.role.as_str(), m.content.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            ("user", "Read an integer and print its square"),
            ("assistant", "```python\ndouble\n```"),
            ("user", "`3` gave `6` not `9`\n`4` gave `8` not `16`"),
            ("assistant", "```python\ncrash\n```"),
            (
                "user",
                "`3` raised `ZeroDivisionError: division by zero`\n`4` raised `ZeroDivisionError: division by zero`"
            ),
            ("assistant", "```python\nsquare\n```"),
        ]
    );
}

#[test]
fn without_feedback_nothing_is_told() {
    let responses = [
        answer("double"),
        answer("square"),
        answer("unparsable"),
        "No code.".to_owned(),
    ];
    for (style, line) in [
        (PromptStyle::Paper, "Give it another try."),
        (PromptStyle::Brief, "try again"),
    ] {
        let settings = EpisodeConfig {
            missing_code_message: Some("where is it?".into()),
            ..config(FeedbackMode::None, style)
        };
        let text = feedbacks(&settings, &problem(), &responses);
        let said: HashSet<&str> = text.lines().filter(|l| !l.starts_with("===")).collect();
        assert_eq!(said.len(), 1, "{text}");
        assert!(said.iter().all(|l| l.starts_with(line)), "{text}");
    }
}

#[test]
fn random_feedback_is_the_donors() {
    let brief = config(FeedbackMode::Random, PromptStyle::Brief);
    let told = |donor: Arc<Problem>, response: &str| {
        let (_, judge) = judge();
        let mut episode = Episode::new(problem(), Some(donor), &brief, 0).unwrap();
        episode.step(response, &judge).unwrap().feedback
    };
    let donor = squares("donor", &[7], &[8], &["double"]);
    let expected = Some("`7` gave `14` not `49`".to_owned());
    for word in ["double", "crash", "unparsable"] {
        assert_eq!(
            told(Arc::clone(&donor), &answer(word)),
            expected,
            "its own failure is not told"
        );
    }
    // Whether it has passed is still its own affair.
    assert_eq!(told(Arc::clone(&donor), &answer("square")), None);
    let stub = Some("`7` raised `NotImplementedError`".to_owned());
    let harmless = squares("donor", &[7], &[8], &["square"]);
    assert_eq!(
        told(harmless, &answer("double")),
        stub,
        "nothing of it fails"
    );
    let none = squares("donor", &[7], &[8], &[]);
    assert_eq!(
        told(none, &answer("double")),
        stub,
        "it has no wrong solution"
    );
    assert_eq!(told(donor, "hm"), Some("no code".to_owned()));
}

#[test]
fn random_feedback_follows_the_seed() {
    let donor = squares("donor", &[7], &[8], &["double", "crash", "cpu", "memory"]);
    let told = |seed| {
        let (_, judge) = judge();
        let random = config(FeedbackMode::Random, PromptStyle::Brief);
        let mut episode = Episode::new(problem(), Some(Arc::clone(&donor)), &random, seed).unwrap();
        let mut turn = || {
            episode
                .step(&answer("double"), &judge)
                .unwrap()
                .feedback
                .unwrap()
        };
        (turn(), turn())
    };
    assert_eq!(told(5), told(5));
    let all: HashSet<_> = (0..40).map(told).collect();
    assert!(all.len() > 8, "of 16 pairs only {}", all.len());
}

#[test]
fn donors_are_other_problems_with_wrong_solutions() {
    let split: Vec<_> = (0..20)
        .map(|n| {
            let wrong: &[&str] = if n % 2 == 0 { &["double"] } else { &[] };
            squares(&n.to_string(), &[n], &[1], wrong)
        })
        .collect();
    let chosen: HashSet<String> = (0..400)
        .map(|seed| choose_donor(&split, "4", seed).unwrap().id.clone())
        .collect();
    let expected: HashSet<String> = (0..20)
        .step_by(2)
        .filter(|n| *n != 4)
        .map(|n| n.to_string())
        .collect();
    assert_eq!(chosen, expected);
    assert!(choose_donor(&split[..1], "0", 3).is_none());
    assert_eq!(
        choose_donor(&split[..2], "0", 3).unwrap().id,
        "1",
        "better one without wrong solutions than none"
    );
}

#[test]
fn long_texts_are_cut_if_asked() {
    let settings = EpisodeConfig {
        max_input_chars: 4,
        max_output_chars: 5,
        max_trace_chars: 20,
        ..config(FeedbackMode::Real, PromptStyle::Brief)
    };
    let long = squares("long", &[123_456], &[1], &[]);
    let responses = [answer("double"), answer("crash")];
    insta::assert_snapshot!("cut_brief", feedbacks(&settings, &long, &responses));
    let paper = EpisodeConfig {
        prompt: PromptStyle::Paper,
        ..settings
    };
    insta::assert_snapshot!("cut_paper", feedbacks(&paper, &long, &responses));
}
