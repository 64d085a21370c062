//! From what was typed to settings: defaults, then the file, then `--set`, then flags.
//!
//! A key that does not exist is an error that names the nearest one that does.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use rlef_rl::{Algorithm, SftConfig, TrainConfig, TuneConfig};

use crate::args::{Feedback, Settings};

/// Settings with the defaults of each kind.
pub trait Defaults: Default + Serialize + DeserializeOwned {
    /// The setting that decides which defaults the others have.
    const CHOICE: Option<&'static str> = None;

    /// The defaults with this value of it.
    ///
    /// # Errors
    /// A value that it cannot have.
    fn chosen(_: &Value) -> Result<Self> {
        Ok(Self::default())
    }
}

impl Defaults for TrainConfig {
    const CHOICE: Option<&'static str> = Some("algorithm");

    fn chosen(value: &Value) -> Result<Self> {
        let algorithm: Algorithm = value.clone().try_into().map_err(|e: toml::de::Error| {
            anyhow::anyhow!("setting `algorithm`: {}", e.message())
        })?;
        Ok(algorithm.settings())
    }
}

impl Defaults for SftConfig {}

impl Defaults for TuneConfig {}

/// Keys whose default is "absent", which TOML cannot write down.
const OPTIONAL: [&str; 2] = ["episode.system_prompt", "episode.missing_code_message"];

/// Groups of settings whose names are free.
const OPEN: [&str; 1] = ["judge.language_time_factors"];

/// Whether there is such a setting.
fn is_known(key: &str, known: &[String]) -> bool {
    let open = |group: &&str| {
        key.strip_prefix(*group)
            .is_some_and(|k| k.starts_with('.') && k.len() > 1)
    };
    known.iter().any(|k| k == key) || OPEN.iter().any(open)
}

/// Resolves settings of type `T`: its defaults, overlaid with `file`, then with each `key=value` of `set`.
///
/// Where `set` chooses other defaults than the file (another algorithm), what the file only repeats of its own defaults
/// does not count as typed.
pub fn resolve<T: Defaults>(file: Option<&Path>, set: &[String]) -> Result<T> {
    let mut read = match file {
        Some(path) => {
            let text = crate::parts::text(path).context("the configuration")?;
            let table: Table = text
                .parse()
                .with_context(|| format!("{} is not valid TOML", path.display()))?;
            Some((path, table))
        }
        None => None,
    };
    let defaults = defaults::<T>(read.as_mut().map(|(_, table)| table), set)?;
    let mut known = Vec::new();
    keys(&defaults, "", &mut known);
    known.extend(OPTIONAL.iter().map(|k| (*k).to_owned()));

    let mut merged = defaults;
    if let Some((path, typed)) = read {
        overlay(&mut merged, typed, "", &known)
            .with_context(|| format!("in {}", path.display()))?;
    }
    for item in set {
        let Some((key, value)) = item.split_once('=') else {
            bail!("--set takes key=value, not {item:?}");
        };
        let key = key.trim();
        let value = value.trim();
        if !is_known(key, &known) {
            bail!(
                "unknown setting `{}`{}",
                crate::text::line(key, 200),
                nearest(key, &known)
            );
        }
        // Where a text is wanted, what was typed is that text: a folder may be called `true` or `1_000`.
        let value = if wants_text(&merged, key) && !value.starts_with(['"', '\'']) {
            Value::String(value.to_owned())
        } else {
            parse_value(value)
        };
        overlay(&mut merged, nested(key, value), "", &known)
            .with_context(|| format!("in {}", crate::text::line(item, 200)))?;
    }
    serde_path_to_error::deserialize(Value::Table(merged)).map_err(
        |e: serde_path_to_error::Error<toml::de::Error>| {
            let key = e.path().to_string();
            anyhow::anyhow!("setting `{key}`: {}", e.into_inner().message().trim_end())
        },
    )
}

/// The defaults that `file` and `set` ask for.
fn defaults<T: Defaults>(file: Option<&mut Table>, set: &[String]) -> Result<Table> {
    let table = |value: Option<&Value>| -> Result<Table> {
        let settings = match value {
            Some(value) => T::chosen(value)?,
            None => T::default(),
        };
        Table::try_from(settings).context("the defaults do not serialise")
    };
    let Some(choice) = T::CHOICE else {
        return table(None);
    };
    let typed = set.iter().rev().find_map(|item| {
        let (key, value) = item.split_once('=')?;
        let text = || Value::String(value.trim().trim_matches(['"', '\'']).to_owned());
        (key.trim() == choice).then(text)
    });
    let of_file = file.as_ref().and_then(|f| f.get(choice).cloned());
    match (typed, of_file, file) {
        (Some(typed), Some(of_file), Some(file)) if typed != of_file => {
            without(file, &table(Some(&of_file))?);
            table(Some(&typed))
        }
        (typed, of_file, _) => table(typed.or(of_file).as_ref()),
    }
}

