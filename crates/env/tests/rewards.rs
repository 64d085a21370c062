//! Every case of the reward, when an episode ends, and what is judged when.

mod common;

use common::{answer, config, judge, problem, squares};
use rlef_env::{Episode, EpisodeConfig, EpisodeError, FeedbackMode, PromptStyle, Role, StepError};

/// Plays `responses` and gives the rewards, whether each turn's code was valid, and whether the episode has ended.
fn play(config: &EpisodeConfig, responses: &[&str]) -> (Vec<f32>, Vec<bool>, bool) {
    let (_, judge) = judge();
    let donor = Some(squares("donor", &[6], &[7], &["double"]));
    let mut episode = Episode::new(problem(), donor, config, 1).unwrap();
    let steps: Vec<_> = responses
        .iter()
        .map(|response| episode.step(response, &judge).unwrap())
        .collect();
    let total: f32 = steps.iter().map(|s| s.reward).sum();
    assert_eq!(episode.total_reward(), total);
    assert_eq!(steps.as_slice(), episode.steps());
    (
        steps.iter().map(|s| s.reward).collect(),
        steps.iter().map(|s| s.valid_code).collect(),
        episode.is_done(),
    )
}

#[test]
fn every_case_of_the_reward() {
    let right = &*answer("square");
    let lucky = &*answer("square_small");
    let wrong = &*answer("double");
    let crash = &*answer("crash");
    let broken = &*answer("unparsable");
    let chat = "I cannot.";
    // With feedback: rewards and validity of each turn.
    let cases: &[(&[&str], &[f32], &[bool])] = &[
        // Solved at once, in the middle, at the end.
        (&[right], &[1.0], &[true]),
        (&[wrong, right], &[0.0, 1.0], &[true, true]),
        (
            &[wrong, wrong, right],
            &[0.0, 0.0, 1.0],
            &[true, true, true],
        ),
        // Public tests pass, private ones do not: over, and failed.
        (&[lucky], &[-1.0], &[true]),
        (&[wrong, lucky], &[0.0, -1.0], &[true, true]),
        // Never right.
        (
            &[wrong, crash, wrong],
            &[0.0, 0.0, -1.0],
            &[true, true, true],
        ),
        // No valid code before the last answer.
        (&[chat, right], &[-0.2, 1.0], &[false, true]),
        (
            &[broken, chat, right],
            &[-0.2, -0.2, 1.0],
            &[false, false, true],
        ),
        (
            &[chat, wrong, lucky],
            &[-0.2, 0.0, -1.0],
            &[false, true, true],
        ),
        // No valid code in the last answer: failed, not −0.2.
        (
            &[wrong, wrong, chat],
            &[0.0, 0.0, -1.0],
            &[true, true, false],
        ),
        (
            &[wrong, wrong, broken],
            &[0.0, 0.0, -1.0],
            &[true, true, false],
        ),
        (
            &[chat, chat, chat],
            &[-0.2, -0.2, -1.0],
            &[false, false, false],
        ),
    ];
    for mode in [FeedbackMode::Real, FeedbackMode::Random] {
        for style in [PromptStyle::Paper, PromptStyle::Brief] {
            for (responses, rewards, valid) in cases {
                let (got, got_valid, done) = play(&config(mode, style), responses);
                assert_eq!(got, *rewards, "{mode:?} {style:?} {responses:?}");
                assert_eq!(got_valid, *valid, "{mode:?} {style:?} {responses:?}");
                assert!(done, "{mode:?} {style:?} {responses:?}");
            }
        }
    }
    // Without feedback every episode has all its turns, and only the last answer counts.
    let cases: &[(&[&str], &[f32])] = &[
        (&[right, right, right], &[0.0, 0.0, 1.0]),
        (&[right, right, wrong], &[0.0, 0.0, -1.0]),
        (&[wrong, lucky, right], &[0.0, 0.0, 1.0]),
        (&[chat, broken, lucky], &[-0.2, -0.2, -1.0]),
        (&[right, chat, chat], &[0.0, -0.2, -1.0]),
    ];
    for (responses, rewards) in cases {
        let (got, _, done) = play(&config(FeedbackMode::None, PromptStyle::Brief), responses);
        assert_eq!(got, *rewards, "{responses:?}");
        assert!(done);
    }
}

#[test]
fn rewards_are_settings() {
    let config = EpisodeConfig {
        solved_reward: 2.0,
        failed_reward: -3.0,
        invalid_code_reward: 0.0,
        max_turns: 2,
        ..EpisodeConfig::default()
    };
    assert_eq!(play(&config, &["no", &answer("square")]).0, [0.0, 2.0]);
    assert_eq!(play(&config, &["no", "no"]).0, [0.0, -3.0]);
    let lenient = EpisodeConfig {
        unparsable_is_invalid: false,
        ..EpisodeConfig::default()
    };
    let (rewards, valid, _) = play(&lenient, &[&answer("unparsable"), "no"]);
    assert_eq!((rewards[0], valid[0]), (0.0, true));
    assert_eq!((rewards[1], valid[1]), (-0.2, false));
}

