//! Averages over problems with bootstrap intervals, and paired differences between two conditions.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::error::EvalError;
use crate::nk::{Budget, Kinds, expected, kinds, n_at_k};
use crate::record::Pool;

/// What is drawn anew in each resample, and so what the interval is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resample {
    /// Problems, each with all its rollouts: how far the average may be from that over all problems of this kind. The
    /// chance in the rollouts is already in the problems' values, so it is not drawn again; a 95 % interval holds the
    /// truth 93–95 times in a hundred (`tests/scores.rs`). Says nothing where there is one problem only.
    Problems,
    /// Problems, and rollouts within each. Counts the chance in the rollouts twice, so it is wider than it need be:
    /// 95–99 times in a hundred. Shifted so that its centre is the estimate, because a pool with repeated rollouts has
    /// a lower n@k.
    #[default]
    ProblemsAndRollouts,
    /// Rollouts within each problem, problems fixed, plain percentiles: our reading of the paper's B.1 ("N results with
    /// replacement"). Says how far another run on the same problems may be; nothing about other problems.
    Rollouts,
}

/// How intervals are made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bootstrap {
    /// What is drawn anew. Default: problems and rollouts.
    pub over: Resample,
    /// How often. Default 200, as in the paper.
    pub resamples: usize,
    /// Share of the resamples inside the interval. Default 0.95.
    pub level: f64,
    /// Seed.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self {
            over: Resample::ProblemsAndRollouts,
            resamples: 200,
            level: 0.95,
            seed: 0,
        }
    }
}

/// An estimate and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl std::fmt::Display for Estimate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!(
            "{:.3} [{:.3}, {:.3}]",
            self.value, self.low, self.high
        ))
    }
}

/// n@k of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Which n@k.
    #[serde(flatten)]
    pub budget: Budget,
    /// The average over problems.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Problems averaged over.
    pub problems: usize,
    /// Problems left out because faults of the machinery left them too few rollouts.
    pub problems_left_out: usize,
    /// Rollouts in the pool of the problems averaged over.
    pub rollouts: usize,
    /// Rollouts lost to faults, in all problems.
    pub rollouts_lost: usize,
    /// Each problem's expected value.
    pub per_problem: Vec<ProblemScore>,
}

/// n@k of one problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProblemScore {
    /// Problem id.
    pub id: String,
    /// Expected value.
    pub value: f64,
}

/// How much better the first of two conditions is than the second, on the same problems.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// First minus second.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Problems compared.
    pub problems: usize,
    /// Problems left out because faults left them too few rollouts under one of the conditions.
    pub problems_left_out: usize,
}

impl Difference {
    /// Whether the interval leaves out 0.
    pub fn is_significant(&self) -> bool {
        self.estimate.low > 0.0 || self.estimate.high < 0.0
    }
}

/// A problem that can be averaged over.
struct Measured {
    id: String,
    value: f64,
    kinds: Vec<Kinds>,
}

/// n@k averaged over the problems of `pool`, with its interval.
///
/// # Errors
/// If the records contradict themselves, the budget asks for more turns than were recorded, a problem has too few
/// rollouts for another reason than faults, no problem is left, or a setting of the bootstrap is out of range.
pub fn score(pool: &Pool, budget: &Budget, bootstrap: &Bootstrap) -> Result<Score, EvalError> {
    bootstrap.check()?;
    let (measured, left_out) = measure(pool, budget)?;
    let estimate = bootstrap.estimate(&[(&measured, budget)], 0.0, |values| values[0]);
    Ok(Score {
        budget: *budget,
        estimate,
        problems: measured.len(),
        problems_left_out: left_out,
        rollouts: measured.iter().map(|m| m.kinds.len()).sum(),
        rollouts_lost: pool.problems.iter().map(|p| p.lost).sum(),
        per_problem: measured
            .into_iter()
            .map(|m| ProblemScore {
                id: m.id,
                value: m.value,
            })
            .collect(),
    })
}

/// The difference between two conditions on the same problems, first minus second. Problems are drawn for both
/// together, so what is hard about a problem falls out of the interval; the budgets may differ (dialogs against
/// independent tries: `turns` 3 and 1).
///
/// # Errors
/// As [`score`], and if a problem is in one pool only.
pub fn difference(
    first: (&Pool, &Budget),
    second: (&Pool, &Budget),
    bootstrap: &Bootstrap,
) -> Result<Difference, EvalError> {
    bootstrap.check()?;
    let ids = |pool: &Pool| {
        pool.problems
            .iter()
            .map(|p| p.id.clone())
            .collect::<std::collections::HashSet<_>>()
    };
    let all = ids(first.0);
    if let Some(problem) = all.symmetric_difference(&ids(second.0)).min() {
        return Err(EvalError::Unpaired {
            problem: problem.clone(),
        });
    }
    let (a, _) = measure(first.0, first.1)?;
    let (b, _) = measure(second.0, second.1)?;
    let mut by_id: std::collections::HashMap<String, Measured> =
        b.into_iter().map(|m| (m.id.clone(), m)).collect();
    let (a, b): (Vec<_>, Vec<_>) = a
        .into_iter()
        .filter_map(|m| by_id.remove(&m.id).map(|other| (m, other)))
        .unzip();
    let left_out = all.len() - a.len();
    if a.is_empty() {
        return Err(EvalError::NoProblems { left_out });
    }
    let estimate = bootstrap.estimate(&[(&a, first.1), (&b, second.1)], -1.0, |values| {
        values[0] - values[1]
    });
    Ok(Difference {
        estimate,
        problems: a.len(),
        problems_left_out: left_out,
    })
}

