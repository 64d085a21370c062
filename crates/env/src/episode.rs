//! The contest episode of RLEF (arXiv 2410.02089, section 2): the problem, up to `max_turns` answers with feedback
//! after each, hidden tests at the end.
//!
//! What this does not do: sample answers, count tokens, or add the reward's penalty for leaving the reference policy,
//! which needs the tokens' probabilities and belongs to the trainer.

use std::sync::Arc;

use rlef_judge::{Fault, Judge, Report, Stop, map_in_order};
use rlef_problems::Problem;
use serde::Serialize;

use crate::choose::choose_wrong;
use crate::config::{EpisodeConfig, FeedbackMode};
use crate::extract::extract_code;
use crate::feedback::feedback;
use crate::message::{Message, Role};
use crate::prompt::{first_message, missing_code, try_again};

/// Stands in for a donor's wrong solution when nothing of it fails (as in the paper, C.2).
const STUB: &str = "raise NotImplementedError()\n";

/// Why an episode could not be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EpisodeError {
    /// A setting is out of range.
    #[error("episode setting `{setting}` {what}")]
    Setting {
        /// The setting's name.
        setting: &'static str,
        /// What is wrong and what is allowed.
        what: String,
    },
    /// The problem lacks tests that an episode needs.
    #[error(
        "problem {problem} has no {kind} tests, so an episode on it has no {lacks}; leave it out of the split"
    )]
    NoTests {
        /// Problem id.
        problem: String,
        /// `public` or `private`.
        kind: &'static str,
        /// What they are needed for.
        lacks: &'static str,
    },
    /// Random feedback needs a donor.
    #[error(
        "random feedback for problem {problem} needs a donor: another problem of the same split that has public tests; {what}"
    )]
    Donor {
        /// Problem id.
        problem: String,
        /// What is wrong with the one given.
        what: &'static str,
    },
}

/// Why a step was not taken. The episode is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The machinery failed: try again, or drop the episode without a reward.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The episode had already ended.
    #[error(
        "the episode on problem {problem} has ended and takes no further answer; undo a turn or start a new one"
    )]
    Ended {
        /// Problem id.
        problem: String,
    },
}

/// What came of one answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The turn, from 0.
    pub turn: usize,
    /// The program found in the response.
    pub code: Option<String>,
    /// Whether there was a program and it parses (the latter unless `unparsable_is_invalid` is off).
    pub valid_code: bool,
    /// What became of the public tests; `None` if there was no program to run.
    pub public: Option<Report>,
    /// The message the policy gets next; `None` at the end.
    pub feedback: Option<String>,
    /// Whether the episode has ended.
    pub done: bool,
    /// What became of the private tests up to the first failure; `None` if they were not run, which they are only
    /// for a program that passes the public tests.
    pub private: Option<Report>,
    /// Whether every public test passed.
    pub public_passed: bool,
    /// Whether every public and private test passed; `None` if it is not known because the private tests were not run
    /// on a program that passes the public ones (see [`EpisodeConfig::private_every_turn`]).
    pub solved: Option<bool>,
    /// The task's part of the reward of this turn.
    pub reward: f32,
}

/// A dialog about a problem. It owns what it needs and can be moved to another thread.
#[derive(Debug, Clone)]
pub struct Episode {
    problem: Arc<Problem>,
    donor: Option<Arc<Problem>>,
    config: Arc<EpisodeConfig>,
    seed: u64,
    messages: Vec<Message>,
    steps: Vec<Step>,
}

impl Episode {
    /// Starts an episode on `problem`. `donor` gives the feedback in [`FeedbackMode::Random`] (see
    /// [`choose_donor`](crate::choose_donor)) and is not looked at in the other modes. `seed` decides which of the
    /// donor's wrong solutions are used.
    ///
    /// # Errors
    /// If a setting is out of range, the problem lacks public or private tests, or a needed donor is missing, is the
    /// problem itself or has no public tests.
    pub fn new(
        problem: Arc<Problem>,
        donor: Option<Arc<Problem>>,
        config: &EpisodeConfig,
        seed: u64,
    ) -> Result<Self, EpisodeError> {
        config.check()?;
        let lacking = |kind, lacks| EpisodeError::NoTests {
            problem: problem.id.clone(),
            kind,
            lacks,
        };
        if problem.public_tests.is_empty() {
            return Err(lacking("public", "feedback"));
        }
        if problem.private_tests.is_empty() {
            return Err(lacking("private", "reward"));
        }
        let donor = match config.feedback {
            FeedbackMode::Random => Some(usable_donor(&problem, donor)?),
            FeedbackMode::Real | FeedbackMode::None => None,
        };
        let system = config
            .system_prompt
            .iter()
            .map(|text| Message::new(Role::System, text));
        let first = Message::new(Role::User, first_message(&problem, config));
        let messages = system.chain([first]).collect();
        Ok(Self {
            problem,
            donor,
            config: Arc::new(config.clone()),
            seed,
            messages,
            steps: Vec::new(),
        })
    }

    /// The problem.
    pub fn problem(&self) -> &Arc<Problem> {
        &self.problem
    }

    /// The settings.
    pub fn config(&self) -> &EpisodeConfig {
        &self.config
    }

    /// The whole dialog. It ends with a user message until the episode has ended, then with the last response.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The turns taken so far.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether the episode has ended.
    pub fn is_done(&self) -> bool {
        self.steps.last().is_some_and(|step| step.done)
    }

    /// The sum of the turns' rewards.
    pub fn total_reward(&self) -> f32 {
        self.steps.iter().map(|step| step.reward).sum()
    }

