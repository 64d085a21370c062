//! `rlef model`: models that have a name, and what is known of any.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use rlef_model::folder::{self, FILES, INDEX, MORE_FILES, WEIGHTS};
use rlef_model::{ChatMessage, ChatTokenizer, LlamaConfig, gguf, weights};
use serde_json::{Map, Value, json};

use crate::args::{GetModel, ImportModel, Model, ModelCommand, ShowModel};
use crate::models::{self, Place, catalogue, fetch};

pub fn run(args: Model) -> Result<ExitCode> {
    match args.command {
        ModelCommand::List => list(),
        ModelCommand::Get(a) => get(&a),
        ModelCommand::Show(a) => show(&a),
        ModelCommand::Import(a) => import(&a),
    }
}

fn list() -> Result<ExitCode> {
    crate::say!(
        "{:<19} {:>8}  {:<7} {:<20} here",
        "name",
        "params",
        "kind",
        "licence"
    );
    for model in catalogue::all()? {
        let here = match fetch::present(&model) {
            Some(_) => "yes",
            None if model.entry.gated => "-, needs a token",
            None => "-",
        };
        crate::say!(
            "{:<19} {:>8}  {:<7} {:<20} {here}",
            model.name,
            rounded(model.entry.parameters),
            model.config.model_type,
            model.entry.licence
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// 134515008 as 135M.
fn rounded(n: u64) -> String {
    match n {
        0..1_000_000 => format!("{}k", (n + 500) / 1000),
        1_000_000..1_000_000_000 => format!("{}M", (n + 500_000) / 1_000_000),
        _ => format!("{:.1}B", n as f64 / 1e9),
    }
}

fn get(args: &GetModel) -> Result<ExitCode> {
    let Some(model) = catalogue::find(&args.name)? else {
        let meant = match catalogue::nearest(&args.name) {
            Some(near) => format!("; did you mean {near}?"),
            None => String::new(),
        };
        bail!("{:?} is no name of `rlef model list`{meant}", args.name);
    };
    let dir = match fetch::present(&model) {
        Some(dir) => dir,
        None => fetch::get(&model)?,
    };
    crate::say!("{}: {}", model.name, dir.display());
    Ok(ExitCode::SUCCESS)
}

fn import(args: &ImportModel) -> Result<ExitCode> {
    if !args.force {
        for name in FILES.iter().copied().chain([WEIGHTS, INDEX]) {
            let path = args.dir.join(name);
            if path.exists() {
                bail!(
                    "{} is there already; --force replaces the model, or give another folder",
                    path.display()
                );
            }
        }
    }
    let config = fetch::import(&args.file, &args.dir)?;
    if args.dir.join(INDEX).exists() {
        // Of the model that was there before; the new one is in one file.
        std::fs::remove_file(args.dir.join(INDEX))
            .with_context(|| args.dir.join(INDEX).display().to_string())?;
    }
    crate::say!(
        "{}: {} of {} parameters, in f32",
        args.dir.display(),
        config.family().architecture(),
        config.num_params()
    );
    Ok(ExitCode::SUCCESS)
}

/// Tensors with their shapes, and how many there are of each number format.
type Tensors = (BTreeMap<String, Vec<usize>>, BTreeMap<String, usize>);

fn show(args: &ShowModel) -> Result<ExitCode> {
    let place = models::find(&args.model)?;
    let mut facts = Map::new();
    match &place {
        Place::Embedded => {
            facts.insert("model".into(), "tiny, embedded in this program".into());
            understood(&models::embedded(), Path::new("tiny"), &mut facts)?;
        }
        Place::Folder(dir) => {
            facts.insert("model".into(), dir.display().to_string().into());
            let mut files = Vec::new();
            for name in FILES.iter().chain(&MORE_FILES) {
                let path = dir.join(name);
                if path.is_file() {
                    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
                    files.push(((*name).to_owned(), bytes));
                }
            }
            let config = understood(&files, dir, &mut facts)?;
            let described = weights::describe_dir(dir)?;
            let formats = described.values().map(|(_, f)| f.clone());
            let formats = counted(formats);
            let shapes = described.into_iter().map(|(n, (s, _))| (n, s)).collect();
            tensors((shapes, formats), &config, dir, &mut facts)?;
        }
        Place::Gguf(file) => {
            facts.insert("model".into(), file.display().to_string().into());
            let header = gguf::Gguf::open(file)?;
            let files = header.files()?;
            let config = understood(&files, file, &mut facts)?;
            let formats = counted(header.tensors.values().map(|t| t.kind.name().to_owned()));
            tensors((header.shapes()?, formats), &config, file, &mut facts)?;
        }
        Place::Elsewhere(model) => {
            let here = format!(
                "not on this machine; `rlef model get {}` fetches it",
                model.name
            );
            facts.insert("model".into(), here.into());
            facts.insert("repository".into(), model.entry.repo.clone().into());
            facts.insert("licence".into(), model.entry.licence.clone().into());
            shape(&model.config, &mut facts);
        }
    }
    if args.json {
        crate::text::print(&format!("{}\n", serde_json::to_string_pretty(&facts)?))?;
    } else {
        for (key, value) in &facts {
            let value = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            crate::say!("{:<20} {}", key, crate::text::visible(&value));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn counted(all: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    counts
}

/// Says how the tensors are stored; they must be those of the shape.
fn tensors(
    (shapes, formats): Tensors,
    config: &LlamaConfig,
    origin: &Path,
    facts: &mut Map<String, Value>,
) -> Result<()> {
    let count = shapes.len();
    weights::fits(shapes, config, origin)?;
    let formats: Vec<String> = formats.iter().map(|(f, n)| format!("{n} {f}")).collect();
    let told = format!("{count}: {}", formats.join(", "));
    facts.insert("tensors".into(), told.into());
    Ok(())
}

fn shape(config: &LlamaConfig, facts: &mut Map<String, Value>) {
    let family = config.family();
    let special = match (family.qkv_bias(), family.qk_norm()) {
        (true, _) => ", biases on q, k, v",
        (_, true) => ", norms on q and k",
        _ => "",
    };
    let tied = if config.tie_word_embeddings {
        "tied to the embedding"
    } else {
        "of its own"
    };
    let rope = match &config.rope_scaling {
        Some(s) if s.rope_type == "llama3" => format!(
            "base {}, scaled as Llama 3.1: factor {}, from {} positions",
            config.rope_theta, s.factor, s.original_max_position_embeddings
        ),
        _ => format!("base {}", config.rope_theta),
    };
    for (key, value) in [
        (
            "architecture",
            json!(format!("{}{special}", family.architecture())),
        ),
        ("parameters", json!(config.num_params())),
        ("layers", json!(config.num_hidden_layers)),
        ("width", json!(config.hidden_size)),
        ("feed-forward width", json!(config.intermediate_size)),
        (
            "heads",
            json!(format!(
                "{} of width {}, {} for keys and values",
                config.num_attention_heads,
                config.head_size(),
                config.kv_heads()
            )),
        ),
        ("positions", json!(config.max_position_embeddings)),
        ("rotary positions", json!(rope)),
        ("norm epsilon", json!(config.rms_norm_eps)),
        ("vocabulary", json!(config.vocab_size)),
        ("output layer", json!(tied)),
    ] {
        facts.insert(key.into(), value);
    }
}

/// Says what the files beside the weights hold.
fn understood(
    files: &[(String, Vec<u8>)],
    origin: &Path,
    facts: &mut Map<String, Value>,
) -> Result<LlamaConfig> {
    let (config, tokenizer) = folder::understand(files, origin)?;
    shape(&config, facts);
    let ends: Vec<String> = tokenizer
        .eos_ids()
        .iter()
        .map(|&id| format!("{id} {:?}", tokenizer.piece(id)))
        .collect();
    facts.insert("tokens".into(), json!(tokenizer.vocab_size()));
    facts.insert("an answer ends at".into(), json!(ends.join(", ")));
    chat(&tokenizer, facts)?;
    Ok(config)
}

fn chat(tokenizer: &ChatTokenizer, facts: &mut Map<String, Value>) -> Result<()> {
    let message = |role: &str, content: &str| ChatMessage {
        role: role.into(),
        content: content.into(),
    };
    let dialog = [
        message("user", "QUESTION"),
        message("assistant", "ANSWER"),
        message("user", "FEEDBACK"),
    ];
    let pieces = tokenizer.segments(&dialog)?;
    for (key, piece) in ["first prompt", "next prompt"].iter().zip(pieces) {
        facts.insert((*key).into(), json!(format!("{piece:?}")));
    }
    let earlier = match tokenizer.rewrites()? {
        None => "left as they are by the template",
        Some(_) => {
            "rewritten by the template (thoughts dropped); in a dialog's record they stay as they were sampled"
        }
    };
    facts.insert("earlier answers".into(), json!(earlier));
    Ok(())
}
