//! The audit with the real sandbox: a small problem for every kind of finding.

mod programs;
mod set;
mod stopping;
mod test_data;

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use rlef_judge::audit::{AuditConfig, Done, Finding, Item, Kind, Record, check_all};
use rlef_judge::{Judge, JudgeConfig};
use rlef_problems::{Checker, Problem, Solution, TestCase};
use rlef_sandbox::{Config, Sandbox};

fn config() -> JudgeConfig {
    JudgeConfig {
        cache: false,
        ..JudgeConfig::default()
    }
}

fn judge() -> &'static Judge {
    static JUDGE: OnceLock<Judge> = OnceLock::new();
    JUDGE.get_or_init(|| {
        let sandbox = Sandbox::new(Config::default()).expect("these tests need a sandbox");
        Judge::new(sandbox, config()).unwrap()
    })
}

fn test(name: &str, input: &str, output: &str) -> TestCase {
    TestCase {
        name: name.into(),
        input: input.into(),
        output: output.into(),
    }
}

fn program(file: &str, expected: &str, code: &str) -> Solution {
    Solution {
        file: file.into(),
        language: "python3".into(),
        class: None,
        expected: expected.into(),
        code: code.into(),
    }
}

const SQUARE: &str = "print(int(input()) ** 2)";
const DOUBLE: &str = "print(int(input()) * 2)";

/// Nothing is wrong with it.
fn square() -> Problem {
    Problem {
        id: "square".into(),
        name: String::new(),
        statement: "Read an integer and print its square.".into(),
        time_limit_s: 1.0,
        memory_limit_mb: 128,
        checker: Checker::default(),
        function: None,
        public_tests: vec![test("a", "2\n", "4\n"), test("b", "3\n", "9\n")],
        private_tests: vec![test("c", "0\n", "0\n"), test("d", "-5\n", "25\n")],
        generated_tests: vec![test("e", "7\n", "49\n")],
        solutions: vec![program("right.py", "AC", SQUARE)],
        wrong_solutions: vec![program("zero.py", "WA", "print(-1)")],
        meta: serde_json::Map::new(),
    }
}

fn checked_with(judge: &Judge, config: &AuditConfig, problem: Problem) -> Record {
    let item = Item {
        number: 0,
        split: None,
        problem,
    };
    let mut records = vec![];
    let items = std::iter::once(Ok::<_, std::convert::Infallible>(item));
    let stop = AtomicBool::new(false);
    check_all(judge, config, items, 2, &stop, |done| {
        if let Done::Problem { record, .. } = done {
            records.push(record);
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(records.len(), 1);
    records.remove(0)
}

fn checked(problem: Problem) -> Record {
    checked_with(judge(), &AuditConfig::default(), problem)
}

fn kinds(record: &Record) -> Vec<Kind> {
    record.findings.iter().map(|finding| finding.kind).collect()
}

/// The one finding of that kind.
fn finding(record: &Record, kind: Kind) -> &Finding {
    let found: Vec<_> = record.findings.iter().filter(|f| f.kind == kind).collect();
    assert_eq!(found.len(), 1, "{kind}: {:#?}", record.findings);
    found[0]
}