    /// Takes the policy's answer: runs it, gives the reward of this turn, and either ends the episode or adds the
    /// feedback to the dialog.
    ///
    /// # Errors
    /// [`StepError::Fault`] if the machinery failed; [`StepError::Ended`] if there is nothing to answer. The episode
    /// is then unchanged and the same answer may be given again.
    pub fn step(&mut self, response: &str, judge: &Judge) -> Result<Step, StepError> {
        if self.is_done() {
            return Err(StepError::Ended {
                problem: self.problem.id.clone(),
            });
        }
        let config = &*self.config;
        let turn = self.steps.len();
        let code = extract_code(response, &config.code_tags, config.code_block);
        let public = match &code {
            Some(code) => {
                Some(judge.judge(&self.problem, code, &self.problem.public_tests, Stop::Never)?)
            }
            None => None,
        };
        let valid_code = public
            .as_ref()
            .is_some_and(|r| !(config.unparsable_is_invalid && r.is_compile_error()));
        let public_passed = public.as_ref().is_some_and(Report::all_passed);
        let last_turn = turn + 1 >= config.max_turns;
        let done = last_turn || (public_passed && config.feedback != FeedbackMode::None);
        let private = match &code {
            Some(code) if public_passed && (done || config.private_every_turn) => {
                Some(judge.judge(
                    &self.problem,
                    code,
                    &self.problem.private_tests,
                    Stop::AtFirstFailure,
                )?)
            }
            _ => None,
        };
        let solved = match &private {
            Some(report) => Some(report.all_passed()),
            None if public_passed => None,
            None => Some(false),
        };
        let feedback = if done {
            None
        } else {
            Some(self.feedback(turn, public.as_ref(), judge)?)
        };
        let reward = match (done, solved) {
            (true, _) => config.final_reward(solved),
            (false, _) if !valid_code => config.invalid_code_reward,
            (false, _) => 0.0,
        };
        let step = Step {
            turn,
            code,
            valid_code,
            public,
            feedback,
            done,
            private,
            public_passed,
            solved,
            reward,
        };
        self.messages.push(Message::new(Role::Assistant, response));
        self.messages.extend(
            step.feedback
                .iter()
                .map(|text| Message::new(Role::User, text)),
        );
        self.steps.push(step.clone());
        Ok(step)
    }

    /// Ends the episode although turns are left, because no further answer can be given: the last answer becomes the
    /// final one, with its reward. Returns what then came of it; `None` if there is none yet.
    ///
    /// # Errors
    /// A fault while the private tests were run, where that had been left to the end. The episode is unchanged.
    pub fn end(&mut self, judge: &Judge) -> Result<Option<Step>, Fault> {
        let Some(step) = self.steps.last_mut() else {
            return Ok(None);
        };
        if step.done {
            return Ok(Some(step.clone()));
        }
        if let (Some(code), None) = (&step.code, step.solved) {
            let tests = &self.problem.private_tests;
            let report = judge.judge(&self.problem, code, tests, Stop::AtFirstFailure)?;
            step.solved = Some(report.all_passed());
            step.private = Some(report);
        }
        step.done = true;
        step.reward = self.config.final_reward(step.solved);
        if step.feedback.take().is_some() {
            self.messages.pop();
        }
        Ok(Some(step.clone()))
    }

    /// Goes back to before the last answer and returns what came of it; `None` at the start.
    pub fn undo(&mut self) -> Option<Step> {
        let step = self.steps.pop()?;
        let added = 1 + usize::from(step.feedback.is_some());
        self.messages
            .truncate(self.messages.len().saturating_sub(added));
        Some(step)
    }

    fn feedback(
        &self,
        turn: usize,
        public: Option<&Report>,
        judge: &Judge,
    ) -> Result<String, Fault> {
        let config = &*self.config;
        let Some(public) = public else {
            return Ok(missing_code(config));
        };
        match &self.donor {
            _ if config.feedback == FeedbackMode::None => Ok(try_again(config.prompt)),
            None => Ok(feedback(&self.problem.public_tests, public, config)),
            Some(donor) => {
                let report = donor_failures(donor, self.seed, turn as u64, judge)?;
                Ok(feedback(&donor.public_tests, &report, config))
            }
        }
    }
}

fn usable_donor(
    problem: &Problem,
    donor: Option<Arc<Problem>>,
) -> Result<Arc<Problem>, EpisodeError> {
    let bad = |what| EpisodeError::Donor {
        problem: problem.id.clone(),
        what,
    };
    let donor = donor.ok_or_else(|| bad("none was given"))?;
    if donor.id == problem.id {
        return Err(bad("the problem itself was given"));
    }
    if donor.public_tests.is_empty() {
        return Err(bad("the one given has no public tests"));
    }
    Ok(donor)
}

/// Runs one of the donor's wrong solutions on its public tests; the stub if it fails none.
fn donor_failures(donor: &Problem, seed: u64, turn: u64, judge: &Judge) -> Result<Report, Fault> {
    if let Some(wrong) = choose_wrong(donor, seed, turn) {
        let report = judge.judge(donor, &wrong.code, &donor.public_tests, Stop::Never)?;
        if !report.all_passed() {
            return Ok(report);
        }
    }
    judge.judge(donor, STUB, &donor.public_tests, Stop::Never)
}

/// Takes a step in many episodes on up to `workers` threads; the results come in the order of the turns given.
pub fn step_many(
    turns: Vec<(&mut Episode, &str)>,
    judge: &Judge,
    workers: usize,
) -> Vec<Result<Step, StepError>> {
    map_in_order(turns, workers, |(episode, response)| {
        episode.step(response, judge)
    })
}
