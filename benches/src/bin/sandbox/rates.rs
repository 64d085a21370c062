//! Tests a second with all cores at work.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rlef_benches::said;

use crate::ways::{Setting, TESTS};

/// Rounds; the ways take turns.
const ROUNDS: u32 = 3;

/// Does its tests and says how many they were.
type Work<'a> = Box<dyn Fn() -> Result<u32> + Sync + 'a>;

pub fn measure(setting: &Setting, time: Duration) -> Result<()> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let sandbox = setting.sandbox(true)?;
    let (bare, bubblewrap) = (setting.bare(), setting.bubblewrap());
    let mut ways: Vec<(&str, Work)> = vec![
        ("bare", Box::new(|| setting.command(&bare).map(|_| 1))),
        (
            "**rlef**, one test a program",
            Box::new(|| setting.sandboxed(&sandbox).map(|()| 1)),
        ),
        (
            "**rlef**, ten tests a program",
            Box::new(|| setting.candidate(&sandbox).map(|()| TESTS)),
        ),
    ];
    if !said("bwrap", &["--version"]).is_empty() {
        let work = Box::new(|| setting.command(&bubblewrap).map(|_| 1));
        ways.push(("bubblewrap", work));
    }
    let mut done = vec![0.0; ways.len()];
    for _ in 0..ROUNDS {
        for ((_, work), sum) in ways.iter().zip(&mut done) {
            *sum += rate(workers, time, work)? / f64::from(ROUNDS);
        }
    }
    let bare = done.first().copied().unwrap_or(f64::NAN);
    println!(
        "{workers} at once, {ROUNDS} × {} s of each:\n\n| way | tests a second | ratio to bare |\n|---|---|---|",
        time.as_secs()
    );
    for ((name, _), rate) in ways.iter().zip(done) {
        println!("| {name} | {rate:.0} | {:.1} |", rate / bare);
    }
    Ok(())
}

fn rate(workers: usize, time: Duration, work: &Work) -> Result<f64> {
    let done = AtomicU32::new(0);
    let round = |until: Option<Instant>| -> Result<()> {
        loop {
            done.fetch_add(work()?, Ordering::Relaxed);
            if until.is_none_or(|at| Instant::now() >= at) {
                return Ok(());
            }
        }
    };
    let all = |until| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(|| round(until))).collect();
            threads.into_iter().try_for_each(|t| match t.join() {
                Ok(result) => result,
                Err(_) => bail!("a thread of the measurement ended early"),
            })
        })
    };
    // One each first: each has then what it keeps.
    all(None)?;
    done.store(0, Ordering::Relaxed);
    let start = Instant::now();
    all(Some(start + time))?;
    Ok(f64::from(done.load(Ordering::Relaxed)) / start.elapsed().as_secs_f64())
}