#[test]
fn a_single_turn_ends_at_once() {
    let config = EpisodeConfig {
        max_turns: 1,
        ..EpisodeConfig::default()
    };
    assert_eq!(play(&config, &[&answer("double")]).0, [-1.0]);
    assert_eq!(play(&config, &["no"]).0, [-1.0]);
    assert_eq!(play(&config, &[&answer("square")]).0, [1.0]);
}

#[test]
fn private_tests_run_only_on_what_passes_the_public_ones() {
    let (_, judge) = judge();
    let mut episode = Episode::new(problem(), None, &EpisodeConfig::default(), 0).unwrap();
    let step = episode.step(&answer("double"), &judge).unwrap();
    assert!(step.private.is_none());
    assert_eq!((step.public_passed, step.solved), (false, Some(false)));
    assert_eq!(
        step.public.unwrap().results.len(),
        2,
        "feedback needs every public test"
    );
    let step = episode.step(&answer("square_small"), &judge).unwrap();
    assert_eq!((step.public_passed, step.solved), (true, Some(false)));
    let private = step.private.unwrap();
    assert_eq!(private.total, 2);
    assert!(!private.all_passed());
    let step = Episode::new(problem(), None, &EpisodeConfig::default(), 0)
        .unwrap()
        .step("no", &judge)
        .unwrap();
    assert!(step.public.is_none() && step.code.is_none());
    assert_eq!((step.public_passed, step.solved), (false, Some(false)));
}

#[test]
fn without_feedback_each_turn_is_judged_in_full_unless_switched_off() {
    let (_, judge) = judge();
    let mut settings = config(FeedbackMode::None, PromptStyle::Brief);
    let mut episode = Episode::new(problem(), None, &settings, 0).unwrap();
    let step = episode.step(&answer("square"), &judge).unwrap();
    assert_eq!(
        (step.done, step.solved, step.reward),
        (false, Some(true), 0.0)
    );
    settings.private_every_turn = false;
    let mut episode = Episode::new(problem(), None, &settings, 0).unwrap();
    let step = episode.step(&answer("square"), &judge).unwrap();
    assert_eq!((step.public_passed, step.solved), (true, None));
    episode.step(&answer("square"), &judge).unwrap();
    let step = episode.step(&answer("square"), &judge).unwrap();
    assert_eq!(
        (step.done, step.solved, step.reward),
        (true, Some(true), 1.0)
    );
}

#[test]
fn an_episode_that_is_ended_early_counts_its_last_answer() {
    let (fake, judge) = judge();
    let real = config(FeedbackMode::Real, PromptStyle::Brief);
    let mut episode = Episode::new(problem(), None, &real, 0).unwrap();
    assert_eq!(episode.end(&judge).unwrap(), None);
    // No code: −0.2 on the way, failed as the last word.
    for (response, on_the_way) in [("no", -0.2), (&*answer("double"), 0.0)] {
        let mut episode = Episode::new(problem(), None, &real, 0).unwrap();
        let step = episode.step(response, &judge).unwrap();
        assert_eq!((step.done, step.reward), (false, on_the_way));
        let step = episode.end(&judge).unwrap().unwrap();
        assert_eq!((step.done, step.reward, step.feedback), (true, -1.0, None));
        assert!(episode.is_done());
        assert_eq!(episode.total_reward(), -1.0);
        assert_eq!(episode.messages().last().unwrap().content, response);
        assert_eq!(
            episode.end(&judge).unwrap(),
            episode.steps().last().cloned()
        );
        episode.undo();
        assert_eq!(episode.messages().len(), 1);
    }
    // Private tests that were left to the end are run then; a fault changes nothing.
    let mut settings = config(FeedbackMode::None, PromptStyle::Brief);
    settings.private_every_turn = false;
    for (program, reward) in [("square", 1.0), ("square_small", -1.0)] {
        let mut episode = Episode::new(problem(), None, &settings, 0).unwrap();
        let step = episode.step(&answer(program), &judge).unwrap();
        assert_eq!((step.done, step.solved), (false, None));
        let before = episode.messages().to_vec();
        fake.faults.store(1, std::sync::atomic::Ordering::SeqCst);
        assert!(episode.end(&judge).is_err());
        assert_eq!(
            (episode.is_done(), episode.messages()),
            (false, &before[..])
        );
        let step = episode.end(&judge).unwrap().unwrap();
        assert_eq!(step.solved, Some(reward > 0.0));
        assert_eq!((step.done, step.reward), (true, reward));
    }
}

