//! All of RLEF (arXiv 2410.02089) in one file, for reading and for changing: dialogs with execution feedback, the reward,
//! the advantage, the objective, the update. One thread learns, nothing is saved, and every number is a constant below;
//! `rlef train` does the same with settings, group methods, checkpoints and records.
//!
//!     cargo run --release -p rlef-rl --example minimal [ITERATIONS]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use burn::module::{AutodiffModule, Module, ModuleMapper, Param};
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{Device, Tensor};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rlef_env::{EpisodeConfig, PromptStyle};
use rlef_judge::{Judge, JudgeConfig};
use rlef_model::{Frame, ModelFolder, Sampling};
use rlef_policy::{Drive, LocalPolicy, Outcome, drive, tasks};
use rlef_problems::{Problem, ProblemSet};
use rlef_rl::batch::{Packed, Sample};
use rlef_rl::{ActorCritic, How, ValueKind};
use rlef_sandbox::{Config, Sandbox};

const PROBLEMS: usize = 128; // an iteration, one dialog each
const TURNS: usize = 3;
const MINIBATCH: usize = 32;
const CLIP: f32 = 0.2; // ε
const VALUE_CLIP: f32 = 0.2; // α
const VALUE_WEIGHT: f32 = 0.5;
const BETA: f32 = 0.05; // price of leaving the reference policy
const LR: f64 = 1.5e-4;
const WARMUP: f64 = 40.0; // updates
const SEED: u64 = 0;
const PLAIN: How = How {
    temperature: 1.0,
    value_moves_policy: false,
};

fn main() -> Result<(), Box<dyn Error>> {
    let iterations: usize = std::env::args().nth(1).map_or(Ok(40), |n| n.parse())?;

    // What the policy acts in: problems, a sandbox that runs its programs, a judge that compares what they print.
    let set = ProblemSet::open("micro")?;
    let mut problems: Vec<Arc<Problem>> =
        set.split("train")?.iter().cloned().map(Arc::new).collect();
    let judge = Judge::new(Sandbox::new(Config::default())?, JudgeConfig::default())?;
    let episode = EpisodeConfig {
        max_turns: TURNS,
        prompt: PromptStyle::Brief,
        ..EpisodeConfig::default()
    };

    // The policy, the value (a layer on the policy's stream) and the reference, which never moves.
    let cpu = Device::flex();
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/tiny/base");
    let folder = ModelFolder::load(&base, &cpu)?;
    let frame = Arc::new(Frame::new(&folder.config, &cpu));
    let tokenizer = Arc::new(folder.tokenizer.clone());
    let start = ActorCritic::new(folder.model.clone(), ValueKind::Head, &frame, SEED, &cpu);
    let reference = start.clone();
    let graph = cpu.clone().autodiff();
    let graph_frame = Frame::new(&folder.config, &graph);
    let mut model = ActorCritic::from_inner(start).map(&mut Trainable);
    let mut adam = AdamWConfig::new()
        .with_beta_1(0.9)
        .with_beta_2(0.98)
        .with_epsilon(1e-5)
        .with_weight_decay(0.01)
        .init();

    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut updates = 0u64;
    for iteration in 0..iterations {
        // 1. Rollouts: the policy answers, its program is run, the failures come back, it tries again.
        problems.shuffle(&mut rng);
        let chosen = &problems[..PROBLEMS.min(problems.len())];
        let number = iteration as u64;
        let tasks = tasks(chosen, number..number + 1, &episode, SEED);
        let sampling = Sampling {
            temperature: 1.0,
            top_p: 1.0,
            top_k: 0,
            max_new_tokens: 48,
        };
        let now = model.valid();
        let policy = LocalPolicy::new(
            now.policy.clone(),
            frame.clone(),
            tokenizer.clone(),
            sampling,
            updates,
        );
        let settings = Drive {
            episode: episode.clone(),
            seed: SEED,
            workers: 2,
            batch: 64,
        };
        let running = AtomicBool::new(false);
        let (outcomes, _) = drive(&policy, &judge, &tasks, &settings, &running, &|_| {})?;
        // A fault of the machinery is never a reward: lost episodes are in nothing that follows.
        let rollouts: Vec<_> = outcomes.iter().filter_map(Outcome::rollout).collect();
        let solved = rollouts.iter().filter(|r| r.solved()).count();
        let mut samples: Vec<Sample> = rollouts.iter().map(|r| Sample::from_rollout(r)).collect();

        // 2. Log-probabilities under π_old and ρ, and the value at the last prompt token of each turn.
        for s in &mut samples {
            (s.old, s.values) = score(&now, &frame, s)?;
            (s.reference, _) = score(&reference, &frame, s)?;
        }

        // 3. Reward, return, advantage of each turn; all tokens of an answer share them.
        for s in &mut samples {
            credit(s);
        }
        normalise(&mut samples);

        // 4. Updates.
        let mut order: Vec<usize> = (0..samples.len()).collect();
        order.shuffle(&mut rng);
        for part in order.chunks(MINIBATCH) {
            let batch: Vec<&Sample> = part.iter().map(|&i| &samples[i]).collect();
            let loss = loss(&model, &graph_frame, &batch, &graph);
            let grads = GradientsParams::from_grads(loss.backward(), &model);
            updates += 1;
            let lr = LR * (updates as f64 / WARMUP).min(1.0);
            model = adam.step(lr, model, grads);
        }
        let reward = rollouts.iter().map(|r| r.reward()).sum::<f32>() / rollouts.len() as f32;
        let share = solved as f64 / rollouts.len() as f64;
        println!(
            "iteration {:>3}: reward {reward:+.3}, solved {share:.3}",
            iteration + 1
        );
    }
    Ok(())
}

