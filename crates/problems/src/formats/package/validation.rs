//! Who decides on outputs: the default validator, which becomes a [`Checker::Tokens`] by its flags, or a validator of
//! the package.

use super::PackageError;
use super::config::{Config, Version};
use super::data::Data;
use super::files::{Files, join};
use super::programs::{Program, language};
use crate::validator::of_group;
use crate::{Checker, Numbers, SourceFile, Validator, WhiteSpace};
use std::collections::BTreeMap;

/// Folders of validators, of either version: in the first each entry is a program, the second is one.
const MANY: &str = "output_validators";
const ONE: &str = "output_validator";

pub(super) fn checker(
    files: &mut Files,
    config: &Config,
    data: &mut Data,
) -> Result<Checker, PackageError> {
    let one = !files.list(ONE)?.is_empty();
    let many = files.list(MANY)?;
    let custom = match config.version {
        Version::Legacy => config.custom_validation,
        Version::V2023 => one || !many.is_empty(),
    };
    if !custom {
        if one || !many.is_empty() {
            data.notes.push(
                "its output validator is not used, as `validation` does not say `custom`"
                    .to_owned(),
            );
        }
        return default_validator(data);
    }
    let program = if one {
        Program::read(files, Some(config), ONE, true)?
    } else {
        of_many(files, config, many)?
    };
    Ok(Checker::Validator(Validator {
        language: program.language,
        entry: program.entry,
        files: program.files,
        flags: data.flags.clone(),
        group_flags: data.groups.clone(),
    }))
}

/// Headers beside single-file validators belong to each of them.
fn of_many(
    files: &mut Files,
    config: &Config,
    entries: Vec<(String, bool)>,
) -> Result<Program, PackageError> {
    let mut programs = Vec::new();
    let mut shared = Vec::new();
    for (name, is_folder) in entries {
        let is_source =
            is_folder || language(&name, "").is_some() || name == "build" || name == "run";
        if is_source {
            &mut programs
        } else {
            &mut shared
        }
        .push((name, is_folder));
    }
    let [(name, is_folder)] = programs.as_slice() else {
        let what = match programs.len() {
            0 => {
                "holds no validator in a known language, and `validation` says `custom`".to_owned()
            }
            count => format!("holds {count} validators; packages with one can be read"),
        };
        return Err(PackageError::new(MANY, ".", what));
    };
    let mut program = Program::read(files, Some(config), &join(MANY, name), *is_folder)?;
    if !is_folder {
        for (name, _) in shared {
            if let Some(text) = files.text(&join(MANY, &name))? {
                program.files.push(SourceFile { path: name, text });
            }
        }
    }
    Ok(program)
}

/// The rules that the default validator's flags make.
fn default_validator(data: &Data) -> Result<Checker, PackageError> {
    let of = |flags: &[String]| {
        rule(flags).map_err(|what| {
            let file = match flags == data.flags {
                true => "problem.yaml",
                false => "data",
            };
            PackageError::new(file, "validator_flags", what)
        })
    };
    let otherwise = of(&data.flags)?;
    let mut groups = BTreeMap::new();
    for (group, flags) in &data.groups {
        let rule = of(flags)?;
        groups.insert(group.clone(), rule);
    }
    let names = || {
        data.samples
            .iter()
            .chain(&data.secret)
            .map(|test| &test.name)
    };
    let rules = |name: &String| of_group(&groups, name).unwrap_or(&otherwise);
    // One rule, where it is the same for all tests: different words may make the same.
    let first = names().next().map_or(&otherwise, rules).clone();
    if names().all(|name| *rules(name) == first) {
        return Ok(first);
    }
    Ok(Checker::ByGroup {
        otherwise: Box::new(otherwise),
        groups,
    })
}

/// What the default validator does by its flags.
pub(super) fn rule(flags: &[String]) -> Result<Checker, String> {
    let (mut case_sensitive, mut white_space) = (false, WhiteSpace::Any);
    let (mut abs, mut rel) = (None, None);
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        let mut tolerance = || {
            let value = flags.next().map(String::as_str).unwrap_or_default();
            match value.parse::<f64>() {
                Ok(value) if value.is_finite() && value >= 0.0 => Ok(Some(value)),
                _ => Err(format!("`{flag}` needs a number from 0 up, not `{value}`")),
            }
        };
        match flag.as_str() {
            "case_sensitive" => case_sensitive = true,
            "space_change_sensitive" => white_space = WhiteSpace::Exact,
            "float_absolute_tolerance" => abs = tolerance()?,
            "float_relative_tolerance" => rel = tolerance()?,
            "float_tolerance" => {
                abs = tolerance()?;
                rel = abs;
            }
            other => {
                return Err(format!(
                    "`{other}` is no flag of the default validator; there are case_sensitive, space_change_sensitive, \
                     float_tolerance, float_absolute_tolerance and float_relative_tolerance"
                ));
            }
        }
    }
    let numbers = (abs.is_some() || rel.is_some()).then(|| Numbers {
        abs: abs.unwrap_or(0.0),
        rel: rel.unwrap_or(0.0),
        integers_exact: false,
    });
    Ok(Checker::Tokens {
        case_sensitive,
        white_space,
        numbers,
    })
}
