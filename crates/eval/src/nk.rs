//! n@k: the share of problems solved when n of k sampled answers may be submitted and only the public tests help to
//! choose them (Li et al. 2022, AlphaCode; for dialogs RLEF, arXiv 2410.02089, section 3.2 and B.1).
//!
//! Every turn of a dialog counts against k. With up to T turns a rollout, k = m·T + r answers are m whole rollouts and,
//! if r > 0, one cut after its first r turns; a rollout that ended early leaves its budget unused. Each of them has one
//! candidate: its last answer. Of the candidates n are submitted: first those that pass the public tests, in random
//! order, then the others. The problem is solved if one of the submitted passes every test.
//!
//! What is computed is the expected value of that over the choice of m (+ 1) different rollouts from the pool and over
//! the random order. It is exact, with no sampling: a candidate is of one of three kinds, so a sum over how many of
//! each kind are drawn (a multivariate hypergeometric distribution) is all there is to it.

use serde::{Deserialize, Serialize};

use crate::error::EvalError;
use crate::record::{ProblemPool, Rollout};

/// Which n@k, and how the k answers are spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Answers that may be submitted.
    pub n: usize,
    /// Answers that may be sampled.
    pub k: usize,
    /// T: the most turns a rollout may use; later turns in the records are not looked at. 1 means independent tries.
    pub turns: usize,
}

impl Budget {
    /// A budget.
    ///
    /// # Errors
    /// Unless 1 ≤ n ≤ k and there is at least one turn.
    pub fn new(n: usize, k: usize, turns: usize) -> Result<Self, EvalError> {
        if n == 0 || n > k {
            return Err(EvalError::Budget { n, k });
        }
        if turns == 0 {
            return Err(EvalError::TurnLimit {
                asked: 0,
                recorded: turns.max(1),
            });
        }
        Ok(Self { n, k, turns })
    }

    /// m: whole rollouts.
    pub fn whole(&self) -> usize {
        self.k / self.turns.max(1)
    }

    /// r: turns of the cut rollout; 0 if there is none.
    pub fn rest(&self) -> usize {
        self.k % self.turns.max(1)
    }

    /// Rollouts of a problem that must be in the pool.
    pub fn needed(&self) -> usize {
        self.whole() + usize::from(self.rest() > 0)
    }
}

impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}@{}", self.n, self.k))
    }
}

/// The three kinds of candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Fails a public test.
    Failed = 0,
    /// Passes the public tests, fails a private one.
    PublicOnly = 1,
    /// Passes everything.
    Solved = 2,
}

const KINDS: [Kind; 3] = [Kind::Failed, Kind::PublicOnly, Kind::Solved];

/// The kinds of a rollout's candidate: of the whole rollout, and of the cut one (the same if none is cut).
pub(crate) type Kinds = (Kind, Kind);

/// What of a rollout counts for `budget`.
pub(crate) fn kinds(rollout: &Rollout, budget: &Budget) -> Kinds {
    let after = |turns: usize| {
        let used = turns.min(rollout.turns.len());
        match used.checked_sub(1).and_then(|last| rollout.turns.get(last)) {
            Some(answer) if answer.solved => Kind::Solved,
            Some(answer) if answer.public_passed => Kind::PublicOnly,
            _ => Kind::Failed,
        }
    };
    let whole = after(budget.turns);
    (
        whole,
        if budget.rest() > 0 {
            after(budget.rest())
        } else {
            whole
        },
    )
}

/// The expected value for one problem.
///
/// # Errors
/// If the pool holds fewer rollouts than the budget needs.
pub fn n_at_k(problem: &ProblemPool, budget: &Budget) -> Result<f64, EvalError> {
    let all: Vec<Kinds> = problem.rollouts.iter().map(|r| kinds(r, budget)).collect();
    if all.len() < budget.needed() {
        return Err(EvalError::PoolTooSmall {
            n: budget.n,
            k: budget.k,
            turns: budget.turns,
            needed: budget.needed(),
            problem: problem.id.clone(),
            has: all.len(),
        });
    }
    Ok(expected(&all, budget))
}

