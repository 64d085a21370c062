//! Text to tokens and back, and the chat template.
//!
//! A dialog's tokens only grow: what a new turn adds is the text that the template adds at the end, and a template
//! that would change what is already there is an error, not a silent re-tokenisation.
//!
//! One thing such templates do is left out on purpose: some take earlier answers apart when they render them again, as
//! Qwen3's drops the thoughts of all turns but the last. What a model has said is in its record as it said it, since
//! those are the tokens whose log-probabilities were recorded and which training changes; so later turns are sampled with
//! earlier thoughts in view ([`ChatTokenizer::rewrites`] tells whether a template is of this kind). A template is not
//! told the date either (`strftime_now`): a dialog must not depend on the day.

use std::collections::BTreeMap;
use std::path::Path;

use minijinja::{Environment, context};
use serde::{Deserialize, Serialize};
use tokenizers::Tokenizer;

use crate::ModelError;

/// One message of a dialog, as templates see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// The text.
    pub content: String,
}

/// A tokeniser with its chat template.
#[derive(Debug, Clone)]
pub struct ChatTokenizer {
    tokenizer: Tokenizer,
    template: String,
    /// `bos_token`, `eos_token` and others, as templates see them.
    special: BTreeMap<&'static str, String>,
    eos_ids: Vec<u32>,
    /// Added tokens as text, longest first.
    markers: Vec<String>,
}

impl ChatTokenizer {
    /// Reads `tokenizer.json` and `tokenizer_config.json` in `dir`. `eos_ids` end an answer; the tokeniser's own
    /// end token is added to them.
    pub fn load(dir: &Path, eos_ids: &[u32]) -> Result<Self, ModelError> {
        let path = dir.join("tokenizer.json");
        let fail = |why: String| ModelError::Tokenizer {
            path: path.clone(),
            why,
        };
        let bytes = std::fs::read(&path).map_err(|e| ModelError::io(&path, e))?;
        let tokenizer = parse(&bytes).map_err(&fail)?;
        let config_path = dir.join("tokenizer_config.json");
        let text =
            std::fs::read_to_string(&config_path).map_err(|e| ModelError::io(&config_path, e))?;
        let config: serde_json::Value =
            serde_json::from_str(&text).map_err(|e| ModelError::Config {
                path: config_path.clone(),
                why: e.to_string(),
            })?;
        Self::new(tokenizer, &config, eos_ids).map_err(|why| ModelError::Config {
            path: config_path,
            why,
        })
    }

    /// From the parts of a model folder.
    pub fn new(
        tokenizer: Tokenizer,
        config: &serde_json::Value,
        eos_ids: &[u32],
    ) -> Result<Self, String> {
        let special = |key: &str| match &config[key] {
            serde_json::Value::String(s) => s.clone(),
            other => other["content"].as_str().unwrap_or_default().to_owned(),
        };
        let template = match &config["chat_template"] {
            serde_json::Value::String(s) => s.clone(),
            // Some files hold several named templates.
            serde_json::Value::Array(all) => all
                .iter()
                .find(|t| t["name"] == "default")
                .and_then(|t| t["template"].as_str())
                .map(str::to_owned)
                .ok_or("chat_template has no entry named \"default\"")?,
            _ => return Err("no chat_template; use an instruct model, or add a template".into()),
        };
        let special: BTreeMap<&str, String> = ["bos_token", "eos_token", "unk_token", "pad_token"]
            .map(|key| (key, special(key)))
            .into();
        let mut ends: Vec<u32> = vec![];
        let own = tokenizer.token_to_id(&special["eos_token"]);
        for id in eos_ids.iter().copied().chain(own) {
            if !ends.contains(&id) {
                ends.push(id);
            }
        }
        let eos_ids = ends;
        if eos_ids.is_empty() {
            return Err("no token ends an answer: eos_token is missing".into());
        }
        let mut markers: Vec<String> = tokenizer
            .get_added_tokens_decoder()
            .values()
            .map(|t| t.content.clone())
            .collect();
        markers.sort_by_key(|m| (std::cmp::Reverse(m.len()), m.clone()));
        let new = Self {
            tokenizer,
            template,
            special,
            eos_ids,
            markers,
        };
        new.check_template()?;
        Ok(new)
    }