/// Takes out of `typed` what is as in `defaults`.
fn without(typed: &mut Table, defaults: &Table) {
    typed.retain(|key, value| match (value, defaults.get(key)) {
        (Value::Table(inner), Some(Value::Table(same))) => {
            without(inner, same);
            true
        }
        // The file has an f32 in its shortest form, and the defaults have it widened.
        (Value::Float(a), Some(Value::Float(b))) => *a as f32 != *b as f32,
        (value, same) => same != Some(&*value),
    });
}

/// Whether the setting's default is a text.
fn wants_text(defaults: &Table, key: &str) -> bool {
    let mut table = defaults;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        match table.get(part) {
            Some(Value::Table(inner)) => table = inner,
            Some(Value::String(_)) => return parts.peek().is_none(),
            _ => break,
        }
    }
    OPTIONAL.contains(&key)
}

/// Refuses settings that were typed but that `command` has no use for. `used` are keys and groups of keys. A file may
/// hold the settings of the training run that made the model; those of its settings that do not matter here are left
/// alone.
pub fn only(command: &str, set: &[String], used: &[&str]) -> Result<()> {
    for item in set {
        let key = item.split('=').next().unwrap_or(item).trim();
        let known = used.iter().any(|u| {
            key.strip_prefix(u)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        if !known {
            bail!("setting `{key}` has no effect on `rlef {command}`: leave it out");
        }
    }
    Ok(())
}

/// Sets a dotted key, for flags that stand for a setting.
pub fn flag(set: &mut Vec<String>, key: &str, value: Option<impl ToString>) {
    if let Some(value) = value {
        set.push(format!("{key}={}", value.to_string()));
    }
}

/// What was typed as `--set`, and the flags that every command has, as settings.
pub fn typed(s: &Settings) -> Vec<String> {
    let mut set = s.set.clone();
    flag(&mut set, "seed", s.seed);
    flag(&mut set, "workers", s.workers);
    flag(&mut set, "device", s.device.as_ref());
    flag(&mut set, "problems", s.problems.as_ref());
    set
}

/// The value of `episode.feedback` that a flag stands for.
pub fn feedback(flag: Feedback) -> &'static str {
    match flag {
        Feedback::Real => "real",
        Feedback::Random => "random",
        Feedback::None => "none",
    }
}

fn keys(table: &Table, prefix: &str, out: &mut Vec<String>) {
    for (key, value) in table {
        let path = join(prefix, key);
        if let Value::Table(inner) = value {
            keys(inner, &path, out);
        }
        out.push(path);
    }
}

fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() {
        key.to_owned()
    } else {
        format!("{prefix}.{key}")
    }
}

fn overlay(base: &mut Table, typed: Table, prefix: &str, known: &[String]) -> Result<()> {
    for (key, value) in typed {
        let path = join(prefix, &key);
        if !is_known(&path, known) {
            bail!("unknown setting `{path}`{}", nearest(&path, known));
        }
        match (base.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(more)) => overlay(inner, more, &path, known)?,
            (Some(Value::Table(_)), other) => {
                bail!(
                    "`{path}` is a group of settings, not a {}",
                    other.type_str()
                )
            }
            // 1 is a fine way to write 1.0.
            (Some(Value::Float(_)), Value::Integer(i)) => {
                base.insert(key, Value::Float(i as f64));
            }
            (Some(known), value) if known.type_str() != value.type_str() => {
                bail!(
                    "`{path}` takes {}, not the {} {value}",
                    kind(known),
                    value.type_str()
                )
            }
            (None, value) if OPTIONAL.contains(&&*path) && !value.is_str() => {
                bail!(
                    "`{path}` takes a text, not the {} {value}",
                    value.type_str()
                )
            }
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
    Ok(())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a text",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a time",
        Value::Array(_) => "a list",
        Value::Table(_) => "a group of settings",
    }
}

/// ", did you mean …?" with the most alike known name, whole or by its last part.
pub fn nearest(name: &str, known: &[String]) -> String {
    // Longer than any name: it is like none.
    if name.len() > 200 {
        return String::new();
    }
    let last = |s: &str| s.rsplit('.').next().unwrap_or(s).to_owned();
    let alike = |k: &String| {
        let whole = strsim::normalized_damerau_levenshtein(name, k);
        let part = strsim::normalized_damerau_levenshtein(&last(name), &last(k));
        // A group that was left out is a smaller mistake than a wrong one.
        whole.max(part * 0.9)
    };
    let best = known
        .iter()
        .map(|k| (alike(k), k))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((score, k)) if score > 0.6 => format!("; did you mean `{k}`?"),
        _ => String::new(),
    }
}

fn nested(key: &str, value: Value) -> Table {
    match key.split_once('.') {
        Some((first, rest)) => {
            Table::from_iter([(first.to_owned(), Value::Table(nested(rest, value)))])
        }
        None => Table::from_iter([(key.to_owned(), value)]),
    }
}

