//! Averages, intervals, lost rollouts, comparisons and the table.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rlef_eval::{
    Bootstrap, Budget, Condition, EvalError, NamedDifference, Pool, ProblemPool, Resample, Rollout,
    Summary, TurnRecord, difference, score,
};

fn problem(id: &str, rollouts: &str, lost: usize) -> ProblemPool {
    let turn = |c| TurnRecord {
        public_passed: c != 'f',
        solved: c == 's',
    };
    let rollouts = rollouts.split_whitespace().map(|r| Rollout {
        turns: r.chars().map(turn).collect(),
    });
    ProblemPool {
        id: id.into(),
        rollouts: rollouts.collect(),
        lost,
    }
}

fn pool(problems: Vec<ProblemPool>) -> Pool {
    Pool {
        turn_limit: 3,
        problems,
    }
}

/// Intervals over problems alone, which can be followed by hand.
fn over_problems() -> Bootstrap {
    Bootstrap {
        over: Resample::Problems,
        ..Bootstrap::default()
    }
}

fn budget(n: usize, k: usize, turns: usize) -> Budget {
    Budget::new(n, k, turns).unwrap()
}

#[test]
fn the_average_over_problems_by_hand() {
    let pool = pool(vec![
        problem("a", "s fff", 0),
        problem("b", "ffs fs s fff", 0),
        problem("c", "fff fff", 0),
    ]);
    // 1/2, 3/4, 0.
    let score = score(&pool, &budget(1, 3, 3), &over_problems()).unwrap();
    assert!((score.estimate.value - 1.25 / 3.0).abs() < 1e-12);
    assert_eq!(
        (score.problems, score.rollouts, score.rollouts_lost),
        (3, 8, 0)
    );
    assert_eq!(score.per_problem[1].id, "b");
    assert!((score.per_problem[1].value - 0.75).abs() < 1e-12);
    assert!(
        score.estimate.low <= score.estimate.value && score.estimate.value <= score.estimate.high
    );
    // Each resample is an average of three of {0, 1/2, 3/4}.
    assert!(score.estimate.low >= 0.0 && score.estimate.high <= 0.75 + 1e-9);
}

#[test]
fn lost_rollouts_leave_the_average_and_are_counted() {
    let whole = pool(vec![problem("a", "s fff", 0), problem("b", "s s", 0)]);
    let lossy = pool(vec![
        problem("a", "s fff", 2),
        problem("b", "s s", 1),
        problem("c", "", 4),
    ]);
    let of = |pool: &Pool| score(pool, &budget(1, 3, 3), &Bootstrap::default()).unwrap();
    assert_eq!(
        of(&whole).estimate.value,
        of(&lossy).estimate.value,
        "a fault is not a failure"
    );
    assert_eq!(
        (
            of(&lossy).problems,
            of(&lossy).problems_left_out,
            of(&lossy).rollouts_lost
        ),
        (2, 1, 7)
    );
    assert!((lossy.lost_share() - 7.0 / 11.0).abs() < 1e-12);
    let nothing = pool(vec![problem("a", "", 3)]);
    let error = score(&nothing, &budget(1, 3, 3), &Bootstrap::default()).unwrap_err();
    assert_eq!(error, EvalError::NoProblems { left_out: 1 });
}

#[test]
fn what_cannot_be_scored_is_an_error() {
    let fails =
        |pool: &Pool, budget: &Budget| score(pool, budget, &Bootstrap::default()).unwrap_err();
    let usual = budget(1, 3, 3);
    let small = pool(vec![problem("a", "s s s", 0), problem("b", "s s", 0)]);
    let error = fails(&small, &budget(1, 9, 3));
    assert!(
        matches!(&error, EvalError::PoolTooSmall { problem, needed: 3, has: 2, .. } if problem == "b"),
        "{error}"
    );
    assert!(matches!(
        fails(&small, &budget(1, 4, 4)),
        EvalError::TurnLimit {
            asked: 4,
            recorded: 3
        }
    ));
    assert!(matches!(
        fails(&pool(vec![]), &usual),
        EvalError::NoProblems { left_out: 0 }
    ));
    assert!(matches!(
        fails(
            &pool(vec![problem("a", "s", 0), problem("a", "s", 0)]),
            &usual
        ),
        EvalError::Twice(_)
    ));
    assert!(matches!(
        fails(&pool(vec![problem("a", "ffff", 0)]), &usual),
        EvalError::Record { .. }
    ));
    let empty = ProblemPool {
        rollouts: vec![Rollout::default()],
        ..problem("a", "", 0)
    };
    assert!(matches!(
        fails(&pool(vec![empty]), &usual),
        EvalError::Record { .. }
    ));
    let odd = Rollout {
        turns: vec![TurnRecord {
            public_passed: false,
            solved: true,
        }],
    };
    let odd = ProblemPool {
        rollouts: vec![odd],
        ..problem("a", "", 0)
    };
    assert!(matches!(
        fails(&pool(vec![odd]), &usual),
        EvalError::Record { .. }
    ));
    for bad in [
        Bootstrap {
            resamples: 1,
            ..Bootstrap::default()
        },
        Bootstrap {
            level: 1.0,
            ..Bootstrap::default()
        },
        Bootstrap {
            level: f64::NAN,
            ..Bootstrap::default()
        },
    ] {
        assert!(
            matches!(
                score(&small, &usual, &bad),
                Err(EvalError::Bootstrap { .. })
            ),
            "{bad:?}"
        );
    }
}

