//! What the processes of a run have used so far, read from the host's /proc while they run.
//!
//! Sampling, so a lower bound: a process that starts, ends and is reaped by nobody who counts between two looks is
//! missed here (each process is bounded by its own limits all the same).

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

/// Use of all processes of a run together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// CPU time, including that of children already waited for.
    pub cpu: Duration,
    /// Time that the hungriest thread of each process was ready to run but had no CPU; the largest of them.
    pub waited: Duration,
    /// Sum of resident memory, in bytes; shared pages count each time.
    pub resident: u64,
    /// Processes seen.
    pub processes: u32,
}

/// Walks the tree below `first`, the run's first process, which itself does not count as the program's.
pub(crate) fn look(first: i32) -> Usage {
    let mut usage = Usage::default();
    let mut pending = children(first);
    // Children that the first process has reaped, which are in its account only.
    if let Some(stat) = stat(first) {
        usage.cpu += ticks(stat.reaped_ticks);
    }
    while let Some(pid) = pending.pop() {
        let Some(stat) = stat(pid) else { continue };
        usage.cpu += ticks(stat.own_ticks + stat.reaped_ticks);
        usage.resident += stat.resident_pages * page();
        usage.processes += 1;
        pending.extend(children(pid));
    }
    usage
}

/// As [`look`], and how long they waited for a CPU.
pub(crate) fn look_closely(first: i32) -> Usage {
    let mut usage = look(first);
    let mut pending = vec![first];
    while let Some(pid) = pending.pop() {
        usage.waited = usage.waited.max(waited(pid));
        pending.extend(children(pid));
    }
    usage
}

/// Memory of all processes below `first`, shared pages counted once (in bytes); `None` where it cannot be read.
pub(crate) fn proportional_memory(first: i32) -> Option<u64> {
    let mut sum = 0;
    let mut pending = children(first);
    while let Some(pid) = pending.pop() {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let line = text.lines().find_map(|l| l.strip_prefix("Pss:"))?;
        sum += line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024;
        pending.extend(children(pid));
    }
    Some(sum)
}

struct Stat {
    own_ticks: u64,
    reaped_ticks: u64,
    resident_pages: u64,
}

fn stat(pid: i32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(text: &str) -> Option<Stat> {
    // The name in brackets may hold anything, brackets too.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    // proc(5) counts from 1 and the first here is the third there.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        own_ticks: number(14)? + number(15)?,
        reaped_ticks: number(16)? + number(17)?,
        resident_pages: number(24)?,
    })
}

/// Children of all threads of a process.
fn children(pid: i32) -> Vec<i32> {
    threads(pid)
        .filter_map(|thread| fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).ok())
        .flat_map(|text| {
            text.split_whitespace()
                .filter_map(|n| n.parse().ok())
                .collect::<Vec<i32>>()
        })
        .collect()
}

fn threads(pid: i32) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    entries.filter_map(|e| e.ok()?.file_name().into_string().ok())
}

fn waited(pid: i32) -> Duration {
    let one = |thread: String| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse().ok()
    };
    Duration::from_nanos(threads(pid).filter_map(one).max().unwrap_or(0))
}

fn ticks(count: u64) -> Duration {
    static PER_SECOND: OnceLock<u64> = OnceLock::new();
    let per_second = *PER_SECOND.get_or_init(|| system_number(libc::_SC_CLK_TCK, 100));
    Duration::from_micros(count.saturating_mul(1_000_000) / per_second)
}

fn page() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| system_number(libc::_SC_PAGESIZE, 4096))
}

fn system_number(name: libc::c_int, otherwise: u64) -> u64 {
    // SAFETY: asks for a number; has no other effect.
    let answer = unsafe { libc::sysconf(name) };
    u64::try_from(answer)
        .ok()
        .filter(|n| *n > 0)
        .unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_confuse() {
        let text = "12 (a) b (c)) S 1 12 12 0 -1 4194560 1 2 3 4 50 60 70 80 20 0 1 0 99 1000 321 18446744073709551615";
        let stat = parse(text).expect("fields");
        assert_eq!(
            (stat.own_ticks, stat.reaped_ticks, stat.resident_pages),
            (110, 150, 321)
        );
        assert!(parse("12 (cut").is_none() && parse("").is_none());
    }

    #[test]
    fn a_child_is_seen_and_then_not() {
        let own = std::process::id() as i32;
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("started");
        assert!(children(own).contains(&(child.id() as i32)));
        assert!(look(own).processes >= 1);
        child.kill().expect("killed");
        child.wait().expect("waited");
        assert!(!children(own).contains(&(child.id() as i32)));
    }
}