    /// The tokens that end an answer.
    pub fn eos_ids(&self) -> &[u32] {
        &self.eos_ids
    }

    /// Entries of the vocabulary, added tokens included.
    pub fn vocab_size(&self) -> usize {
        self.tokenizer.get_vocab_size(true)
    }

    /// The largest token number.
    pub fn largest_id(&self) -> u32 {
        let vocab = self.tokenizer.get_vocab(true);
        vocab.values().copied().max().unwrap_or(0)
    }

    /// Tokens of `text`, in which special tokens written out are taken as such; nothing is added around it.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, ModelError> {
        let encoding = self
            .tokenizer
            .encode_fast(text, false)
            .map_err(|e| ModelError::Template(e.to_string()))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// `text` with a zero-width space put into everything that reads like one of the tokeniser's own markers, so
    /// that what a program printed (or a statement says) can never be taken for the start or end of a turn.
    pub fn defuse(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for marker in &self.markers {
            if out.contains(marker.as_str()) {
                let first = marker.chars().next().map_or(0, char::len_utf8);
                let broken = format!("{}\u{200b}{}", &marker[..first], &marker[first..]);
                out = out.replace(marker.as_str(), &broken);
            }
        }
        out
    }

    /// Text of `tokens`; special tokens are left out.
    pub fn decode(&self, tokens: &[u32]) -> Result<String, ModelError> {
        self.tokenizer
            .decode(tokens, true)
            .map_err(|e| ModelError::Template(e.to_string()))
    }

    /// Text of one token, special or not, for people.
    pub fn piece(&self, token: u32) -> String {
        self.tokenizer
            .decode(&[token], false)
            .unwrap_or_else(|_| format!("<{token}>"))
    }

    /// Renders the template, ready for the assistant to answer when `generate`.
    pub fn render(&self, messages: &[ChatMessage], generate: bool) -> Result<String, ModelError> {
        let mut env = Environment::new();
        env.set_fuel(Some(FUEL));
        env.set_trim_blocks(true);
        env.set_lstrip_blocks(true);
        env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        env.add_function(
            "raise_exception",
            |why: String| -> Result<String, minijinja::Error> {
                Err(minijinja::Error::new(
                    minijinja::ErrorKind::InvalidOperation,
                    why,
                ))
            },
        );
        env.add_template("chat", &self.template)
            .map_err(|e| ModelError::Template(format!("{e:#}")))?;
        let template = env
            .get_template("chat")
            .map_err(|e| ModelError::Template(format!("{e:#}")))?;
        let values = context! {
            messages => messages,
            add_generation_prompt => generate,
            tools => (),
            documents => (),
            ..minijinja::Value::from_serialize(&self.special)
        };
        let mut text = Bounded(vec![]);
        template
            .render_captured_to(values, &mut text)
            .map_err(|e| ModelError::Template(format!("{e:#}")))?;
        String::from_utf8(text.0).map_err(|e| ModelError::Template(e.to_string()))
    }

    /// What the template would make of an earlier answer that holds a thought, if it would not leave it as it is. In a
    /// record it is left as it is all the same.
    ///
    /// # Errors
    /// A template that cannot be rendered.
    pub fn rewrites(&self) -> Result<Option<String>, ModelError> {
        let message = |role: &str, content: &str| ChatMessage {
            role: role.into(),
            content: content.into(),
        };
        let answer = "<think>\nrlef-probe-thought\n</think>\n\nrlef-probe-answer";
        let dialog = |answer: &str| {
            [
                message("user", "first"),
                message("assistant", answer),
                message("user", "second"),
            ]
        };
        let whole = self.render(&dialog(answer), true)?;
        let pieces = self.segments(&dialog(answer))?;
        let (Some(before), Some(after)) = (pieces.first(), pieces.last()) else {
            return Ok(None);
        };
        let made = whole
            .strip_prefix(before.as_str())
            .and_then(|rest| rest.strip_suffix(after.as_str()));
        Ok(match made {
            Some(same) if same == answer => None,
            Some(other) => Some(other.to_owned()),
            None => Some(whole),
        })
    }

