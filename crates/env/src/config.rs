//! The settings of an episode. Those marked NF are not given by the paper (RLEF, arXiv 2410.02089): a choice of ours,
//! named here so that it can be changed.

use serde::{Deserialize, Serialize};

use crate::episode::EpisodeError;

/// What the policy is told after a failed answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedbackMode {
    /// The failures of its own program.
    #[default]
    Real,
    /// The failures of a wrong program on another problem (the paper's probe of whether feedback is used, C.2).
    Random,
    /// Only that it should try again; every episode has all its turns (B.5).
    None,
}

/// How the problem and the failures are worded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptStyle {
    /// Structured like the paper's messages (C.1).
    #[default]
    Paper,
    /// As few words as possible, for a tiny model: the statement alone, then one line for each failing test.
    Brief,
}

/// Which of several code blocks in a response is the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeBlock {
    /// The last one.
    #[default]
    Last,
    /// The first one.
    First,
}

/// Settings of an [`Episode`](crate::Episode).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EpisodeConfig {
    /// Answers the policy may give. Default 3, as in the paper.
    pub max_turns: usize,
    /// What it is told between answers. Default: the failures of its own program.
    pub feedback: FeedbackMode,
    /// How it is told. Default: like the paper.
    pub prompt: PromptStyle,
    /// A system message before the problem. NF; default none.
    pub system_prompt: Option<String>,
    /// Reward at the end if every test passes. Default 1.
    pub solved_reward: f32,
    /// Reward at the end if any test fails. Default −1.
    pub failed_reward: f32,
    /// Reward of an answer without valid code that is not the last one. Default −0.2; the paper's single-turn
    /// training has 0 here. (A last answer without valid code has failed.)
    pub invalid_code_reward: f32,
    /// Whether code that does not parse counts as no valid code. NF; default true.
    pub unparsable_is_invalid: bool,
    /// Which of several code blocks counts. NF; default the last.
    pub code_block: CodeBlock,
    /// Tags a code block may have, in any letter case; an empty tag stands for a block without one. NF; default
    /// `python`, `python3`, `py` and none.
    pub code_tags: Vec<String>,
    /// What the policy is told when its response has no code block. NF; default: words that suit the style.
    pub missing_code_message: Option<String>,
    /// Longest input shown in feedback, in characters; 0: no limit. NF; default 4000.
    pub max_input_chars: usize,
    /// Longest output shown in feedback, expected and printed each, in characters; 0: no limit. NF; default 4000.
    pub max_output_chars: usize,
    /// Longest stack trace shown in feedback (its end is kept; of the brief style's one line the start), in
    /// characters; 0: no limit. NF; default 4000.
    pub max_trace_chars: usize,
    /// Whether memory addresses in what a program printed (`<map object at 0x7f12…>`) are shown as `0x0`. They differ
    /// from run to run, so that with them no dialog could be repeated. NF; default true.
    pub mask_addresses: bool,
    /// How many failing tests are shown; 0: all, as in the paper. Default 0.
    pub max_failures_shown: usize,
    /// Whether the private tests are also run on answers that pass the public tests without ending the episode, which
    /// happens without feedback only. The reward does not need it; n@k does. Default true.
    pub private_every_turn: bool,
}

impl Default for EpisodeConfig {
    fn default() -> Self {
        Self {
            max_turns: 3,
            feedback: FeedbackMode::Real,
            prompt: PromptStyle::Paper,
            system_prompt: None,
            solved_reward: 1.0,
            failed_reward: -1.0,
            invalid_code_reward: -0.2,
            unparsable_is_invalid: true,
            code_block: CodeBlock::Last,
            code_tags: ["python", "python3", "py", ""].map(String::from).to_vec(),
            missing_code_message: None,
            max_input_chars: 4000,
            max_output_chars: 4000,
            max_trace_chars: 4000,
            mask_addresses: true,
            max_failures_shown: 0,
            private_every_turn: true,
        }
    }
}

impl EpisodeConfig {
    /// The reward of an episode's last answer.
    pub(crate) fn final_reward(&self, solved: Option<bool>) -> f32 {
        match solved {
            Some(true) => self.solved_reward,
            _ => self.failed_reward,
        }
    }

    /// Checks every setting's range.
    ///
    /// # Errors
    /// [`EpisodeError::Setting`] names the first one that is out of range.
    pub fn check(&self) -> Result<(), EpisodeError> {
        let bad = |setting, what: &str| {
            Err(EpisodeError::Setting {
                setting,
                what: what.to_owned(),
            })
        };
        if self.max_turns == 0 {
            return bad("max_turns", "is 0; an episode needs at least 1 turn");
        }
        for (setting, value) in [
            ("solved_reward", self.solved_reward),
            ("failed_reward", self.failed_reward),
            ("invalid_code_reward", self.invalid_code_reward),
        ] {
            if !value.is_finite() {
                return bad(setting, "must be a finite number");
            }
        }
        if self.code_tags.is_empty() {
            return bad(
                "code_tags",
                "is empty, so no code block could ever count; \"\" stands for a block without a tag",
            );
        }
        if let Some(tag) = self
            .code_tags
            .iter()
            .find(|tag| tag.contains(|c: char| c.is_whitespace() || c == '`'))
        {
            return bad(
                "code_tags",
                &format!("has the tag {tag:?}; a tag is one word without backticks"),
            );
        }
        Ok(())
    }
}
