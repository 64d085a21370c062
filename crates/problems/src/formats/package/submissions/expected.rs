//! What a submission must get: by its folder, by `submissions.yaml`, or by a mark in its source.

use crate::formats::package::config::words;
use serde_json::{Map, Value};

/// Verdicts of the formats.
const ALL: [&str; 7] = ["AC", "WA", "TLE", "RTE", "MLE", "OLE", "CE"];

/// What verdicts tests may get, and which ones one of them must get.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Expectation {
    /// None: any.
    permitted: Option<Vec<String>>,
    /// None: nothing must be met.
    required: Option<Vec<String>>,
}

impl Expectation {
    fn new(permitted: &[&str], required: &[&str]) -> Self {
        let list = |words: &[&str]| {
            words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>()
        };
        Self {
            permitted: Some(list(permitted)),
            required: (!required.is_empty()).then(|| list(required)),
        }
    }

    /// What all the entries say whose patterns fit the file; the error is a field and what is wrong with it.
    pub(super) fn of_rules(
        rules: &Map<String, Value>,
        file: &str,
    ) -> Result<Self, (String, String)> {
        let mut all = Self::default();
        for (pattern, rule) in rules {
            if !fits(pattern.trim_matches('/'), file) {
                continue;
            }
            let list = |name: &str| match rule.get(name) {
                None | Some(Value::Null) => Ok(None),
                value => {
                    let verdicts: Vec<String> = words(value)
                        .iter()
                        .map(|word| code(word).to_owned())
                        .collect();
                    match verdicts
                        .iter()
                        .find(|verdict| !ALL.contains(&verdict.as_str()))
                    {
                        Some(other) => Err((
                            format!("{pattern}.{name}"),
                            format!("`{other}` is no verdict; there are {}", ALL.join(", ")),
                        )),
                        None => Ok(Some(verdicts)),
                    }
                }
            };
            all = all.and(Self {
                permitted: list("permitted")?,
                required: list("required")?,
            });
        }
        Ok(all)
    }

    /// Both expectations at once. Of two demands the first is kept.
    pub(super) fn and(self, other: Self) -> Self {
        let permitted = match (self.permitted, other.permitted) {
            (Some(mine), Some(theirs)) => {
                let both: Vec<String> = mine
                    .iter()
                    .filter(|verdict| theirs.contains(verdict))
                    .cloned()
                    .collect();
                // An entry that says otherwise than the folder means it.
                Some(if both.is_empty() { mine } else { both })
            }
            (mine, theirs) => mine.or(theirs),
        };
        Self {
            permitted,
            required: self.required.or(other.required),
        }
    }

    /// The verdict on the whole, as [`crate::VERDICTS`] has it; `None` where right and wrong are both possible.
    pub(super) fn verdict(&self) -> Option<&str> {
        let permitted: Vec<&str> = match &self.permitted {
            Some(verdicts) => verdicts.iter().map(String::as_str).collect(),
            None => ALL.to_vec(),
        };
        let failures: Vec<&str> = permitted
            .iter()
            .copied()
            .filter(|verdict| *verdict != "AC")
            .collect();
        if failures.is_empty() {
            return (!permitted.is_empty()).then_some("AC");
        }
        let must_fail = !permitted.contains(&"AC")
            || self
                .required
                .as_ref()
                .is_some_and(|required| !required.iter().any(|verdict| verdict == "AC"));
        if !must_fail {
            return None;
        }
        match failures.as_slice() {
            [one] => Some(one),
            _ => Some("NOT_AC"),
        }
    }
}

/// What the names of folders mean, of both versions and of the tools that add some.
pub(super) fn of_folder(folder: &str) -> Expectation {
    match folder {
        "accepted" | "slow_accepted" => Expectation::new(&["AC"], &[]),
        "wrong_answer" => Expectation::new(&["AC", "WA"], &["WA"]),
        "time_limit_exceeded" => Expectation::new(&["AC", "TLE"], &["TLE"]),
        "run_time_error" | "runtime_error" => Expectation::new(&["AC", "RTE"], &["RTE"]),
        "memory_limit_exceeded" => Expectation::new(&["AC", "MLE"], &["MLE"]),
        "output_limit_exceeded" => Expectation::new(&["AC", "OLE"], &["OLE"]),
        "compiler_error" | "compile_error" => Expectation::new(&["CE"], &["CE"]),
        "brute_force" => Expectation::new(&["AC", "RTE", "TLE"], &["RTE", "TLE"]),
        // Less than full marks is a failure here.
        "rejected" | "partially_accepted" => {
            Expectation::new(&ALL, &["WA", "TLE", "RTE", "MLE", "OLE", "CE"])
        }
        _ => Expectation::default(),
    }
}

/// `@EXPECTED_RESULTS@: TIMELIMIT, WRONG-ANSWER` in a source, as DOMjudge reads it.
pub(super) fn of_annotation(text: &str) -> Option<Expectation> {
    let (_, after) = text
        .split_once("@EXPECTED_RESULTS@:")
        .or_else(|| text.split_once("@EXPECTED_RESULTS@"))?;
    let line = after.lines().next()?;
    let verdicts: Vec<String> = line
        .split(',')
        .map(|word| {
            code(
                word.trim()
                    .trim_end_matches("*/")
                    .trim_end_matches("-->")
                    .trim(),
            )
            .to_owned()
        })
        .filter(|verdict| ALL.contains(&verdict.as_str()))
        .collect();
    // One of the verdicts is that of the whole.
    let required =
        Some(verdicts.clone()).filter(|verdicts| !verdicts.iter().any(|verdict| verdict == "AC"));
    (!verdicts.is_empty()).then_some(Expectation {
        permitted: Some(verdicts),
        required,
    })
}

