//! One dialog with the local model, for a person who looks on: answers may also be somebody else's, and turns can be
//! taken back.
//!
//! The record of tokens is the truth. The model's cache follows it while turns are only added; after anything else it
//! is made anew from the record, never from text.

use rlef_env::Message;
use rlef_problems::Problem;

use crate::local::{LocalSession, Row};
use crate::{Answer, Ask, LocalPolicy, Policy, PolicyError, Reply, Session};

/// An answered turn, as recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct DialogTurn {
    /// Tokens that the turn's prompt appended to the record.
    pub prompt: Vec<u32>,
    /// The answer's tokens.
    pub answer: Vec<u32>,
    /// Their log-probabilities when they were sampled; `None` if the model did not sample them.
    pub logprobs: Option<Vec<f32>>,
    /// Whether the answer ended by itself; otherwise it was cut at the length limit.
    pub finished: bool,
    /// The template's pieces up to this turn.
    pieces: Vec<String>,
    /// The token that ended the answer, if it is in the record.
    end: Option<u32>,
}

/// A dialog that grows by turns and can be taken back.
pub struct Dialog<'p> {
    policy: &'p LocalPolicy,
    turns: Vec<DialogTurn>,
    /// Has read all of the record.
    session: Option<Box<dyn Session + 'p>>,
}

impl<'p> Dialog<'p> {
    /// An empty dialog.
    pub fn new(policy: &'p LocalPolicy) -> Self {
        Self {
            policy,
            turns: vec![],
            session: None,
        }
    }

    /// The turns so far.
    pub fn turns(&self) -> &[DialogTurn] {
        &self.turns
    }

    /// The whole record.
    pub fn tokens(&self) -> Vec<u32> {
        let turns = self.turns.iter();
        turns
            .flat_map(|t| [&t.prompt[..], &t.answer])
            .flatten()
            .copied()
            .collect()
    }

    /// Lets the model answer; `messages` is the whole dialog and ends with a user message.
    ///
    /// # Errors
    /// The model cannot answer, or its template rewrites what is in the record. The dialog is as it was before.
    pub fn answer(
        &mut self,
        problem: &Problem,
        messages: &[Message],
        seed: [u8; 32],
    ) -> Result<Answer, PolicyError> {
        // Before the session is touched, so that a changed past leaves it usable.
        let mut row = self.row();
        row.prompt(messages, self.policy.tokenizer())?;
        let pieces = row.pieces;
        let mut session = match self.session.take() {
            Some(session) => session,
            None if self.turns.is_empty() => self.policy.open(),
            None => {
                let backlog = self.tokens();
                let row = Row {
                    backlog,
                    ..self.row()
                };
                Box::new(LocalSession::resume(self.policy, row))
            }
        };
        let asks = [Ask {
            dialog: 0,
            problem,
            messages,
            turn: self.turns.len(),
            seed,
        }];
        let answer = match session.answer(&asks)?.pop() {
            Some(Reply::Answer(answer)) => answer,
            Some(Reply::Full(full)) => {
                return Err(PolicyError::Full {
                    problem: problem.id.clone(),
                    full,
                });
            }
            None => {
                return Err(PolicyError::NoAnswer {
                    problem: problem.id.clone(),
                    why: "the session gave none".into(),
                });
            }
        };
        let (tokens, logprobs): (Vec<u32>, Vec<f32>) = answer.tokens.iter().copied().unzip();
        self.turns.push(DialogTurn {
            prompt: answer.prompt.clone(),
            end: tokens.last().copied().filter(|_| answer.finished),
            answer: tokens,
            logprobs: Some(logprobs),
            finished: answer.finished,
            pieces,
        });
        self.session = Some(session);
        Ok(answer)
    }

    /// Records somebody else's answer. It is tokenised once, here; the template ends it with the next turn's prompt.
    ///
    /// # Errors
    /// As for [`Dialog::answer`].
    pub fn take(&mut self, messages: &[Message], text: &str) -> Result<(), PolicyError> {
        let tokenizer = self.policy.tokenizer();
        let mut row = self.row();
        let prompt = row.prompt(messages, tokenizer)?;
        let answer = tokenizer.encode(&tokenizer.defuse(text))?;
        self.turns.push(DialogTurn {
            prompt,
            answer,
            logprobs: None,
            finished: true,
            pieces: row.pieces,
            end: None,
        });
        self.session = None;
        Ok(())
    }

    /// Takes the last turn back.
    pub fn undo(&mut self) -> Option<DialogTurn> {
        self.session = None;
        self.turns.pop()
    }

    /// What the template has said so far, without the tokens.
    fn row(&self) -> Row {
        match self.turns.last() {
            Some(turn) => Row {
                pieces: turn.pieces.clone(),
                end: turn.end,
                ..Row::default()
            },
            None => Row::default(),
        }
    }
}

#[cfg(test)]
mod tests;
