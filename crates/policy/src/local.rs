//! The local model as a policy.

use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rlef_env::Message;
use rlef_model::{
    Ask as TokenAsk, ChatMessage, ChatTokenizer, Frame, Generator, Llama, ModelError, Sampled,
    Sampling,
};

use crate::{Answer, Ask, Full, Policy, PolicyError, Reply, Session};

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
    fn answer(&mut self, asks: &[Ask]) -> Result<Vec<Reply>, PolicyError> {
        let policy = self.policy;
        let tokenizer = &*policy.tokenizer;
        self.follow(asks)?;
        let (Some(generator), rows) = (&mut self.generator, &mut self.rows) else {
            return Ok(vec![]);
        };
        let mut prompts = Vec::new();
        let mut appended = Vec::new();
        let mut full = Vec::new();
        let positions = policy.frame.config.max_position_embeddings;
        for (i, (row, ask)) in rows.iter_mut().zip(asks).enumerate() {
            let prompt = row.prompt(ask.messages, tokenizer)?;
            let mut append = std::mem::take(&mut row.backlog);
            append.extend(&prompt);
            let needed = generator.needed(i, append.len(), &policy.sampling);
            full.push((needed > positions).then_some(Full { needed, positions }));
            prompts.push(prompt);
            appended.push(append);
        }
        let open: Vec<usize> = (0..full.len()).filter(|&i| full[i].is_none()).collect();
        if open.len() < full.len() {
            generator.keep(&open);
        }
        let token_asks = open
            .iter()
            .map(|&i| TokenAsk {
                append: &appended[i],
                rng: ChaCha8Rng::from_seed(asks[i].seed),
            })
            .collect();
        let sampled = generator.turn(token_asks, &policy.sampling, tokenizer.eos_ids())?;
        let mut sampled = sampled.into_iter();
        let mut replies = Vec::new();
        for ((row, prompt), full) in rows.iter_mut().zip(prompts).zip(&full) {
            if let Some(full) = full {
                replies.push(Reply::Full(*full));
            } else if let Some(s) = sampled.next() {
                replies.push(Reply::Answer(policy.record(row, prompt, &s)?));
            }
        }
        let mut open = full.iter().map(Option::is_none);
        rows.retain(|_| open.next().unwrap_or(false));
        Ok(replies)
    }
}

impl LocalSession<'_> {
    /// Opens the dialogs, or keeps those that are asked for and lets the others go.
    fn follow(&mut self, asks: &[Ask]) -> Result<(), PolicyError> {
        let policy = self.policy;
        let Some(generator) = &mut self.generator else {
            self.rows = asks
                .iter()
                .map(|a| Row {
                    dialog: a.dialog,
                    ..Row::default()
                })
                .collect();
            self.generator = Some(Generator::new(&policy.model, &policy.frame, asks.len()));
            return Ok(());
        };
        let mut keep = Vec::new();
        for ask in asks {
            let at = self.rows.iter().position(|r| r.dialog == ask.dialog);
            keep.push(at.ok_or_else(|| PolicyError::NoAnswer {
                problem: ask.problem.id.clone(),
                why: "the dialog is not open in this session".into(),
            })?);
        }
        if keep.len() != self.rows.len() || keep.iter().enumerate().any(|(i, &k)| i != k) {
            generator.keep(&keep);
            let mut old: Vec<Option<Row>> = std::mem::take(&mut self.rows)
                .into_iter()
                .map(Some)
                .collect();
            self.rows = keep.iter().filter_map(|&k| old[k].take()).collect();
        }
        Ok(())
    }
}

impl LocalPolicy {
    /// The answer that `row` sampled after `prompt`.
    fn record(&self, row: &mut Row, prompt: Vec<u32>, s: &Sampled) -> Result<Answer, ModelError> {
        row.end = s.tokens.last().copied().filter(|_| s.finished);
        let body = &s.tokens[..s.tokens.len() - usize::from(s.finished)];
        Ok(Answer {
            text: self.tokenizer.decode(body)?,
            prompt,
            tokens: s
                .tokens
                .iter()
                .copied()
                .zip(s.logprobs.iter().copied())
                .collect(),
            version: self.version,
            finished: s.finished,
        })
    }

    /// Whether the first answer to `messages` can be given: how much room it needs if it cannot.
    pub fn full(
        messages: &[Message],
        tokenizer: &ChatTokenizer,
        positions: usize,
        max_new_tokens: usize,
    ) -> Result<Option<Full>, ModelError> {
        let prompt = Row::default().prompt(messages, tokenizer)?;
        let needed = prompt.len() + max_new_tokens;
        Ok((needed > positions).then_some(Full { needed, positions }))
    }
}
