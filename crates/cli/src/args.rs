//! What can be typed. Only that: what it means is decided in `commands`.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Train and evaluate code models inside the loop in which they are used: a model writes a program, a sandbox runs
/// it, the failures come back, the model tries again.
#[derive(Debug, Parser)]
#[command(name = "rlef", version, max_term_width = 100)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Teach a model to use feedback with RLEF (PPO); ends with a table and a plot.
    Train(Train),
    /// Make a small base model by supervised fine-tuning on dialogs.
    Sft(Sft),
    /// State an honest n@k with confidence intervals.
    Eval(Eval),
}

/// Where settings come from.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// Settings in a TOML file; see configs/.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// One setting, e.g. --set ppo.clip=0.1; may be given more than once and wins over the file.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of everything random.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Threads.
    #[arg(long)]
    pub workers: Option<usize>,
    /// cpu, cuda or cuda:N.
    #[arg(long)]
    pub device: Option<String>,
    /// Problem set: micro, micro:SEED, basics, a JSONL file, or a folder with train.jsonl, valid.jsonl, test.jsonl.
    #[arg(long, value_name = "SET")]
    pub problems: Option<String>,
    /// Only print the resolved plan.
    #[arg(long)]
    pub dry_run: bool,
}

/// `rlef train`
#[derive(Debug, clap::Args)]
pub struct Train {
    /// Where settings come from.
    #[command(flatten)]
    pub settings: Settings,
    /// The model to start from: tiny (embedded) or a folder in Hugging Face layout.
    #[arg(long)]
    pub model: Option<String>,
    /// Iterations.
    #[arg(long)]
    pub iterations: Option<usize>,
    /// Run folder; default runs/train-N.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `rlef sft`
#[derive(Debug, clap::Args)]
pub struct Sft {
    /// Where settings come from.
    #[command(flatten)]
    pub settings: Settings,
    /// Folder for the model.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// What the model is told between answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Feedback {
    /// The failures of its own program.
    Real,
    /// Failures from another problem.
    Random,
    /// Only that it should try again.
    None,
}

/// `rlef eval`
#[derive(Debug, clap::Args)]
pub struct Eval {
    /// Where settings come from.
    #[command(flatten)]
    pub settings: Settings,
    /// The model: tiny (embedded), or a folder in Hugging Face layout (also a run's checkpoint).
    #[arg(long)]
    pub model: Option<String>,
    /// Answers that may be submitted.
    #[arg(long, default_value_t = 1)]
    pub n: usize,
    /// Answers that may be drawn, every turn counting as one.
    #[arg(long, default_value_t = 3)]
    pub k: usize,
    /// Split to measure on.
    #[arg(long, default_value = "test")]
    pub split: String,
    /// Problems of the split; default all.
    #[arg(long)]
    pub limit: Option<usize>,
    /// Rollouts of each problem; default: as few as n@k needs.
    #[arg(long)]
    pub rollouts: Option<u64>,
    /// Turns of a dialog; 1 makes every try independent.
    #[arg(long)]
    pub max_turns: Option<usize>,
    /// What the model is told between answers.
    #[arg(long, value_enum)]
    pub feedback: Option<Feedback>,
    /// Temperature.
    #[arg(long)]
    pub temperature: Option<f32>,
    /// Top-p.
    #[arg(long)]
    pub top_p: Option<f32>,
    /// Print JSON: the score with its interval, and every problem's value.
    #[arg(long)]
    pub json: bool,
    /// Write every dialog to this JSONL file.
    #[arg(long, value_name = "FILE")]
    pub dialogs: Option<PathBuf>,
}