/// `problems` problems of difficulty spread around `mean` ± `spread`, `rollouts` single tries each.
fn simulated(
    rng: &mut ChaCha8Rng,
    problems: usize,
    rollouts: usize,
    mean: f64,
    spread: f64,
) -> Pool {
    let problems = (0..problems).map(|i| {
        let chance = (mean + spread * (2.0 * rng.random::<f64>() - 1.0)).clamp(0.0, 1.0);
        let tries: Vec<&str> = (0..rollouts)
            .map(|_| {
                if rng.random::<f64>() < chance {
                    "s"
                } else {
                    "f"
                }
            })
            .collect();
        problem(&i.to_string(), &tries.join(" "), 0)
    });
    Pool {
        turn_limit: 1,
        problems: problems.collect(),
    }
}

/// How often the interval for 1@1 holds the true value, over `trials` evaluations.
fn coverage(over: Resample, spread: f64, trials: u64) -> f64 {
    let hits = (0..trials).filter(|seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(*seed);
        let pool = simulated(&mut rng, 60, 8, 0.4, spread);
        let bootstrap = Bootstrap {
            over,
            seed: *seed,
            ..Bootstrap::default()
        };
        let estimate = score(&pool, &budget(1, 1, 1), &bootstrap).unwrap().estimate;
        estimate.low <= 0.4 && 0.4 <= estimate.high
    });
    hits.count() as f64 / trials as f64
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    for spread in [0.0, 0.4] {
        let problems = coverage(Resample::Problems, spread, 400);
        assert!(
            (0.91..=0.98).contains(&problems),
            "problems, spread {spread}: {problems}"
        );
        let both = coverage(Resample::ProblemsAndRollouts, spread, 400);
        assert!(
            both >= problems && both >= 0.94,
            "both, spread {spread}: {both}"
        );
        println!("spread {spread}: problems {problems:.3}, problems and rollouts {both:.3}");
    }
    // With problems all alike the paper's variant is right too; with problems that differ it speaks of these only.
    let alike = coverage(Resample::Rollouts, 0.0, 400);
    let differ = coverage(Resample::Rollouts, 0.4, 400);
    println!("rollouts: {alike:.3} and {differ:.3}");
    assert!((0.90..=0.98).contains(&alike), "{alike}");
    assert!(differ < alike, "{differ}");
}

#[test]
fn intervals_follow_the_seed() {
    let pool = simulated(&mut ChaCha8Rng::seed_from_u64(1), 40, 6, 0.5, 0.3);
    for over in [
        Resample::Problems,
        Resample::ProblemsAndRollouts,
        Resample::Rollouts,
    ] {
        let with = |seed| {
            score(
                &pool,
                &budget(1, 2, 1),
                &Bootstrap {
                    over,
                    seed,
                    ..Bootstrap::default()
                },
            )
            .unwrap()
        };
        assert_eq!(with(1), with(1));
        assert_ne!(with(1).estimate.low, with(2).estimate.low);
        assert_eq!(with(1).estimate.value, with(2).estimate.value);
    }
}

#[test]
fn a_shared_difficulty_falls_out_of_a_paired_difference() {
    let rollouts = |share: usize| {
        (0..8)
            .map(|i| if i < share { "s" } else { "f" })
            .collect::<Vec<_>>()
            .join(" ")
    };
    let with = |more: usize| {
        let problems = (0..24).map(|i| problem(&i.to_string(), &rollouts(i % 7 + more), 0));
        Pool {
            turn_limit: 1,
            problems: problems.collect(),
        }
    };
    let (low, high) = (with(0), with(1));
    let one = budget(1, 1, 1);
    let bootstrap = over_problems();
    let found = difference((&high, &one), (&low, &one), &bootstrap).unwrap();
    assert!((found.estimate.value - 0.125).abs() < 1e-12);
    assert!(
        (found.estimate.low - 0.125).abs() < 1e-9 && (found.estimate.high - 0.125).abs() < 1e-9
    );
    assert!(found.is_significant());
    let back = difference((&low, &one), (&high, &one), &bootstrap).unwrap();
    assert!((back.estimate.value + 0.125).abs() < 1e-12 && back.is_significant());
    let same = difference((&low, &one), (&low, &one), &bootstrap).unwrap();
    assert!(!same.is_significant());
}

