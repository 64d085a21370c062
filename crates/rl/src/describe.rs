//! What an iteration was like, under the names that dashboards know.

use rlef_policy::{Rollout, Timing};

use crate::learner::UpdateStats;
use crate::trainer::Metrics;

pub(crate) fn mean(x: &[f32]) -> f64 {
    x.iter().map(|&x| f64::from(x)).sum::<f64>() / x.len().max(1) as f64
}

pub(crate) fn spread(name: &str, x: &[f32], metrics: &mut Metrics) {
    metrics.insert(format!("{name}/mean"), mean(x));
    metrics.insert(
        format!("{name}/max"),
        f64::from(x.iter().copied().fold(f32::NEG_INFINITY, f32::max)),
    );
    metrics.insert(
        format!("{name}/min"),
        f64::from(x.iter().copied().fold(f32::INFINITY, f32::min)),
    );
}

pub(crate) fn describe_rollouts(rollouts: &[&Rollout], metrics: &mut Metrics) {
    let n = rollouts.len().max(1) as f64;
    let turns: Vec<_> = rollouts.iter().flat_map(|r| &r.turns).collect();
    let m = turns.len().max(1) as f64;
    let share = |count: usize, of: f64| count as f64 / of;
    metrics.insert(
        "reward".into(),
        rollouts.iter().map(|r| f64::from(r.reward())).sum::<f64>() / n,
    );
    metrics.insert(
        "solved".into(),
        share(rollouts.iter().filter(|r| r.solved()).count(), n),
    );
    metrics.insert(
        "solved_first_turn".into(),
        share(
            rollouts
                .iter()
                .filter(|r| r.solved() && r.turns.len() == 1)
                .count(),
            n,
        ),
    );
    metrics.insert("num_turns/mean".into(), m / n);
    metrics.insert(
        "dialog_full".into(),
        share(rollouts.iter().filter(|r| r.full).count(), n),
    );
    metrics.insert(
        "response_length/mean".into(),
        turns.iter().map(|t| t.answer.len() as f64).sum::<f64>() / m,
    );
    metrics.insert(
        "response_length/clip_ratio".into(),
        share(turns.iter().filter(|t| !t.finished).count(), m),
    );
    metrics.insert(
        "invalid_code".into(),
        share(turns.iter().filter(|t| !t.step.valid_code).count(), m),
    );
}

pub(crate) fn describe_update(stats: &[UpdateStats], lr: f64, metrics: &mut Metrics) {
    if stats.is_empty() {
        return;
    }
    let n = stats.len() as f64;
    let mut put = |name: &str, f: fn(&UpdateStats) -> f64| {
        metrics.insert(name.into(), stats.iter().map(f).sum::<f64>() / n);
    };
    put("actor/pg_loss", |s| s.policy_loss);
    put("actor/pg_clipfrac", |s| s.clip_fraction);
    put("actor/ppo_kl", |s| s.kl);
    put("actor/entropy", |s| s.entropy);
    put("actor/grad_norm", |s| s.grad_norm);
    put("critic/vf_loss", |s| s.value_loss);
    put("actor/kl_loss", |s| s.reference_kl);
    put("actor/masked", |s| s.masked);
    const STALENESS: &str = "training/off_policy/trajectory_staleness";
    put(&format!("{STALENESS}/mean"), |s| s.staleness);
    let stalest = stats.iter().map(|s| s.stalest).max().unwrap_or(0);
    metrics.insert(format!("{STALENESS}/max"), stalest as f64);
    metrics.insert("actor/lr".into(), lr);
}

pub(crate) fn describe_time(
    timing: Timing,
    [rollout, score, update, total]: [f64; 4],
    tokens: usize,
    metrics: &mut Metrics,
) {
    // The workers' own time, scaled to wall-clock time.
    let busy = (timing.generate + timing.execute).as_secs_f64().max(1e-9);
    metrics.insert(
        "timing_s/gen".into(),
        rollout * timing.generate.as_secs_f64() / busy,
    );
    metrics.insert(
        "timing_s/execute".into(),
        rollout * timing.execute.as_secs_f64() / busy,
    );
    metrics.insert("timing_s/reference_and_values".into(), score);
    metrics.insert("timing_s/update".into(), update);
    metrics.insert("timing_s/step".into(), total);
    metrics.insert("perf/throughput".into(), tokens as f64 / total.max(1e-9));
}
