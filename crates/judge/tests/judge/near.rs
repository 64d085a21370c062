//! Time limits that are only just missed are confirmed by a run alone.

use std::sync::atomic::AtomicBool;

use rlef_judge::{Job, Verdict};
use rlef_sandbox::PYTHON;

use super::*;

/// Runs whose source says how many milliseconds of CPU time they take beside others, and how many alone.
#[derive(Default)]
struct Machine {
    running: AtomicUsize,
    /// Whether a run under the limit itself was not alone.
    disturbed: AtomicBool,
    limits: Mutex<Vec<Duration>>,
}

impl Executor for Machine {
    fn run(&self, source: &str, _: &[u8], limits: &Limits) -> Result<Outcome, BoxError> {
        self.running.fetch_add(1, Ordering::SeqCst);
        self.limits.lock().unwrap().push(limits.cpu);
        let (busy, alone) = source.split_once(' ').ok_or("two numbers")?;
        let first = limits.cpu > Duration::from_secs(1);
        let cpu: u64 = if first { busy } else { alone }.parse()?;
        std::thread::sleep(Duration::from_millis(5));
        if !first && self.running.load(Ordering::SeqCst) > 1 {
            self.disturbed.store(true, Ordering::SeqCst);
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
        Ok(match Duration::from_millis(cpu) < limits.cpu {
            true => outcome(Ending::Exited(0), "1\n", "", cpu),
            false => outcome(Ending::CpuLimit, "", "", limits.cpu.as_millis() as u64),
        })
    }

    fn syntax_check(&self, _: &str, _: &Limits) -> Result<Option<String>, BoxError> {
        Ok(None)
    }
}

fn judged(config: JudgeConfig, code: &str) -> (Verdict, Vec<u64>) {
    let machine = Arc::new(Machine::default());
    let judge = Judge::new(Arc::clone(&machine), config).unwrap();
    let problem = problem();
    let tests = &problem.public_tests[..1];
    let report = judge.judge(&problem, code, tests, Stop::Never).unwrap();
    let limits = machine.limits.lock().unwrap();
    let limits = limits
        .iter()
        .map(|limit| limit.as_millis() as u64)
        .collect();
    (report.results[0].verdict, limits)
}

#[test]
fn what_was_near_the_limit_is_run_again_under_the_limit_itself() {
    use Verdict::{Accepted, TimeLimit};
    for (code, wanted) in [
        ("900 900", (Accepted, vec![1500])),
        // Slower only because of others.
        ("1200 900", (Accepted, vec![1500, 1000])),
        ("1000 999", (Accepted, vec![1500, 1000])),
        ("1499 1100", (TimeLimit, vec![1500, 1000])),
        // Far from it: once is enough.
        ("1500 1500", (TimeLimit, vec![1500])),
        ("9000 9000", (TimeLimit, vec![1500])),
    ] {
        assert_eq!(judged(quick(), code), wanted, "{code}");
    }
    let first_is_last = JudgeConfig {
        near_limit: 1.0,
        ..quick()
    };
    assert_eq!(judged(first_is_last, "1200 1200"), (TimeLimit, vec![1000]));
}

#[test]
fn it_is_run_again_with_nobody_beside_it() {
    let machine = Arc::new(Machine::default());
    let judge = Judge::new(Arc::clone(&machine), quick()).unwrap();
    let problem = problem();
    let codes: Vec<String> = (0..60).map(|n| format!("{} 9{:02}", 1100 + n, n)).collect();
    let jobs: Vec<Job> = (codes.iter())
        .map(|code| Job {
            problem: &problem,
            language: PYTHON,
            code,
            tests: &problem.public_tests[..1],
            stop: Stop::Never,
        })
        .collect();
    let reports = judge.judge_many(&jobs, 8);
    assert!(
        reports
            .iter()
            .all(|report| report.as_ref().unwrap().all_passed())
    );
    assert_eq!(judge.stats().confirmations, 60);
    assert!(!machine.disturbed.load(Ordering::SeqCst));
}

#[test]
fn the_confirmed_outcome_is_the_one_remembered() {
    let (_, judge) = {
        let machine = Arc::new(Machine::default());
        (Arc::clone(&machine), Judge::new(machine, quick()).unwrap())
    };
    let first = public(&judge, "1200 900");
    let again = public(&judge, "1200 900");
    assert_eq!(first, again);
    assert_eq!(judge.stats().confirmations, 3);
}
