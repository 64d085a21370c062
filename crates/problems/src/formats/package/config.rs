//! `problem.yaml`, of the legacy format and of 2023-07.

use super::PackageError;
use super::files::Files;
use serde_json::{Map, Value};

/// The file.
const FILE: &str = "problem.yaml";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Legacy,
    /// 2023-07 and its drafts.
    V2023,
}

/// What a package says of its problem.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) version: Version,
    pub(super) name: Option<String>,
    pub(super) scoring: bool,
    /// Legacy: whether `validation` says that the package brings its validator.
    pub(super) custom_validation: bool,
    pub(super) validator_flags: Vec<String>,
    pub(super) time_limit_s: Option<f64>,
    pub(super) memory_mb: Option<u64>,
    pub(super) constants: Map<String, Value>,
    /// For people and for an audit.
    pub(super) meta: Map<String, Value>,
}

/// A YAML file as a mapping; an empty one is an empty mapping.
pub(super) fn mapping(file: &str, text: &str) -> Result<Map<String, Value>, PackageError> {
    if text
        .lines()
        .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
    {
        return Ok(Map::new());
    }
    // `no` and `on` are words here: languages and names among them.
    let options = serde_saphyr::options! { strict_booleans: true };
    let text = text.trim_start_matches('\u{feff}');
    let parsed: Result<Value, _> = serde_saphyr::from_str_with_options(text, options);
    match parsed {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(PackageError::new(
            file,
            ".",
            "must be a mapping, `key: value` a line",
        )),
        Err(error) => {
            let message = error.to_string();
            let first = message.lines().next().unwrap_or_default();
            Err(PackageError::new(file, ".", format!("is no YAML: {first}")))
        }
    }
}

impl Config {
    pub(super) fn read(files: &mut Files) -> Result<Self, PackageError> {
        let text = files
            .lossy_text(FILE)?
            .ok_or_else(|| PackageError::new(FILE, ".", "is missing"))?;
        Self::parse(&text)
    }

    pub(super) fn parse(text: &str) -> Result<Self, PackageError> {
        let fields = mapping(FILE, text)?;
        let wrong = |field: &str, message: &str| Err(PackageError::new(FILE, field, message));
        let named = word(fields.get("problem_format_version"));
        let version = match named.as_deref() {
            None | Some("legacy" | "legacy-icpc" | "icpc") => Version::Legacy,
            Some(version) if version.starts_with("2023-07") || version == "draft" => Version::V2023,
            Some(other) => {
                let message = format!("is `{other}`; `legacy` and `2023-07` are read");
                return wrong("problem_format_version", &message);
            }
        };
        let validation = word(fields.get("validation")).unwrap_or_default();
        let mut kinds = words(fields.get("type"));
        kinds.extend(validation.split_whitespace().map(str::to_owned));
        for (kind, why) in [
            (
                "interactive",
                "programs would have to talk with the judge while they run",
            ),
            (
                "multi-pass",
                "programs would have to run several times on each test",
            ),
            (
                "multipass",
                "programs would have to run several times on each test",
            ),
            ("submit-answer", "answers are submitted instead of programs"),
        ] {
            if kinds.iter().any(|known| known == kind) {
                return wrong(
                    "type",
                    &format!("is {kind}: {why}, which cannot be judged here"),
                );
            }
        }
        let limits = match fields.get("limits") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(limits)) => limits.clone(),
            Some(_) => return wrong("limits", "must be a mapping"),
        };
        let limit = |name: &str| match limits.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match number(value) {
                Some(limit) if limit.is_finite() && limit > 0.0 => Ok(Some(limit)),
                _ => Err(PackageError::new(
                    FILE,
                    format!("limits.{name}"),
                    "must be a number above 0",
                )),
            },
        };
        let mut meta = Map::new();
        let time_limit_s = limit("time_limit")?;
        let memory_mb = limit("memory")?.map(|memory| memory.ceil() as u64);
        if let Some(output) = limit("output")? {
            meta.insert("output_limit_mb".to_owned(), output.into());
        }
        // How the limit follows from the slowest accepted submission, where it is not named.
        let multiplier = match limits
            .get("time_multipliers")
            .and_then(|rule| rule.get("ac_to_time_limit"))
        {
            Some(value) => number(value),
            None => limit("time_multiplier")?,
        };
        if let Some(multiplier) = multiplier {
            meta.insert("time_multiplier".to_owned(), multiplier.into());
        }
        for field in [
            "author",
            "credits",
            "source",
            "source_url",
            "license",
            "rights_owner",
            "keywords",
            "uuid",
            "languages",
        ] {
            if let Some(value) = fields.get(field).filter(|value| !value.is_null()) {
                meta.insert(field.to_owned(), value.clone());
            }
        }
        let constants = match fields.get("constants") {
            Some(Value::Object(constants)) => constants.clone(),
            _ => Map::new(),
        };
        Ok(Self {
            version,
            name: name(fields.get("name")),
            scoring: kinds
                .iter()
                .any(|kind| kind == "scoring" || kind == "score"),
            custom_validation: validation.split_whitespace().next() == Some("custom"),
            validator_flags: flags(fields.get("validator_flags")),
            time_limit_s,
            memory_mb,
            constants,
            meta,
        })
    }

    /// Puts the values of constants into a text.
    pub(super) fn substitute(&self, text: String) -> String {
        if self.constants.is_empty() || !text.contains("{{") {
            return text;
        }
        let mut done = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("{{") {
            done.push_str(before);
            let found = after.split_once("}}").and_then(|(name, after)| {
                let value = self.constants.get(name.trim())?;
                // A constant may be a mapping with the value to use and how to show it.
                let value = value.get("value").unwrap_or(value);
                Some((word(Some(value))?, after))
            });
            match found {
                Some((value, after)) => {
                    done.push_str(&value);
                    rest = after;
                }
                None => {
                    done.push_str("{{");
                    rest = after;
                }
            }
        }
        done.push_str(rest);
        done
    }
}

/// The name, of several languages the English one.
fn name(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::Object(names) => {
            let english = names
                .iter()
                .find(|(language, _)| *language == "en" || language.starts_with("en-"));
            word(
                english
                    .or_else(|| names.iter().next())
                    .map(|(_, name)| name),
            )
        }
        value => word(Some(value)),
    }
}

/// A plain value as a text.
pub(super) fn word(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        _ => None,
    }
}

/// One word or several.
pub(super) fn words(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(|item| word(Some(item))).collect(),
        other => word(other)
            .map(|text| text.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default(),
    }
}

/// Arguments: a list of them, or a text that is split as a shell would, quotes and backslashes included.
pub(super) fn flags(value: Option<&Value>) -> Vec<String> {
    let text = match value {
        Some(Value::Array(items)) => {
            return items.iter().filter_map(|item| word(Some(item))).collect();
        }
        other => word(other).unwrap_or_default(),
    };
    let mut all = Vec::new();
    let mut one: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => one.get_or_insert_default().extend(chars.next()),
            ('"' | '\'', None) => {
                quote = Some(c);
                one.get_or_insert_default();
            }
            (c, Some(end)) if c == end => quote = None,
            (c, None) if c.is_whitespace() => all.extend(one.take()),
            (c, _) => one.get_or_insert_default().push(c),
        }
    }
    all.extend(one);
    all
}

pub(super) fn number(value: &Value) -> Option<f64> {
    value
        .as_f64()
        .or_else(|| value.as_str()?.trim().parse().ok())
}
