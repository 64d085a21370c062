//! The first message, and the words that do not depend on what failed. Our own words in the structure of the paper's
//! messages (RLEF, C.1).

use rlef_problems::Problem;

use crate::config::{EpisodeConfig, FeedbackMode, PromptStyle};

/// What a program must look like; closes the first message and every feedback.
const FORMAT: &str = "Put your program in a code block that opens with ```python and closes with ```. \
                      Use backticks for nothing but the code.";

/// The line that asks for another answer.
const TRY_AGAIN: &str = "Give it another try.";

/// The problem as the policy is told it.
pub(crate) fn first_message(problem: &Problem, config: &EpisodeConfig) -> String {
    match config.prompt {
        PromptStyle::Paper => {
            // The paper ends the description with a full stop; one that has its own gets no second one.
            let statement = problem.statement.trim_end();
            let stop = if statement.ends_with(['.', '!', '?']) {
                ""
            } else {
                "."
            };
            format!(
                "Write a Python program that solves the following competitive programming question: {statement}{stop}\n\n{FORMAT}"
            )
        }
        PromptStyle::Brief => problem.statement.clone(),
    }
}

/// The message after an answer when there is no feedback.
pub(crate) fn try_again(style: PromptStyle) -> String {
    match style {
        PromptStyle::Paper => format!("{TRY_AGAIN} {FORMAT}"),
        PromptStyle::Brief => "try again".to_owned(),
    }
}

/// The message after a response without code.
pub(crate) fn missing_code(config: &EpisodeConfig) -> String {
    match (config.feedback, &config.missing_code_message, config.prompt) {
        // Without feedback even this is not told.
        (FeedbackMode::None, _, style) => try_again(style),
        (_, Some(message), _) => message.clone(),
        (_, None, PromptStyle::Paper) => format!(
            "Your answer holds no code block with a Python program.\n\n{TRY_AGAIN} {FORMAT}"
        ),
        (_, None, PromptStyle::Brief) => "no code".to_owned(),
    }
}