/// The expected value over the choice of rollouts; there must be enough of them.
pub(crate) fn expected(all: &[Kinds], budget: &Budget) -> f64 {
    let m = budget.whole();
    // pairs[whole][cut]: rollouts of each kind in both ways.
    let mut pairs = [[0usize; 3]; 3];
    for (whole, cut) in all {
        pairs[*whole as usize][*cut as usize] += 1;
    }
    let counts = pairs.map(|row| row.iter().sum::<usize>());
    let logs = LnFactorials::new(all.len());
    if budget.rest() == 0 {
        return over_draws(counts, m, budget.n, None, &logs);
    }
    let mut sum = 0.0;
    for whole in KINDS {
        for cut in KINDS {
            let how_many = pairs[whole as usize][cut as usize];
            if how_many > 0 {
                let mut others = counts;
                others[whole as usize] -= 1;
                sum += how_many as f64 * over_draws(others, m, budget.n, Some(cut), &logs);
            }
        }
    }
    sum / all.len() as f64
}

/// Expected value when `m` rollouts are drawn from `counts` (by kind) and `cut` is a candidate besides.
fn over_draws(
    counts: [usize; 3],
    m: usize,
    n: usize,
    cut: Option<Kind>,
    logs: &LnFactorials,
) -> f64 {
    let [failed, public_only, solved] = counts;
    let total = failed + public_only + solved;
    let more_solved = usize::from(cut == Some(Kind::Solved));
    let more_passing = usize::from(cut.is_some_and(|kind| kind != Kind::Failed));
    let mut sum = 0.0;
    for s in 0..=solved.min(m) {
        for b in 0..=public_only.min(m - s) {
            let f = m - s - b;
            let chance = submitted_solves(n, s + b + more_passing, s + more_solved);
            if f > failed || chance == 0.0 {
                continue;
            }
            let log_weight =
                logs.choose(solved, s) + logs.choose(public_only, b) + logs.choose(failed, f)
                    - logs.choose(total, m);
            sum += log_weight.exp() * chance;
        }
    }
    // The logarithms leave an error of some 1e-14; without it a half is written as 0.5.
    ((sum * 1e12).round() / 1e12).clamp(0.0, 1.0)
}

/// Chance that one of `n` submitted candidates solves the problem, when `passing` of them pass the public tests and
/// `solved` of those pass everything. Those that fail a public test cannot solve it, so they only use up what is left.
fn submitted_solves(n: usize, passing: usize, solved: usize) -> f64 {
    1.0 - none_drawn(passing, solved, n.min(passing))
}

/// Chance that `draws` different ones out of `total` hold none of the `marked`.
fn none_drawn(total: usize, marked: usize, draws: usize) -> f64 {
    if marked > 0 && draws > total - marked {
        return 0.0;
    }
    (0..draws)
        .map(|i| (total - marked - i) as f64 / (total - i) as f64)
        .product()
}

/// pass@k, the unbiased estimate: the chance that k of `samples` independent tries hold at least one of the `correct`
/// (Chen et al. 2021, arXiv 2107.03374).
///
/// # Errors
/// Unless 1 ≤ k ≤ samples and correct ≤ samples.
pub fn pass_at_k(samples: usize, correct: usize, k: usize) -> Result<f64, EvalError> {
    if k == 0 || k > samples || correct > samples {
        return Err(EvalError::PassAtK {
            samples,
            correct,
            k,
        });
    }
    Ok(1.0 - none_drawn(samples, correct, k))
}

/// Natural logarithms of factorials.
struct LnFactorials(Vec<f64>);

impl LnFactorials {
    fn new(most: usize) -> Self {
        let mut sum = 0.0;
        let logs = (0..=most).map(|n| {
            sum += (n.max(1) as f64).ln();
            sum
        });
        Self(logs.collect())
    }