#[test]
fn a_fault_leaves_the_episode_as_it_was() {
    let (fake, judge) = judge();
    let donor = Some(squares("donor", &[6], &[7], &["double"]));
    let random = config(FeedbackMode::Random, PromptStyle::Paper);
    let mut episode = Episode::new(problem(), donor, &random, 0).unwrap();
    let before = episode.messages().to_vec();
    fake.faults.store(1, std::sync::atomic::Ordering::SeqCst);
    let result = episode.step(&answer("double"), &judge);
    assert!(matches!(result, Err(StepError::Fault(_))), "{result:?}");
    assert_eq!(episode.messages(), before);
    assert!(episode.steps().is_empty());
    let step = episode.step(&answer("double"), &judge).unwrap();
    assert_eq!((step.turn, step.reward), (0, 0.0));
}

#[test]
fn an_ended_episode_takes_no_answer_until_a_turn_is_undone() {
    let (_, judge) = judge();
    let mut episode = Episode::new(problem(), None, &EpisodeConfig::default(), 0).unwrap();
    episode.step(&answer("double"), &judge).unwrap();
    let dialog = episode.messages().to_vec();
    episode.step(&answer("square"), &judge).unwrap();
    assert_eq!(episode.messages().last().unwrap().role, Role::Assistant);
    let result = episode.step(&answer("square"), &judge);
    assert!(matches!(result, Err(StepError::Ended { .. })), "{result:?}");

    assert_eq!(episode.undo().unwrap().turn, 1);
    assert_eq!(episode.messages(), dialog);
    assert!(!episode.is_done());
    let step = episode.step("no", &judge).unwrap();
    assert_eq!((step.turn, step.done), (1, false));
    episode.undo();
    episode.undo();
    assert_eq!(episode.messages().len(), 1);
    assert!(episode.undo().is_none());
    assert_eq!(episode.messages().len(), 1);
}

#[test]
fn what_cannot_be_played_is_refused() {
    let refuse = |problem, donor, config: &EpisodeConfig| {
        Episode::new(problem, donor, config, 0).unwrap_err()
    };
    let usual = EpisodeConfig::default();
    let random = config(FeedbackMode::Random, PromptStyle::Paper);
    for lacking in [squares("a", &[], &[1], &[]), squares("a", &[1], &[], &[])] {
        assert!(matches!(
            refuse(lacking, None, &usual),
            EpisodeError::NoTests { .. }
        ));
    }
    for donor in [
        None,
        Some(problem()),
        Some(squares("b", &[], &[1], &["double"])),
    ] {
        assert!(matches!(
            refuse(problem(), donor, &random),
            EpisodeError::Donor { .. }
        ));
    }
    for bad in [
        EpisodeConfig {
            max_turns: 0,
            ..EpisodeConfig::default()
        },
        EpisodeConfig {
            solved_reward: f32::NAN,
            ..EpisodeConfig::default()
        },
        EpisodeConfig {
            code_tags: vec![],
            ..EpisodeConfig::default()
        },
        EpisodeConfig {
            code_tags: vec!["a b".into()],
            ..EpisodeConfig::default()
        },
    ] {
        assert!(matches!(
            refuse(problem(), None, &bad),
            EpisodeError::Setting { .. }
        ));
    }
}

#[test]
fn settings_read_from_files_are_checked_for_unknown_names() {
    let read = |text| serde_json::from_str::<EpisodeConfig>(text);
    let config = read(r#"{"feedback": "none", "prompt": "brief", "code_block": "first"}"#).unwrap();
    assert_eq!(config.max_turns, 3);
    assert_eq!(config.feedback, FeedbackMode::None);
    assert!(
        read(r#"{"max_turn": 3}"#)
            .unwrap_err()
            .to_string()
            .contains("max_turns")
    );
}

#[test]
fn many_episodes_at_once_give_what_one_after_the_other_gives() {
    let (_, judge) = judge();
    let words = [
        "square",
        "double",
        "crash",
        "unparsable",
        "square_small",
        "cpu",
    ];
    let responses: Vec<String> = (0..36).map(|n| answer(words[n % 6])).collect();
    let start = || -> Vec<Episode> {
        let new = |n| Episode::new(problem(), None, &EpisodeConfig::default(), n).unwrap();
        (0..36).map(new).collect()
    };
    let mut together = start();
    let turns = together
        .iter_mut()
        .zip(&responses)
        .map(|(e, r)| (e, r.as_str()));
    let steps = rlef_env::step_many(turns.collect(), &judge, 4);
    for ((step, mut alone), response) in steps.into_iter().zip(start()).zip(&responses) {
        assert_eq!(step.unwrap(), alone.step(response, &judge).unwrap());
    }
    assert!(together.iter().all(|e| e.steps().len() == 1));
}