/// The code of a verdict, from the words that tools have for it.
fn code(word: &str) -> &str {
    match word {
        "accepted" | "CORRECT" | "ACCEPTED" => "AC",
        "wrong_answer" | "WRONG-ANSWER" | "WRONG_ANSWER" | "NO-OUTPUT" => "WA",
        "time_limit_exceeded" | "TIMELIMIT" | "TIME_LIMIT_EXCEEDED" => "TLE",
        "run_time_error" | "RUN-ERROR" | "RUN_TIME_ERROR" | "RUNTIME_ERROR" => "RTE",
        "memory_limit_exceeded" | "MEMORY-LIMIT" | "MEMORY_LIMIT_EXCEEDED" => "MLE",
        "output_limit_exceeded" | "OUTPUT-LIMIT" | "OUTPUT_LIMIT" => "OLE",
        "compiler_error" | "COMPILER-ERROR" | "COMPILER_ERROR" => "CE",
        other => other,
    }
}

/// Whether a pattern with `*`, `?` and `**` fits the path or a folder that it is in.
fn fits(pattern: &str, path: &str) -> bool {
    let prefixes = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
    prefixes
        .chain([path])
        .any(|prefix| matches(pattern.as_bytes(), prefix.as_bytes()))
}

/// By going back to the last star only, so that no pattern takes long.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(&byte) = text.get(place) {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(b'?') if byte != b'/' => (at, place) = (at + 1, place + 1),
            Some(&wanted) if wanted == byte => (at, place) = (at + 1, place + 1),
            _ => match star {
                Some((star_at, from))
                    if text.get(from) != Some(&b'/') || is_double(pattern, star_at) =>
                {
                    star = Some((star_at, from + 1));
                    (at, place) = (star_at + 1, from + 1);
                }
                _ => return false,
            },
        }
    }
    pattern
        .get(at..)
        .unwrap_or_default()
        .iter()
        .all(|&byte| byte == b'*')
}

/// Whether the star there is one of two, which stand for folders as well.
fn is_double(pattern: &[u8], star: usize) -> bool {
    let is_star = |at: Option<usize>| at.and_then(|at| pattern.get(at)) == Some(&b'*');
    is_star(star.checked_add(1)) || is_star(star.checked_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn folders_say_what_must_happen() {
        for (folder, verdict) in [
            ("accepted", Some("AC")),
            ("wrong_answer", Some("WA")),
            ("time_limit_exceeded", Some("TLE")),
            ("run_time_error", Some("RTE")),
            ("partially_accepted", Some("NOT_AC")),
            ("rejected", Some("NOT_AC")),
            ("brute_force", Some("NOT_AC")),
            ("mixed", None),
        ] {
            assert_eq!(of_folder(folder).verdict(), verdict, "{folder}");
        }
    }

    #[test]
    fn rules_narrow_what_folders_say() {
        let rules = json!({
            "rejected/slow*": {"permitted": ["AC", "TLE"], "required": ["TLE"]},
            "rejected/*.cpp": {"permitted": ["WA", "TLE", "AC"]},
            "other": {"permitted": ["AC"]},
            "open/x.py": {"permitted": "AC WA"},
            "accepted/wrong.py": {"permitted": ["WA"]},
        });
        let Value::Object(rules) = rules else {
            panic!("an object")
        };
        let verdict = |file: &str| {
            let folder = file.split('/').next().unwrap_or_default();
            let both = Expectation::of_rules(&rules, file)
                .expect("verdicts")
                .and(of_folder(folder));
            both.verdict().map(str::to_owned)
        };
        assert_eq!(verdict("rejected/slow.cpp").as_deref(), Some("TLE"));
        assert_eq!(verdict("rejected/any.cpp").as_deref(), Some("NOT_AC"));
        assert_eq!(verdict("other/deep/x.py").as_deref(), Some("AC"));
        assert_eq!(verdict("open/x.py"), None);
        assert_eq!(verdict("accepted/wrong.py").as_deref(), Some("WA"));
        let bad = json!({"a": {"permitted": ["YES"]}});
        let error = Expectation::of_rules(bad.as_object().expect("an object"), "a/b")
            .expect_err("no verdict");
        assert_eq!(error.0, "a.permitted");
    }

    #[test]
    fn marks_in_sources_count() {
        let verdict =
            |text: &str| of_annotation(text).and_then(|found| found.verdict().map(str::to_owned));
        assert_eq!(
            verdict("// @EXPECTED_RESULTS@: TIMELIMIT\nint main"),
            Some("TLE".into())
        );
        assert_eq!(
            verdict("/* @EXPECTED_RESULTS@: WRONG-ANSWER, RUN-ERROR */"),
            Some("NOT_AC".into())
        );
        assert_eq!(verdict("# @EXPECTED_RESULTS@: CORRECT"), Some("AC".into()));
        assert_eq!(verdict("# @EXPECTED_RESULTS@: CORRECT, TIMELIMIT"), None);
        assert_eq!(verdict("print(1)"), None);
    }

    #[test]
    fn patterns_fit_paths_and_their_folders() {
        for (pattern, path, fit) in [
            ("a/*.py", "a/x.py", true),
            ("a/*.py", "a/b/x.py", false),
            ("**/x.py", "a/b/x.py", true),
            ("a", "a/b/x.py", true),
            ("a/?.py", "a/x.py", true),
            ("a/*x*y*", "a/1x2y3", true),
            ("a/*x*z*", "a/1x2y3", false),
            ("", "a", false),
            ("*", "a/x", true),
        ] {
            assert_eq!(fits(pattern, path), fit, "{pattern} {path}");
        }
    }
}