    /// Checks that the template can carry a dialog of several turns: what is said must be in it.
    fn check_template(&self) -> Result<(), String> {
        let said = ["rlef-probe-first", "rlef-probe-second"];
        let message = |role: &str, content: &str| ChatMessage {
            role: role.into(),
            content: content.into(),
        };
        let dialog = [
            message("user", said[0]),
            message("assistant", "an answer"),
            message("user", said[1]),
        ];
        let pieces = self
            .segments(&dialog)
            .map_err(|e| format!("chat_template: {e}"))?;
        match pieces.iter().zip(said).position(|(p, s)| !p.contains(s)) {
            None => Ok(()),
            Some(i) => Err(format!(
                "chat_template leaves out message {} of a dialog; the model could not know what it is asked",
                2 * i + 1
            )),
        }
    }

    /// The text of a dialog around its answers, ready for the next answer: the piece before the first answer, the
    /// pieces between answers, the piece after the last one (n + 1 pieces for n answers).
    ///
    /// Found by rendering the dialog with a placeholder for each answer, so that a template that trims answers does
    /// not disturb the record.
    ///
    /// # Errors
    /// A template that cannot be rendered, or that drops or repeats an earlier answer.
    pub fn segments(&self, messages: &[ChatMessage]) -> Result<Vec<String>, ModelError> {
        let mut answers = 0;
        let marked: Vec<ChatMessage> = messages
            .iter()
            .map(|m| {
                if m.role != "assistant" {
                    let content = self.defuse(&m.content);
                    return ChatMessage {
                        role: m.role.clone(),
                        content,
                    };
                }
                answers += 1;
                ChatMessage {
                    role: m.role.clone(),
                    content: placeholder(answers - 1),
                }
            })
            .collect();
        let whole = self.render(&marked, true)?;
        let mut rest = whole.as_str();
        let mut pieces = Vec::new();
        for i in 0..answers {
            let (piece, after) = rest
                .split_once(&placeholder(i))
                .ok_or(ModelError::Rewritten {
                    turn: i,
                    why: "drops an answer",
                })?;
            pieces.push(piece.to_owned());
            rest = after;
        }
        pieces.push(rest.to_owned());
        Ok(pieces)
    }
}

/// Reads a `tokenizer.json`. What it says of truncation and padding is for batches of single texts and does not concern
/// dialogs, which are neither cut nor filled.
pub(crate) fn parse(bytes: &[u8]) -> Result<Tokenizer, String> {
    let mut file: serde_json::Value = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    if let Some(file) = file.as_object_mut() {
        file.insert("truncation".into(), serde_json::Value::Null);
        file.insert("padding".into(), serde_json::Value::Null);
    }
    let bytes = serde_json::to_vec(&file).map_err(|e| e.to_string())?;
    // Some parts of the library panic over settings that they do not expect, when they are read or first used.
    quietly(|| {
        let tokenizer = Tokenizer::from_bytes(&bytes).map_err(|e| e.to_string())?;
        tokenizer
            .encode_fast("Read n. Print 1 2 3.\n", false)
            .map_err(|e| e.to_string())?;
        Ok(tokenizer)
    })
    .unwrap_or_else(|why| Err(format!("cannot be used: {why}")))
}

thread_local! {
    /// Whether a panic of this thread is caught and told as an error.
    static CAUGHT: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// What `work` gives, or what it panicked with, which is not printed.
fn quietly<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !CAUGHT.get() {
                before(panic);
            }
        }));
    });
    CAUGHT.set(true);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    CAUGHT.set(false);
    result.map_err(|panic| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => match panic.downcast::<&str>() {
            Ok(text) => text.to_string(),
            Err(_) => "the library gave up".into(),
        },
    })
}

/// Steps that a template may take: a thousand times what a long dialog needs, and over within a second or so.
const FUEL: u64 = 5_000_000;

/// Most that a template may write, in bytes.
const LONGEST: usize = 64 << 20;

/// Takes text up to [`LONGEST`]: templates come with models, and one that never ends is no reason to fill the memory.
struct Bounded(Vec<u8>);

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST {
            let why = format!("the template writes more than {} MiB", LONGEST >> 20);
            return Err(std::io::Error::other(why));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Stands for answer `i` while a template is rendered. U+2063 (invisible separator) is no white space, so no
/// template trims it, and no prompt contains this text by chance.
fn placeholder(i: usize) -> String {
    format!("\u{2063}rlef-answer-{i}\u{2063}")
}
