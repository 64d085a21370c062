//! What the policy is told about a failed answer: the failing public tests, never the ones that passed, never anything
//! about private tests. A pure function of the tests, the report and the settings.

use rlef_judge::{Detail, Report, TestResult, Verdict};
use rlef_problems::TestCase;

use crate::config::{EpisodeConfig, PromptStyle};
use crate::prompt::try_again;
use crate::trace::{clean_trace, last_line, without_addresses};

/// The feedback on `report`, which is about `tests`.
pub(crate) fn feedback(tests: &[TestCase], report: &Report, config: &EpisodeConfig) -> String {
    let shown = match config.max_failures_shown {
        0 => usize::MAX,
        most => most,
    };
    let bullets: Vec<String> = if report.is_compile_error() {
        // The same for every test, so said once.
        report
            .failures()
            .take(1)
            .map(|result| does_not_parse(result, config))
            .collect()
    } else {
        let failures = report.failures().take(shown);
        failures
            .filter_map(|result| Some(failure(tests.get(result.index)?, result, config)))
            .collect()
    };
    match config.prompt {
        PromptStyle::Paper => {
            format!(
                "Your code did not pass these tests:\n\n{}\n\n{}",
                bullets.join("\n"),
                try_again(config.prompt)
            )
        }
        PromptStyle::Brief => bullets.join("\n"),
    }
}

fn does_not_parse(result: &TestResult, config: &EpisodeConfig) -> String {
    match config.prompt {
        PromptStyle::Paper => {
            let trace = tail(&trace(result, config), config.max_trace_chars);
            format!("- Every test failed: the code does not parse.\n{trace}")
        }
        PromptStyle::Brief => format!("raised `{}`", error_line(result, config)),
    }
}

fn failure(test: &TestCase, result: &TestResult, config: &EpisodeConfig) -> String {
    let mut printed = match (&result.returned, &result.detail) {
        (Some(returned), _) => returned.clone(),
        // A function from which nothing came.
        (None, Detail::NoValue(why)) => why.clone(),
        (None, _) => readable(&result.stdout, config),
    };
    let function = result.returned.is_some() || matches!(result.detail, Detail::NoValue(_));
    let (wanted, did) = if function {
        ("result", "function returned")
    } else {
        ("output", "program printed")
    };
    if !function && result.stdout_len > result.stdout.len() {
        let more = result.stdout_len - result.stdout.len();
        printed.push_str(&format!(" [{more} more bytes]"));
    }
    match config.prompt {
        PromptStyle::Paper => {
            let input = head(&test.input, config.max_input_chars);
            let start = format!("- The input `{input}` failed:");
            match result.verdict {
                Verdict::WrongAnswer | Verdict::Accepted => {
                    let expected = head(&test.output, config.max_output_chars);
                    let printed = head(&printed, config.max_output_chars);
                    // Where a validator decides, other outputs may be right as well.
                    let expected_is = match result.detail {
                        Detail::Validator(_) => format!("A right {wanted} is"),
                        _ => format!("The expected {wanted} is"),
                    };
                    format!("{start}\n{expected_is} `{expected}` but the {did} `{printed}`")
                }
                Verdict::RuntimeError | Verdict::CompileError => {
                    format!(
                        "{start}\n{}",
                        tail(&trace(result, config), config.max_trace_chars)
                    )
                }
                Verdict::TimeLimit => format!("{start} the program took too long."),
                Verdict::MemoryLimit => format!("{start} the program ran out of memory."),
                Verdict::OutputLimit => format!("{start} the program printed too much."),
                Verdict::Forbidden => {
                    format!("{start} the program made a system call that is not allowed.")
                }
            }
        }
        PromptStyle::Brief => {
            let input = head(trim(&test.input), config.max_input_chars);
            match result.verdict {
                Verdict::WrongAnswer | Verdict::Accepted => {
                    let expected = head(trim(&test.output), config.max_output_chars);
                    let printed = head(trim(&printed), config.max_output_chars);
                    format!("`{input}` gave `{printed}` not `{expected}`")
                }
                Verdict::RuntimeError | Verdict::CompileError => {
                    format!("`{input}` raised `{}`", error_line(result, config))
                }
                Verdict::TimeLimit => format!("`{input}` took too long"),
                Verdict::MemoryLimit => format!("`{input}` ran out of memory"),
                Verdict::OutputLimit => format!("`{input}` printed too much"),
                Verdict::Forbidden => format!("`{input}` made a forbidden call"),
            }
        }
    }
}

/// The stack trace, or what else is known if the program left none.
fn trace(result: &TestResult, config: &EpisodeConfig) -> String {
    let trace = clean_trace(&readable(&result.stderr, config));
    match &result.detail {
        Detail::Compiler(message) if trace.is_empty() => message.trim_end().to_owned(),
        detail if trace.is_empty() => detail.to_string(),
        // What is on stderr explains nothing if the program was killed; say so where the error's name would stand.
        Detail::Signal(_) => format!("{trace}\n{}", result.detail),
        _ => trace,
    }
}

/// The trace's last line, usually the error's name and message.
fn error_line(result: &TestResult, config: &EpisodeConfig) -> String {
    head(last_line(&trace(result, config)), config.max_trace_chars)
}

/// What a program wrote, as text.
fn readable(bytes: &[u8], config: &EpisodeConfig) -> String {
    let text = String::from_utf8_lossy(bytes);
    if config.mask_addresses {
        without_addresses(&text)
    } else {
        text.into_owned()
    }
}

fn trim(text: &str) -> &str {
    text.trim_end_matches(['\n', '\r'])
}

/// The first `most` characters, and how many were left out; everything if `most` is 0.
fn head(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) if most > 0 => format!(
            "{} [{} more characters]",
            &text[..end],
            text[end..].chars().count()
        ),
        _ => text.to_owned(),
    }
}

/// The last `most` characters, and how many were left out; everything if `most` is 0.
fn tail(text: &str, most: usize) -> String {
    let cut = text.chars().count().saturating_sub(most);
    match text.char_indices().nth(cut) {
        Some((start, _)) if most > 0 && cut > 0 => {
            format!("[{cut} characters cut] {}", &text[start..])
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_characters_and_says_so() {
        assert_eq!(head("äöü", 2), "äö [1 more characters]");
        assert_eq!(head("äöü", 3), "äöü");
        assert_eq!(head("äöü", 0), "äöü");
        assert_eq!(tail("äöü", 2), "[1 characters cut] öü");
        assert_eq!(tail("äöü", 3), "äöü");
        assert_eq!(tail("äöü", 0), "äöü");
        assert_eq!(tail("", 5), "");
    }
}