/// A TOML value where it is one, else the text itself: `--set model=tiny` needs no quotes.
fn parse_value(text: &str) -> Value {
    // However they are written, and TOML knows one way only.
    if let Ok(x) = text.parse::<f64>()
        && !x.is_finite()
    {
        return Value::Float(x);
    }
    format!("x = {text}")
        .parse::<Table>()
        .ok()
        .and_then(|mut t| t.remove("x"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(items: &[&str]) -> Result<TrainConfig> {
        resolve(
            None,
            &items.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn values_of_every_kind_are_taken() {
        let c = set(&[
            "seed=7",
            "ppo.clip=0.3",
            "ppo.beta=0",
            "model=/some/dir",
            "episode.feedback=none",
        ])
        .unwrap();
        assert_eq!((c.seed, c.ppo.clip, c.ppo.beta), (7, 0.3, 0.0));
        assert_eq!(c.model, "/some/dir");
        assert_eq!(c.episode.feedback, rlef_env::FeedbackMode::None);
        let c = set(&["episode.system_prompt=You write Python."]).unwrap();
        assert_eq!(
            c.episode.system_prompt.as_deref(),
            Some("You write Python.")
        );
    }

    #[test]
    fn the_algorithm_decides_the_defaults() {
        let c = set(&["algorithm=grpo"]).unwrap();
        assert_eq!(c, Algorithm::Grpo.settings());
        let c = set(&["ppo.beta=0.1", "algorithm=\"grpo++\""]).unwrap();
        assert_eq!((c.algorithm, c.ppo.beta), (Algorithm::GrpoPlusPlus, 0.1));
        let error = format!("{:#}", set(&["algorithm=trpo"]).unwrap_err());
        assert!(
            error.contains("`algorithm`") && error.contains("grpo"),
            "{error}"
        );
    }

    /// A run's settings under another algorithm: what the run had changed stays changed, the rest is the algorithm's.
    #[test]
    fn another_algorithm_on_the_settings_of_a_run() {
        let run = set(&["seed=4", "ppo.clip=0.1"]).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), toml::to_string(&run).unwrap()).unwrap();
        let same: TrainConfig = resolve(Some(file.path()), &[]).unwrap();
        assert_eq!(same, run);
        let other: TrainConfig = resolve(Some(file.path()), &["algorithm=dapo".into()]).unwrap();
        let mut want = Algorithm::Dapo.settings();
        (want.seed, want.ppo.clip) = (4, 0.1);
        assert_eq!(other, want);
    }

    #[test]
    fn settings_without_effect_are_errors() {
        let used = ["seed", "episode"];
        let set = |s: &str| vec![s.to_owned()];
        assert!(only("eval", &set("episode.max_turns=2"), &used).is_ok());
        assert!(only("eval", &set("seed = 3"), &used).is_ok());
        for typed in ["ppo.clip=0.1", "seeds=1", "episodes.max_turns=2"] {
            let error = only("eval", &set(typed), &used).unwrap_err().to_string();
            assert!(error.contains("no effect"), "{error}");
        }
    }

    #[test]
    fn unknown_keys_name_the_nearest() {
        for (typed, meant) in [
            ("ppo.clp=0.1", "ppo.clip"),
            ("lr=1e-4", "optimiser.lr"),
            ("sed=1", "seed"),
            ("rollout.temprature=1", "rollout.temperature"),
        ] {
            let error = format!("{:#}", set(&[typed]).unwrap_err());
            assert!(
                error.contains("unknown setting") && error.contains(meant),
                "{error}"
            );
        }
    }

    #[test]
    fn wrong_kinds_are_errors() {
        for typed in [
            "seed=often",
            "ppo=3",
            "episode.feedback=loud",
            "seed",
            "ppo.clip=yes",
            "iterations=1.5",
            "iterations=-1",
            "ppo.value_moves_policy=1",
        ] {
            let error = format!("{:#}", set(&[typed]).unwrap_err());
            let key = typed.split('=').next().unwrap();
            assert!(error.contains(key), "{typed}: {error}");
        }
    }

    /// Whatever is typed where a text is wanted is that text.
    #[test]
    fn texts_are_taken_as_they_are_typed() {
        for text in [
            "1_000",
            "true",
            "1e5",
            "[a]",
            "2026-01-01",
            "a\nb",
            "x = 1",
            "nan",
        ] {
            assert_eq!(set(&[&format!("model={text}")]).unwrap().model, text);
        }
        assert_eq!(set(&["model=\"a b\""]).unwrap().model, "a b");
    }

    #[test]
    fn groups_with_free_names_take_any() {
        let c = set(&["judge.language_time_factors.cpp=2"]).unwrap();
        assert_eq!(c.judge.language_time_factors["cpp"], 2.0);
        for wrong in [
            "judge.language_time_factors.cpp=fast",
            "judge.language_time_factors.=1",
            "judge.language_time_factor=1",
        ] {
            assert!(set(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_names_itself_and_the_key() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, key) in [
            ("model = 1", "`model` takes a text"),
            ("[ppo]\nclip = \"a\"", "`ppo.clip` takes a number"),
            (
                "[episode]\nsystem_prompt = 3",
                "`episode.system_prompt` takes a text",
            ),
        ] {
            std::fs::write(file.path(), text).unwrap();
            let error = resolve::<TrainConfig>(Some(file.path()), &[]).unwrap_err();
            let error = format!("{error:#}");
            let name = file.path().display().to_string();
            assert!(error.contains(&name) && error.contains(key), "{error}");
        }
    }
}