/// The problems that can be averaged over, and how many faults have spoilt.
fn measure(pool: &Pool, budget: &Budget) -> Result<(Vec<Measured>, usize), EvalError> {
    pool.check()?;
    if budget.turns > pool.turn_limit {
        return Err(EvalError::TurnLimit {
            asked: budget.turns,
            recorded: pool.turn_limit,
        });
    }
    let mut measured = Vec::with_capacity(pool.problems.len());
    let mut left_out = 0;
    for problem in &pool.problems {
        match n_at_k(problem, budget) {
            Ok(value) => {
                let kinds = problem.rollouts.iter().map(|r| kinds(r, budget)).collect();
                measured.push(Measured {
                    id: problem.id.clone(),
                    value,
                    kinds,
                });
            }
            Err(EvalError::PoolTooSmall { has, .. }) if has + problem.lost >= budget.needed() => {
                left_out += 1
            }
            Err(error) => return Err(error),
        }
    }
    if measured.is_empty() {
        return Err(EvalError::NoProblems { left_out });
    }
    Ok((measured, left_out))
}

impl Bootstrap {
    fn check(&self) -> Result<(), EvalError> {
        if self.resamples < 2 {
            let what = "must be at least 2; 200 is usual";
            return Err(EvalError::Bootstrap {
                setting: "resamples",
                what,
            });
        }
        if !(self.level > 0.0 && self.level < 1.0) {
            let what = "must lie between 0 and 1; 0.95 is usual";
            return Err(EvalError::Bootstrap {
                setting: "level",
                what,
            });
        }
        Ok(())
    }

    /// The estimate of `statistic`, a function of the conditions' averages with values from `least` to 1, and its
    /// interval. All conditions have the same problems in the same order.
    fn estimate(
        &self,
        conditions: &[(&Vec<Measured>, &Budget)],
        least: f64,
        statistic: impl Fn(&[f64]) -> f64,
    ) -> Estimate {
        let count = conditions.first().map_or(0, |(problems, _)| problems.len());
        let average = |values: Vec<f64>| values.iter().sum::<f64>() / count as f64;
        let averages: Vec<f64> = conditions
            .iter()
            .map(|(p, _)| average(p.iter().map(|m| m.value).collect()))
            .collect();
        let value = statistic(&averages);
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut resampled: Vec<f64> = (0..self.resamples)
            .map(|_| {
                let chosen: Vec<usize> = match self.over {
                    Resample::Rollouts => (0..count).collect(),
                    _ => (0..count).map(|_| rng.random_range(0..count)).collect(),
                };
                let averages: Vec<f64> = conditions
                    .iter()
                    .map(|(problems, budget)| {
                        average(
                            chosen
                                .iter()
                                .map(|i| self.again(&problems[*i], budget, &mut rng))
                                .collect(),
                        )
                    })
                    .collect();
                statistic(&averages)
            })
            .collect();
        resampled.sort_by(f64::total_cmp);
        let shift = match self.over {
            Resample::ProblemsAndRollouts => {
                let n = resampled.len() as f64;
                let mean = resampled.iter().sum::<f64>() / n;
                let spread = resampled.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
                // What lies within the noise of this very estimate is no bias, and would move an end across 0 by
                // chance.
                let noise = 3.0 * (spread / n).sqrt();
                Some(value - mean)
                    .filter(|s| s.abs() > noise)
                    .unwrap_or(0.0)
            }
            _ => 0.0,
        };
        let tail = (1.0 - self.level) / 2.0;
        let end = |share| (percentile(&resampled, share) + shift).clamp(least, 1.0);
        Estimate {
            value,
            low: end(tail),
            high: end(1.0 - tail),
        }
    }

    /// The problem's value, of its rollouts or of as many drawn from them with replacement.
    fn again(&self, problem: &Measured, budget: &Budget, rng: &mut ChaCha8Rng) -> f64 {
        if self.over == Resample::Problems {
            return problem.value;
        }
        let count = problem.kinds.len();
        let drawn: Vec<Kinds> = (0..count)
            .map(|_| problem.kinds[rng.random_range(0..count)])
            .collect();
        expected(&drawn, budget)
    }
}

/// The percentile of a sorted list, linear between its points.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len().saturating_sub(1)) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let at = |i: usize| sorted.get(i).or(sorted.last()).copied().unwrap_or(f64::NAN);
    at(below) + (at(above) - at(below)) * (place - place.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_by_hand() {
        let list = [0.0, 1.0, 2.0, 3.0];
        assert_eq!(percentile(&list, 0.0), 0.0);
        assert_eq!(percentile(&list, 0.5), 1.5);
        assert_eq!(percentile(&list, 1.0), 3.0);
        assert_eq!(percentile(&[7.0], 0.3), 7.0);
    }
}
