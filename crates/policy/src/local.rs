//! The local model as a policy.

use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rlef_env::Message;
use rlef_model::{
    Ask as TokenAsk, ChatMessage, ChatTokenizer, Frame, Generator, Llama, ModelError, Sampling,
};

use crate::{Answer, Ask, Policy, PolicyError, Session};

/// A model that samples here, on its own device.
pub struct LocalPolicy {
    model: Llama,
    frame: Arc<Frame>,
    tokenizer: Arc<ChatTokenizer>,
    sampling: Sampling,
    version: u64,
}

impl LocalPolicy {
    /// `model` and `frame` on a device without autodiff; `version` counts the updates its weights have seen.
    pub fn new(
        model: Llama,
        frame: Arc<Frame>,
        tokenizer: Arc<ChatTokenizer>,
        sampling: Sampling,
        version: u64,
    ) -> Self {
        Self {
            model,
            frame,
            tokenizer,
            sampling,
            version,
        }
    }

    /// The same model with other sampling.
    pub fn with_sampling(&self, sampling: Sampling) -> Self {
        Self {
            model: self.model.clone(),
            frame: self.frame.clone(),
            tokenizer: self.tokenizer.clone(),
            sampling,
            version: self.version,
        }
    }

    /// The tokeniser.
    pub fn tokenizer(&self) -> &Arc<ChatTokenizer> {
        &self.tokenizer
    }
}

impl Policy for LocalPolicy {
    fn open(&self) -> Box<dyn Session + '_> {
        Box::new(LocalSession {
            policy: self,
            generator: None,
            rows: vec![],
        })
    }
}

pub(crate) struct LocalSession<'p> {
    policy: &'p LocalPolicy,
    generator: Option<Generator<'p>>,
    rows: Vec<Row>,
}

#[derive(Default)]
pub(crate) struct Row {
    pub(crate) dialog: usize,
    /// The template's pieces so far, as recorded in tokens.
    pub(crate) pieces: Vec<String>,
    /// The token that ended the last answer, if one did.
    pub(crate) end: Option<u32>,
    /// Tokens of the record that the model has yet to read before the next turn's prompt.
    pub(crate) backlog: Vec<u32>,
}

impl<'p> LocalSession<'p> {
    /// Takes up one dialog where its record ends.
    pub(crate) fn resume(policy: &'p LocalPolicy, row: Row) -> Self {
        Self {
            policy,
            generator: Some(Generator::new(&policy.model, &policy.frame, 1)),
            rows: vec![row],
        }
    }
}

/// A dialog as templates see it.
pub(crate) fn chat(messages: &[Message]) -> Vec<ChatMessage> {
    messages
        .iter()
        .map(|m| ChatMessage {
            role: m.role.as_str().to_owned(),
            content: m.content.clone(),
        })
        .collect()
}

impl Row {
    /// The tokens that the next turn appends. What was recorded before must still be what the template says.
    pub(crate) fn prompt(
        &mut self,
        messages: &[Message],
        tokenizer: &ChatTokenizer,
    ) -> Result<Vec<u32>, ModelError> {
        let pieces = tokenizer.segments(&chat(messages))?;
        let n = self.pieces.len();
        if pieces.len() != n + 1 || pieces[..n] != self.pieces[..] {
            let turn = pieces
                .iter()
                .zip(&self.pieces)
                .take_while(|(a, b)| a == b)
                .count();
            return Err(ModelError::Rewritten {
                turn,
                why: "changes the prompt",
            });
        }
        let mut new = pieces[n].as_str();
        // The end token is in the record already: the policy sampled it.
        if let Some(end) = self.end.map(|id| tokenizer.piece(id))
            && let Some(rest) = new.strip_prefix(end.as_str())
        {
            new = rest;
        }
        let tokens = tokenizer.encode(new)?;
        self.pieces = pieces;
        Ok(tokens)
    }
}

impl Session for LocalSession<'_> {
    fn answer(&mut self, asks: &[Ask]) -> Result<Vec<Answer>, PolicyError> {
        let policy = self.policy;
        let tokenizer = &*policy.tokenizer;
        let generator = match &mut self.generator {
            Some(g) => {
                let mut keep = Vec::new();
                for ask in asks {
                    let at = self.rows.iter().position(|r| r.dialog == ask.dialog);
                    keep.push(at.ok_or_else(|| PolicyError::NoAnswer {
                        problem: ask.problem.id.clone(),
                        why: "the dialog was not opened in this session's first turn".into(),
                    })?);
                }
                if keep.len() != self.rows.len() || keep.iter().enumerate().any(|(i, &k)| i != k) {
                    g.keep(&keep);
                    let mut old: Vec<Option<Row>> = std::mem::take(&mut self.rows)
                        .into_iter()
                        .map(Some)
                        .collect();
                    self.rows = keep.iter().filter_map(|&k| old[k].take()).collect();
                }
                g
            }
            none => {
                self.rows = asks
                    .iter()
                    .map(|a| Row {
                        dialog: a.dialog,
                        ..Row::default()
                    })
                    .collect();
                none.insert(Generator::new(&policy.model, &policy.frame, asks.len()))
            }
        };
        let mut prompts = Vec::new();
        let mut appended = Vec::new();
        for (row, ask) in self.rows.iter_mut().zip(asks) {
            let prompt = row.prompt(ask.messages, tokenizer)?;
            let mut append = std::mem::take(&mut row.backlog);
            append.extend(&prompt);
            prompts.push(prompt);
            appended.push(append);
        }
        let token_asks = appended
            .iter()
            .zip(asks)
            .map(|(append, ask)| TokenAsk {
                append,
                rng: ChaCha8Rng::from_seed(ask.seed),
            })
            .collect();
        let sampled = generator.turn(token_asks, &policy.sampling, tokenizer.eos_ids())?;
        let mut answers = Vec::new();
        for ((row, prompt), s) in self.rows.iter_mut().zip(prompts).zip(sampled) {
            row.end = if s.finished {
                s.tokens.last().copied()
            } else {
                None
            };
            let body = &s.tokens[..s.tokens.len() - usize::from(s.finished)];
            answers.push(Answer {
                text: tokenizer.decode(body)?,
                prompt,
                tokens: s
                    .tokens
                    .iter()
                    .copied()
                    .zip(s.logprobs.iter().copied())
                    .collect(),
                version: policy.version,
                finished: s.finished,
            });
        }
        Ok(answers)
    }
}