    fn choose(&self, n: usize, k: usize) -> f64 {
        self.0[n] - self.0[k] - self.0[n - k]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::TurnRecord;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    /// `f`, `p` or `s` for each answer; rollouts apart by spaces.
    fn pool(text: &str) -> ProblemPool {
        let turn = |c| TurnRecord {
            public_passed: c != 'f',
            solved: c == 's',
        };
        let rollouts = text.split(' ').map(|r| Rollout {
            turns: r.chars().map(turn).collect(),
        });
        ProblemPool {
            id: "p".into(),
            rollouts: rollouts.collect(),
            lost: 0,
        }
    }

    fn value(text: &str, n: usize, k: usize, turns: usize) -> f64 {
        n_at_k(&pool(text), &Budget::new(n, k, turns).unwrap()).unwrap()
    }

    #[test]
    fn worked_by_hand() {
        // 1@3 of three-turn rollouts is the share of rollouts that end solved.
        close(value("s ffs fff ffp", 1, 3, 3), 0.5);
        // 1@1 looks at first answers only, 1@2 at the first two.
        close(value("s ffs fff fs", 1, 1, 3), 0.25);
        close(value("s ffs fff fs", 1, 2, 3), 0.5);
        // Independent tries, three of four, one submitted; one right, three wrong: the right one is drawn in 3 of 4
        // choices and then chosen, because the wrong ones fail the public tests.
        close(value("s f f f", 1, 3, 1), 0.75);
        // The same with wrong ones that pass the public tests: drawn in 3 of 4, then chosen in 1 of 3.
        close(value("s p p p", 1, 3, 1), 0.25);
        // Two submitted of three drawn: 3/4 × 2/3.
        close(value("s p p p", 2, 3, 1), 0.5);
        // Mixed: draws {s,p,f} ×1, {s,p,f'} ×1, {s,f,f'} ×1, {p,f,f'} ×1 → (1/2 + 1/2 + 1 + 0) / 4.
        close(value("s p f f", 1, 3, 1), 0.5);
        // 1@4 of three-turn rollouts = one whole and one first answer, of different rollouts. Whole: A solved late, B
        // failed, C passes public only at once. Cut first: A f, B f, C p. Pairs (whole, cut): AB 1, AC 1/2, BA 0,
        // BC 0, CA 0, CB 0.
        close(value("ffs fff p", 1, 4, 3), 1.5 / 6.0);
        // 2@4: AC has both submitted, so 1.
        close(value("ffs fff p", 2, 4, 3), 2.0 / 6.0);
        // More to submit than candidates: as good as all of them.
        close(value("ffs fff p", 4, 4, 3), 2.0 / 6.0);
        // All or nothing.
        close(value("s s s", 1, 3, 1), 1.0);
        close(value("f f f", 3, 3, 1), 0.0);
    }

    #[test]
    fn a_budget_says_how_it_is_spent() {
        let budget = Budget::new(10, 100, 3).unwrap();
        assert_eq!(
            (budget.whole(), budget.rest(), budget.needed()),
            (33, 1, 34)
        );
        assert_eq!(budget.to_string(), "10@100");
        let budget = Budget::new(1, 2, 3).unwrap();
        assert_eq!((budget.whole(), budget.rest(), budget.needed()), (0, 2, 1));
        assert!(
            Budget::new(0, 3, 3).is_err()
                && Budget::new(4, 3, 3).is_err()
                && Budget::new(1, 3, 0).is_err()
        );
    }

    #[test]
    fn a_pool_too_small_says_what_is_needed() {
        let error = n_at_k(&pool("fff ffs"), &Budget::new(1, 7, 3).unwrap()).unwrap_err();
        assert!(
            matches!(
                error,
                EvalError::PoolTooSmall {
                    needed: 3,
                    has: 2,
                    ..
                }
            ),
            "{error:?}"
        );
        assert!(error.to_string().contains("needs 3 rollouts"), "{error}");
    }

    #[test]
    fn pass_at_k_by_hand() {
        close(pass_at_k(5, 2, 1).unwrap(), 0.4);
        // 1 − C(3,2)/C(5,2) = 1 − 3/10.
        close(pass_at_k(5, 2, 2).unwrap(), 0.7);
        close(pass_at_k(5, 2, 4).unwrap(), 1.0);
        close(pass_at_k(5, 0, 5).unwrap(), 0.0);
        close(pass_at_k(5, 5, 1).unwrap(), 1.0);
        for (samples, correct, k) in [(5, 2, 0), (5, 2, 6), (5, 6, 1), (0, 0, 1)] {
            assert!(pass_at_k(samples, correct, k).is_err());
        }
    }

    #[test]
    fn large_pools_stay_exact() {
        // 200 tries of which 20 right: k@k is pass@k.
        let text: Vec<&str> = (0..200).map(|i| if i < 20 { "s" } else { "f" }).collect();
        close(
            value(&text.join(" "), 100, 100, 1),
            pass_at_k(200, 20, 100).unwrap(),
        );
        close(
            value(&text.join(" "), 1, 10, 1),
            pass_at_k(200, 20, 10).unwrap(),
        );
    }

    /// Every ordered choice of different rollouts, every order of submission: by brute force.
    fn enumerated(pool: &ProblemPool, budget: &Budget) -> f64 {
        fn choices(
            left: usize,
            from: usize,
            used: &mut Vec<usize>,
            each: &mut dyn FnMut(&[usize]),
        ) {
            if left == 0 {
                return each(used);
            }
            for i in 0..from {
                if !used.contains(&i) {
                    used.push(i);
                    choices(left - 1, from, used, each);
                    used.pop();
                }
            }
        }
        let (mut sum, mut count) = (0.0, 0.0);
        choices(
            budget.needed(),
            pool.rollouts.len(),
            &mut Vec::new(),
            &mut |chosen| {
                let answers: Vec<TurnRecord> = chosen
                    .iter()
                    .enumerate()
                    .map(|(place, rollout)| {
                        let turns = &pool.rollouts[*rollout].turns;
                        let limit = if place < budget.whole() {
                            budget.turns
                        } else {
                            budget.rest()
                        };
                        turns[turns.len().min(limit) - 1]
                    })
                    .collect();
                // Orders of submission: those that pass first.
                let (mut solved, mut orders) = (0.0, 0.0);
                choices(
                    answers.len(),
                    answers.len(),
                    &mut Vec::new(),
                    &mut |order| {
                        let sorted = order
                            .windows(2)
                            .all(|w| answers[w[0]].public_passed >= answers[w[1]].public_passed);
                        if sorted {
                            orders += 1.0;
                            solved +=
                                f64::from(order.iter().take(budget.n).any(|i| answers[*i].solved));
                        }
                    },
                );
                sum += solved / orders;
                count += 1.0;
            },
        );
        sum / count
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn agrees_with_enumeration(
            rollouts in prop::collection::vec(prop::collection::vec(0u8..3, 1..4), 1..6),
            n in 1usize..4,
            k in 1usize..9,
            turns in 1usize..4,
        ) {
            let turn = |c: u8| TurnRecord { public_passed: c > 0, solved: c == 2 };
            let rollouts: Vec<Rollout> = rollouts
                .into_iter()
                .map(|r| Rollout { turns: r.into_iter().map(turn).collect() })
                .collect();
            let pool = ProblemPool { id: "p".into(), rollouts, lost: 0 };
            prop_assume!(n <= k);
            let budget = Budget::new(n, k, turns).unwrap();
            prop_assume!(budget.needed() <= pool.rollouts.len());
            let (exact, brute) = (n_at_k(&pool, &budget).unwrap(), enumerated(&pool, &budget));
            prop_assert!((exact - brute).abs() < 1e-9, "{} {}", exact, brute);
        }
    }
}