/// Log-probability of every answer token and value of every turn, without gradients.
fn score(
    model: &ActorCritic,
    frame: &Frame,
    s: &Sample,
) -> Result<(Vec<f32>, Vec<f32>), Box<dyn Error>> {
    let device = model.policy.embed_tokens.val().device();
    let out = model.evaluate(
        &Packed::new(&[s], |s| s.answers.clone(), &device),
        frame,
        PLAIN,
    );
    let values = out.value_m.ok_or("a network without value")?;
    Ok((
        rlef_model::weights::values(out.logprob_n)?,
        rlef_model::weights::values(values)?,
    ))
}

/// `R_t = r_t − β · mean over the answer's tokens of log(π/ρ)`, `G_t = R_t + G_{t+1}`, `A_t = G_t − V_t`.
fn credit(s: &mut Sample) {
    let mut rewards = vec![];
    let mut at = 0;
    for (answer, task) in s.answers.iter().zip(&s.rewards) {
        let span = at..at + answer.len();
        at = span.end;
        let log_ratio: f32 = span.clone().map(|i| s.old[i] - s.reference[i]).sum();
        rewards.push(task - BETA * log_ratio / span.len().max(1) as f32);
    }
    let mut next = 0.0;
    for t in (0..rewards.len()).rev() {
        next += rewards[t];
        s.returns[t] = next;
        s.advantages[t] = next - s.values[t];
    }
}

/// Mean 0 and standard deviation 1 over the answer tokens of the iteration.
fn normalise(samples: &mut [Sample]) {
    let tokens: Vec<f64> = samples
        .iter()
        .flat_map(|s| s.token_advantages())
        .map(f64::from)
        .collect();
    let n = tokens.len().max(1) as f64;
    let mean = tokens.iter().sum::<f64>() / n;
    let std = (tokens.iter().map(|a| (a - mean).powi(2)).sum::<f64>() / n).sqrt();
    for a in samples.iter_mut().flat_map(|s| &mut s.advantages) {
        *a = ((f64::from(*a) - mean) / std.max(1e-8)) as f32;
    }
}

/// The clipped surrogate of every answer token and the clipped value loss of every turn, averaged. `_n` counts the answer
/// tokens of the minibatch, `_m` its turns.
fn loss(model: &ActorCritic, frame: &Frame, batch: &[&Sample], device: &Device) -> Tensor<1> {
    let packed = Packed::new(batch, |s| s.answers.clone(), device);
    let out = model.evaluate(&packed, frame, PLAIN);
    let list = |f: &dyn Fn(&Sample) -> Vec<f32>| -> Tensor<1> {
        let all: Vec<f32> = batch.iter().flat_map(|s| f(s)).collect();
        Tensor::from_data(all.as_slice(), device)
    };
    let (old_n, behaviour_n) = (list(&|s| s.old.clone()), list(&|s| s.behaviour.clone()));
    let advantage_n = list(&|s| s.token_advantages());
    let (old_m, return_m) = (list(&|s| s.values.clone()), list(&|s| s.returns.clone()));

    // r = π/π_old · stopgrad(min(π/π_b, 1))
    let stale_n = (out.logprob_n.clone() - behaviour_n)
        .exp()
        .clamp_max(1.0)
        .detach();
    let ratio_n = (out.logprob_n - old_n).exp() * stale_n;
    let plain_n = ratio_n.clone() * advantage_n.clone();
    let clipped_n = ratio_n.clamp(1.0 - CLIP, 1.0 + CLIP) * advantage_n;
    let policy_loss = plain_n.min_pair(clipped_n).mean().neg();

    // ½ · max((V − G)², (clip(V, V_old − α, V_old + α) − G)²)
    let Some(value_m) = out.value_m else {
        return policy_loss;
    };
    let near_m = old_m.clone() + (value_m.clone() - old_m).clamp(-VALUE_CLIP, VALUE_CLIP);
    let value_loss = (value_m - return_m.clone())
        .square()
        .max_pair((near_m - return_m).square())
        .mean()
        .mul_scalar(0.5);
    policy_loss + value_loss.mul_scalar(VALUE_WEIGHT)
}

/// Weights that were read ask for no gradients.
struct Trainable;

impl ModuleMapper for Trainable {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.set_require_grad(true)
    }
}