#[test]
fn dialogs_against_independent_tries_on_one_pool() {
    // Dialogs end solved in 2 of 4; first answers are right in 1 of 4, three of them in 3 of 4.
    let pool = pool(vec![problem("a", "s ffs fff fff", 0)]);
    let found = difference(
        (&pool, &budget(1, 3, 3)),
        (&pool, &budget(1, 3, 1)),
        &Bootstrap::default(),
    )
    .unwrap();
    assert!((found.estimate.value - (0.5 - 0.75)).abs() < 1e-12);
}

#[test]
fn problems_must_be_the_same_and_faults_leave_both_sides() {
    let one = budget(1, 3, 3);
    let bootstrap = Bootstrap::default();
    let a = pool(vec![problem("a", "s", 0), problem("b", "s", 0)]);
    let b = pool(vec![problem("b", "f", 0), problem("a", "", 1)]);
    let found = difference((&a, &one), (&b, &one), &bootstrap).unwrap();
    assert_eq!(
        (
            found.estimate.value,
            found.problems,
            found.problems_left_out
        ),
        (1.0, 1, 1)
    );
    let c = pool(vec![problem("a", "s", 0)]);
    let error = difference((&a, &one), (&c, &one), &bootstrap).unwrap_err();
    assert_eq!(
        error,
        EvalError::Unpaired {
            problem: "b".into()
        }
    );
}

#[test]
fn the_table_and_its_json() {
    let pool = pool(vec![problem("a", "s ffs fff fff", 0), problem("b", "", 4)]);
    let bootstrap = over_problems();
    let at = |k, turns| score(&pool, &budget(1, k, turns), &bootstrap).unwrap();
    let gain = difference(
        (&pool, &budget(1, 3, 3)),
        (&pool, &budget(1, 1, 3)),
        &bootstrap,
    )
    .unwrap();
    let summary = Summary {
        conditions: vec![
            Condition {
                name: "dialog".into(),
                scores: vec![at(1, 3), at(3, 3)],
            },
            Condition {
                name: "independent".into(),
                scores: vec![at(3, 1)],
            },
        ],
        differences: vec![NamedDifference {
            name: "1@3 − 1@1".into(),
            difference: gain,
        }],
    };
    let expected = "\
|             | 1@1                  | 1@3                  | problems       | rollouts | lost |
| ----------- | -------------------- | -------------------- | -------------- | -------- | ---- |
| dialog      | 0.250 [0.250, 0.250] | 0.500 [0.500, 0.500] | 1 (1 left out) | 4        | 4    |
| independent | -                    | 0.750 [0.750, 0.750] | 1 (1 left out) | 4        | 4    |

| difference | value                   | problems | beyond chance |
| ---------- | ----------------------- | -------- | ------------- |
| 1@3 − 1@1  | +0.250 [+0.250, +0.250] | 1        | yes           |
";
    assert_eq!(summary.table(), expected);
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["conditions"][0]["scores"][1]["k"], 3);
    assert_eq!(json["conditions"][0]["scores"][1]["value"], 0.5);
    assert_eq!(serde_json::from_value::<Summary>(json).unwrap(), summary);
}

/// One rollout a problem and one problem that differs: no resample can tell it from none by more than chance.
#[test]
fn a_single_problem_is_no_difference_beyond_chance() {
    for problems in [4, 40] {
        let make = |first: &str| {
            let of = |i: usize| problem(&i.to_string(), if i == 0 { first } else { "fff" }, 0);
            pool((0..problems).map(of).collect())
        };
        let (better, worse) = (make("s"), make("fff"));
        let budget = budget(1, 3, 3);
        let sure = (0..60)
            .filter(|&seed| {
                let bootstrap = Bootstrap {
                    seed,
                    ..Bootstrap::default()
                };
                let pair = ((&better, &budget), (&worse, &budget));
                difference(pair.0, pair.1, &bootstrap)
                    .unwrap()
                    .is_significant()
            })
            .count();
        // A few in a hundred of so many seeds may be unlucky.
        assert!(sure <= 4, "{sure} of 60 with {problems} problems");
    }
}
