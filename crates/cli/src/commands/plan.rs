//! `rlef plan`: what a training run would hold in memory, told by the shape of its model alone.

use std::process::ExitCode;

use anyhow::{Result, bail};
use rlef_model::LlamaConfig;
use rlef_rl::{Memory, Networks, TrainConfig, ValueKind, Workload};
use serde_json::{Map, Value};

use crate::args::Plan;
use crate::models::{self, catalogue};
use crate::output::memory_left;
use crate::settings::{flag, resolve};
use crate::text::columns;

pub fn run(args: &Plan) -> Result<ExitCode> {
    let mut set = args.set.clone();
    flag(&mut set, "model", args.model.as_ref());
    let config: TrainConfig = resolve(args.config.as_deref(), &set)?;
    config.check()?;
    let shape = models::shape(&config.model)?;
    let length = match args.length {
        Some(n) if n as usize > shape.max_position_embeddings => bail!(
            "--length {n} is more than the {} positions of {}",
            shape.max_position_embeddings,
            config.model
        ),
        Some(n) => n as usize,
        None => usual(&config, &shape),
    };
    let plan = planned(&config, &shape, length);
    let there = args.memory.or_else(memory_left);
    let fits = there.is_none_or(|there| plan.peak() <= there);
    if args.json {
        let mut all: Map<String, Value> = parts(&plan)
            .into_iter()
            .map(|(name, bytes, _)| (name.into(), bytes.into()))
            .collect();
        all.insert("peak".into(), plan.peak().into());
        all.insert("memory".into(), there.into());
        all.insert("fits".into(), fits.into());
        crate::text::print(&format!("{}\n", serde_json::to_string_pretty(&all)?))?;
    } else {
        let load = Workload::new(&config, length);
        crate::say!(
            "{}: {} parameters; updates of {} dialogs, {} decode at once, up to {} tokens each\n",
            config.model,
            shape.num_params(),
            load.update_rows,
            load.decode_rows,
            length
        );
        crate::text::print(&table(&plan))?;
        if let Some(there) = there {
            crate::say!("{:<14}{:>12}", "memory", readable(there));
            crate::say!("{}", if fits { "It fits." } else { "It does not fit." });
            if !fits {
                crate::say!("{}", change(&config, &shape, length, there));
            }
        }
    }
    Ok(if fits {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Refuses a run whose weights, averages and gradients alone are more than this machine has left.
///
/// # Errors
/// The table of what it would hold, and the smallest change that would help.
pub fn possible(config: &TrainConfig) -> Result<()> {
    let shape = models::shape(&config.model)?;
    // The shortest dialogs: how long they really are is not known yet.
    let least = planned(config, &shape, 2);
    match memory_left() {
        Some(there) if least.standing() + least.gradients > there => {
            let length = usual(config, &shape);
            bail!(
                "training {} does not fit this machine; at up to {length} tokens a dialog it holds\n{}This machine has \
                 {} left. {}",
                config.model,
                table(&planned(config, &shape, length)),
                readable(there),
                change(config, &shape, length, there)
            )
        }
        _ => Ok(()),
    }
}

/// The length of dialogs where nothing is said of it: answers, and half as much for statements and feedback.
fn usual(config: &TrainConfig, shape: &LlamaConfig) -> usize {
    let answers = config
        .episode
        .max_turns
        .saturating_mul(config.rollout.max_new_tokens);
    (answers + answers / 2).clamp(2, shape.max_position_embeddings.max(2))
}

fn planned(config: &TrainConfig, shape: &LlamaConfig, length: usize) -> Memory {
    let networks = Networks {
        shape,
        value: config.ppo.value,
        shards: config.workers,
    };
    Memory::new(&networks, Workload::new(config, length))
}

fn parts(plan: &Memory) -> [(&'static str, u64, &'static str); 7] {
    [
        ("weights", plan.weights, "policy and value, f32"),
        ("reference", plan.reference, "the policy at the start"),
        ("optimiser", plan.optimiser, "two averages"),
        ("gradients", plan.gradients, "one a thread"),
        (
            "activations",
            plan.activations,
            "kept for the backward pass",
        ),
        ("logits", plan.logits, "of the answers, with gradients"),
        ("cache", plan.cache, "keys and values while sampling"),
    ]
}

fn table(plan: &Memory) -> String {
    let mut rows: Vec<Vec<String>> = parts(plan)
        .into_iter()
        .map(|(name, bytes, what)| vec![name.into(), readable(bytes), what.into()])
        .collect();
    rows.push(vec![
        "at once".into(),
        readable(plan.peak()),
        "the first three, and the most of an update or of sampling".into(),
    ]);
    columns(&rows, "")
}

/// What would have to change, at the least, for the run to fit.
fn change(config: &TrainConfig, shape: &LlamaConfig, length: usize, there: u64) -> String {
    let mut candidates: Vec<(String, TrainConfig)> = Vec::new();
    let mut add = |text: String, change: &dyn Fn(&mut TrainConfig)| {
        let mut changed = config.clone();
        change(&mut changed);
        candidates.push((text, changed));
    };
    let rollouts = config.rollout.problems * config.rollout.per_problem;
    let mut more = config.ppo.minibatches * 2;
    while more <= rollouts {
        let n = more;
        add(format!("--set ppo.minibatches={n}"), &move |c| {
            c.ppo.minibatches = n;
        });
        more *= 2;
    }
    let mut fewer = config.rollout.batch / 2;
    while fewer > 0 {
        let n = fewer;
        add(format!("--set rollout.batch={n}"), &move |c| {
            c.rollout.batch = n;
        });
        fewer /= 2;
    }
    if config.workers > 1 {
        add("--workers 1".into(), &|c| c.workers = 1);
    }
    if config.ppo.value == ValueKind::Separate {
        add("--set ppo.value=head".into(), &|c| {
            c.ppo.value = ValueKind::Head;
        });
    }
    add(
        format!(
            "--workers 1 --set ppo.value=head --set rollout.batch=1 --set ppo.minibatches={rollouts}"
        ),
        &move |c| {
            c.workers = 1;
            c.ppo.value = ValueKind::Head;
            c.rollout.batch = 1;
            c.ppo.minibatches = rollouts;
        },
    );
    let fits = |c: &TrainConfig, shape: &LlamaConfig| planned(c, shape, length).peak() <= there;
    if let Some((text, _)) = candidates.iter().find(|(_, c)| fits(c, shape)) {
        return format!("It would fit with {text}.");
    }
    let named = catalogue::all().unwrap_or_default();
    let smaller = named
        .iter()
        .filter(|m| m.config.max_position_embeddings >= length && fits(config, &m.config))
        .max_by_key(|m| m.entry.parameters);
    match smaller {
        Some(model) => format!(
            "No setting makes it fit; the largest named model that would is {}.",
            model.name
        ),
        None => "No setting makes it fit; shorter dialogs (rollout.max_new_tokens), a smaller model or more memory \
                 would."
            .into(),
    }
}

/// 123 MiB, 4.56 GiB.
fn readable(bytes: u64) -> String {
    let gib = bytes as f64 / f64::from(1u32 << 30);
    if gib >= 1.0 {
        format!("{gib:.2} GiB")
    } else {
        format!("{:.1} MiB", gib * 1024.0)
    }
}
