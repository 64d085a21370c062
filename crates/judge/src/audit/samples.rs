//! Samples in statements, where they are marked in one of the usual ways: headings "Sample Input 1" and "Sample Output
//! 1", or "Input" and "Output" after a heading "Examples", with the text after each heading, fenced or not.

/// An input with its output, as a statement shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) input: String,
    pub(super) output: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heading {
    /// "Examples": what follows are samples.
    Samples,
    /// Of a sample.
    Input,
    /// Of a sample.
    Output,
    /// Ends a sample.
    Other,
}

/// The samples of a statement; none where there are none or they are not marked in a known way.
pub(super) fn samples(statement: &str) -> Vec<Sample> {
    let mut found = Vec::new();
    let mut input: Option<String> = None;
    let mut among_samples = false;
    let mut lines = statement.lines().peekable();
    while let Some(line) = lines.next() {
        match heading(line, among_samples) {
            Some(Heading::Samples) => among_samples = true,
            Some(Heading::Other) => (among_samples, input) = (false, None),
            Some(Heading::Input) => input = Some(text(&mut lines)),
            Some(Heading::Output) => {
                let output = text(&mut lines);
                if let Some(input) = input.take() {
                    found.push(Sample { input, output });
                }
            }
            None => {}
        }
    }
    found
}

/// The text below a heading: what stands in a fence, else all up to the next heading.
fn text(lines: &mut std::iter::Peekable<std::str::Lines>) -> String {
    while lines.next_if(|line| line.trim().is_empty()).is_some() {}
    let mut text = String::new();
    if let Some(opening) = lines.next_if(|line| is_fence(line)) {
        let fence = opening.trim_start();
        let marks: String = fence
            .chars()
            .take_while(|&c| fence.starts_with(c))
            .collect();
        for line in lines.by_ref() {
            if line.trim_end() == marks {
                break;
            }
            text += line;
            text.push('\n');
        }
        return text;
    }
    while let Some(line) = lines.next_if(|line| heading(line, true).is_none()) {
        text += line;
        text.push('\n');
    }
    text.trim_end().to_owned()
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// What a line is the heading of. "Input" alone is one of the samples only among samples, elsewhere it describes.
fn heading(line: &str, among_samples: bool) -> Option<Heading> {
    // A heading is short and has no more than the usual marks around it.
    let bare = line
        .chars()
        .all(|c| c.is_alphanumeric() || " \t#*_:-.".contains(c));
    let words: Vec<String> = line
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_number = |word: &&str| word.chars().all(|c| c.is_ascii_digit());
    if words.len() > 1 && words.last().is_some_and(is_number) {
        words.pop();
    }
    match words.as_slice() {
        _ if !bare => {}
        ["sample" | "samples" | "example" | "examples"]
        | [
            "sample" | "example",
            "test" | "tests" | "case" | "cases" | "data",
        ] => return Some(Heading::Samples),
        ["sample" | "example", "input"] | ["input", "sample" | "example"] => {
            return Some(Heading::Input);
        }
        ["sample" | "example", "output"] | ["output", "sample" | "example"] => {
            return Some(Heading::Output);
        }
        ["input"] if among_samples => return Some(Heading::Input),
        ["output"] if among_samples => return Some(Heading::Output),
        ["note" | "notes" | "explanation" | "hint" | "constraints" | "source" | "scoring"] => {
            return Some(Heading::Other);
        }
        _ => {}
    }
    is_markdown_heading(line).then_some(Heading::Other)
}

/// As in `## Scoring`. A row of a map such as `# # .` is none.
fn is_markdown_heading(line: &str) -> bool {
    let title = line.trim_start_matches('#');
    title.len() < line.len() && title.starts_with(' ') && title.contains(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(input: &str, output: &str) -> Sample {
        Sample {
            input: input.into(),
            output: output.into(),
        }
    }

    #[test]
    fn headings_of_samples_are_known_in_their_usual_forms() {
        let package = "Add.\n\n## Input\n\nTwo numbers.\n\n## Sample Input 1\n\n```\n1 2\n```\n\n## Sample Output 1\n\n\
                       ```\n3\n```\n\n## Sample Input 2\n\n````text\n# A ```\n````\n\n## Sample Output 2\n\n````\n5\n````";
        assert_eq!(
            samples(package),
            [sample("1 2\n", "3\n"), sample("# A ```\n", "5\n")]
        );
        let codeforces = "Add.\n\nInput\n\nTwo numbers.\n\nOutput\n\nTheir sum.\n\nExamples\n\nInput\n\n1 2\n\n\nOutput\n\n3\n\n\
                          Input\n\n2 3\n# .\n\nOutput\n\n5\n\nNote\n\nOutput is a number.\n";
        assert_eq!(
            samples(codeforces),
            [sample("1 2", "3"), sample("2 3\n# .", "5")]
        );
        let bold = "**Example Input:**\n1\n**Example Output:**\n2\n# Scoring\nOutput\n7\n";
        assert_eq!(samples(bold), [sample("1", "2")]);
    }

    #[test]
    fn a_statement_that_only_describes_has_none() {
        for text in [
            "",
            "Input\n\nA number.\n\nOutput\n\nAnother.",
            "For example, the input 3 gives the output 4.",
            "Example",
            "Sample Input\n```\n1",
            "Sample Output\n1",
        ] {
            assert_eq!(samples(text), [], "{text}");
        }
    }
}
