//! Settings, and the limits that they and a problem give.

use std::time::Duration;

use rlef_judge::{Fault, Judge, JudgeConfig, Stop};
use rlef_problems::Problem;

use crate::{Fake, judge_with, problem, quick};

#[test]
fn settings_and_limits_out_of_range_are_errors() {
    for config in [
        JudgeConfig {
            time_factor: 0.0,
            ..quick()
        },
        JudgeConfig {
            wall_factor: f64::NAN,
            ..quick()
        },
        JudgeConfig {
            wall_extra_s: -1.0,
            ..quick()
        },
        JudgeConfig {
            wall_extra_s: 0.0,
            wall_factor: 0.5,
            ..quick()
        },
        JudgeConfig {
            memory_factor: f64::INFINITY,
            ..quick()
        },
        JudgeConfig {
            output_bytes: 0,
            ..quick()
        },
        JudgeConfig {
            processes: 0,
            ..quick()
        },
    ] {
        let result = Judge::new(Fake::default(), config.clone());
        assert!(matches!(result, Err(Fault::Setting { .. })), "{config:?}");
    }
    let (_, judge) = judge_with(quick());
    for time_limit_s in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
        let problem = Problem {
            time_limit_s,
            ..problem()
        };
        let result = judge.judge(&problem, "1: print 1", &problem.public_tests, Stop::Never);
        assert!(
            matches!(result, Err(Fault::Limits { .. })),
            "{time_limit_s}"
        );
    }
    for memory_limit_mb in [0, u64::MAX] {
        let problem = Problem {
            memory_limit_mb,
            ..problem()
        };
        let result = judge.judge(&problem, "1: print 1", &problem.public_tests, Stop::Never);
        assert!(
            matches!(result, Err(Fault::Limits { .. })),
            "{memory_limit_mb}"
        );
    }
}

#[test]
fn limits_follow_the_problem_and_the_factors() {
    let config = JudgeConfig {
        time_factor: 2.0,
        memory_factor: 0.5,
        ..quick()
    };
    let limits = config
        .limits_for(&Problem {
            time_limit_s: 1.5,
            ..problem()
        })
        .unwrap();
    assert_eq!(limits.cpu, Duration::from_secs(3));
    assert_eq!(limits.wall, Duration::from_secs(9));
    assert_eq!(limits.memory_bytes, 32 << 20);
    let limits = quick()
        .limits_for(&Problem {
            time_limit_s: 0.5,
            ..problem()
        })
        .unwrap();
    assert_eq!(limits.wall, Duration::from_millis(2500));
}

/// Below these, what the judge itself writes and starts would be charged to programs.
#[test]
fn limits_too_small_for_the_harness_are_told_with_the_range() {
    for (config, setting, range) in [
        (
            JudgeConfig {
                file_bytes: 0,
                ..quick()
            },
            "file_bytes",
            "at least 65536",
        ),
        (
            JudgeConfig {
                file_bytes: 1,
                ..quick()
            },
            "file_bytes",
            "at least 65536",
        ),
        (
            JudgeConfig {
                file_bytes: 65_535,
                ..quick()
            },
            "file_bytes",
            "at least 65536",
        ),
        (
            JudgeConfig {
                output_bytes: 7,
                ..quick()
            },
            "output_bytes",
            "at least 1024",
        ),
        (
            JudgeConfig {
                processes: 0,
                ..quick()
            },
            "processes",
            "at least 1",
        ),
    ] {
        let said = config.check().expect_err(setting).to_string();
        assert!(said.contains(setting) && said.contains(range), "{said}");
    }
    let least = JudgeConfig {
        file_bytes: 64 << 10,
        output_bytes: 1 << 10,
        processes: 1,
        ..quick()
    };
    assert!(least.check().is_ok());
    for (time_limit_s, memory_limit_mb, factor, range) in [
        (1e-9, 64, 1.0, "`cpu` is 1ns; it must be from 100ms"),
        (1e8, 64, 1.0, "(a year)"),
        (
            1.0,
            1,
            0.5,
            "`memory_bytes` is 524288; it must be from 1048576",
        ),
        (1.0, 1, 1e-30, "`memory_bytes` is 0"),
        (1.0, 1 << 60, 1e30, "`memory_bytes` is 18446744073709551615"),
    ] {
        let problem = Problem {
            time_limit_s,
            memory_limit_mb,
            ..problem()
        };
        let config = JudgeConfig {
            memory_factor: factor,
            ..quick()
        };
        let said = config.limits_for(&problem).expect_err(range).to_string();
        assert!(
            said.contains("problem square") && said.contains(range),
            "{said}"
        );
    }
}
