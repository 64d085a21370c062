//! What a slot needs for itself: found by running an empty program in it, so that what a program may use, and has
//! used, can be told apart from it. Only for slots with a control group, which counts everything together.

use std::time::Duration;

use crate::cgroup::{Group, Own};
use crate::slot::Slot;
use crate::supervise::{self, Done, Job, Source, Terms};
use crate::{Fault, Limits};

/// The first run touches memory that stays touched, and may read files; the second is like those to come.
const RUNS: u32 = 2;
/// What the slot and an empty program take on top of the idle slot where the kernel keeps no account of the most.
const WITHOUT_PEAK: u64 = 4 << 20;

/// Measures with `source`, a program that does nothing or next to it.
pub(crate) fn rehearse(slot: &Slot, source: Source, terms: &Terms) -> Result<(), Fault> {
    let Some(group) = &slot.group else {
        return Ok(());
    };
    let limits = Limits {
        memory_bytes: u64::MAX,
        ..Limits::with_cpu(Duration::from_secs(10))
    };
    let job = Job::new(source, b"", &limits, terms);
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(supervise::carry_out(slot, &job)?);
    }
    group.own.set(Own {
        memory: memory(group, &runs, slot.cold.is_none()),
        resident: runs.iter().map(|r| r.report.peak_bytes).max().unwrap_or(0),
        cpu: runs.iter().filter_map(besides).min().unwrap_or_default(),
    });
    Ok(())
}

/// Most that the group held, in bytes.
fn memory(group: &Group, runs: &[Done], warm: bool) -> u64 {
    let peaks = runs.iter().filter_map(|r| r.used?.peak);
    peaks.max().unwrap_or_else(|| {
        // The pages of a forked interpreter are those of the warm one, which are counted already.
        let program = runs.iter().map(|r| r.report.peak_bytes).max();
        let program = program.filter(|_| !warm).unwrap_or(0);
        group.held().unwrap_or(0) + program + WITHOUT_PEAK
    })
}

/// CPU time of a run besides that of the program.
fn besides(run: &Done) -> Option<Duration> {
    let program = Duration::from_micros(run.report.cpu_us);
    Some(run.used?.cpu?.saturating_sub(program))
}
