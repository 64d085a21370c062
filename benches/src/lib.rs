//! The measurements that the README quotes.

use std::process::Command;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// CPU time of this process (all threads) and of every child that it has waited for.
///
/// # Errors
/// When the system does not tell.
pub fn cpu() -> nix::Result<Duration> {
    let mut sum = 0;
    for who in [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN] {
        let usage = getrusage(who)?;
        sum += usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    }
    Ok(Duration::from_micros(sum.unsigned_abs()))
}

/// What a result was measured on and when, as a paragraph.
pub fn circumstances() -> String {
    let first = |path: &str, key: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix(key));
        line.map(|l| l.trim_start_matches([' ', '\t', ':']).trim().to_owned())
            .unwrap_or_else(|| "unknown".into())
    };
    let date = said("date", &["+%Y-%m-%d"]);
    let load = first("/proc/loadavg", "");
    let load = load.split(' ').next().unwrap_or_default().to_owned();
    format!(
        "{date}. {}, {} cores, Linux {}; load average {load} at the beginning.",
        first("/proc/cpuinfo", "model name"),
        std::thread::available_parallelism().map_or(1, usize::from),
        first("/proc/sys/kernel/osrelease", ""),
    )
}

/// The first line that a command prints; empty where it cannot be started.
pub fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|o| o.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Processes whose parents end before them become children of this one, so that their CPU time can be counted.
///
/// # Errors
/// When the system refuses.
pub fn adopt_orphans() -> nix::Result<()> {
    nix::sys::prctl::set_child_subreaper(true)
}

/// The processes that this one is the parent of.
pub fn children() -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| {
            let numbers = text.split_whitespace().filter_map(|n| n.parse().ok());
            numbers.collect::<Vec<i32>>()
        })
        .collect()
}

/// CPU time that these processes, their living descendants and everything that any of them has waited for have used,
/// as the kernel tells it (to a hundredth of a second). What is gone counts nothing.
pub fn tree_cpu(processes: &[i32]) -> Duration {
    let mut left = processes.to_vec();
    let mut ticks = 0_u64;
    while let Some(pid) = left.pop() {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten();
        for task in tasks.flatten() {
            let below = std::fs::read_to_string(task.path().join("children"));
            let below = below.unwrap_or_default();
            left.extend(
                below
                    .split_whitespace()
                    .filter_map(|n| n.parse::<i32>().ok()),
            );
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name may hold anything; after it come state, then from the twelfth on the times.
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let times = rest.split(' ').skip(11).take(4);
        ticks += times.filter_map(|t| t.parse::<u64>().ok()).sum::<u64>();
    }
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK);
    let per_second = per_second.ok().flatten().unwrap_or(100);
    Duration::from_secs_f64(ticks as f64 / per_second as f64)
}

/// Waits for every child that is not among `known`.
pub fn wait_for_others(known: &[i32]) {
    while let Some(pid) = children().into_iter().find(|pid| !known.contains(pid)) {
        // One that somebody else has waited for is gone as well.
        let _ = nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(pid), None);
    }
}
