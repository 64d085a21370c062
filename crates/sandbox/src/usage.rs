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
    /// Time that the hungriest thread was ready to run but had no CPU because of others than the run itself, at least.
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
        usage.resident += resident_pages(pid, &stat) * page();
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
        usage.waited = usage.waited.max(waited(pid, usage.cpu));
        pending.extend(children(pid));
    }
    usage
}

/// Memory of all processes below `first`, shared pages counted once (in bytes); `None` where it cannot be read.
pub(crate) fn proportional_memory(first: i32) -> Option<u64> {
    let mut sum = None;
    let mut pending = children(first);
    while let Some(pid) = pending.pop() {
        // Those that cannot be read are dead, and hold nothing.
        if let Some(bytes) = proportional(pid) {
            sum = Some(sum.unwrap_or(0) + bytes);
        }
        pending.extend(children(pid));
    }
    sum
}

fn proportional(pid: i32) -> Option<u64> {
    // A process whose first thread has ended shows its memory at the others only.
    let threads = threads(pid).map(|thread| format!("/proc/{pid}/task/{thread}/smaps_rollup"));
    let mut places = std::iter::once(format!("/proc/{pid}/smaps_rollup")).chain(threads);
    let text = places.find_map(|place| fs::read_to_string(place).ok())?;
    let line = text.lines().find_map(|l| l.strip_prefix("Pss:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn resident_pages(pid: i32, stat: &Stat) -> u64 {
    if stat.resident_pages > 0 {
        return stat.resident_pages;
    }
    // As above.
    let one = |thread: String| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/statm")).ok()?;
        text.split(' ').nth(1)?.parse().ok()
    };
    threads(pid).filter_map(one).max().unwrap_or(0)
}

struct Stat {
    own_ticks: u64,
    reaped_ticks: u64,
    resident_pages: u64,
}

fn stat(pid: i32) -> Option<Stat> {
    // A program chooses its name, which need not be text.
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(&String::from_utf8_lossy(&text))
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

fn waited(pid: i32, cpu_of_all: Duration) -> Duration {
    let one = |thread: String| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
        for_others(&text, cpu_of_all)
    };
    threads(pid).filter_map(one).max().unwrap_or_default()
}

/// From a thread's `schedstat` (it ran, it waited, in nanoseconds): how long it waited for others than its own run's
/// processes, which are on a CPU for no longer than they used one. Else a program could starve itself and be excused.
fn for_others(schedstat: &str, cpu_of_all: Duration) -> Option<Duration> {
    let mut fields = schedstat.split_whitespace();
    let mut next = || fields.next()?.parse().ok().map(Duration::from_nanos);
    let (ran, waited) = (next()?, next()?);
    Some(waited.saturating_sub(cpu_of_all.saturating_sub(ran)))
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
    fn a_run_that_starves_itself_is_not_starved() {
        let (ms, all) = (Duration::from_millis, Duration::from_secs(2));
        // Sixteen that shared one CPU with nobody else, one alone on a busy machine, and both together.
        assert_eq!(for_others("125000000 1875000000 9", all), Some(ms(0)));
        assert_eq!(for_others("2000000000 4000000000 9", all), Some(ms(4000)));
        assert_eq!(for_others("125000000 3000000000 9", all), Some(ms(1125)));
        assert_eq!(for_others("x", all), None);
    }

    #[test]
    fn memory_is_seen_whatever_a_process_calls_itself() {
        // A name that is no text, and a first thread that has ended while another holds the memory.
        let source = "import ctypes, threading, time, os\nc = ctypes.CDLL(None); c.prctl(15, b'\\xff) R', 0, 0, 0)\n\
            def f():\n    x = bytearray(b'x') * (30 << 20); time.sleep(60); os._exit(0)\n\
            threading.Thread(target=f).start(); os.fork() or os._exit(0); c.syscall(60, 0)";
        let mut child = std::process::Command::new("python3")
            .args(["-S", "-c", source])
            .spawn()
            .expect("started");
        let own = std::process::id() as i32;
        let start = std::time::Instant::now();
        let seen = || {
            let (used, memory) = (look(own), proportional_memory(own));
            used.resident > 30 << 20 && memory.is_some_and(|m| m > 30 << 20)
        };
        let mut found = false;
        while !found && start.elapsed() < Duration::from_secs(30) {
            let first = fs::read(format!("/proc/{}/stat", child.id())).expect("there");
            // Only when its first thread is a zombie.
            let ended = String::from_utf8_lossy(&first).contains(") Z ");
            found = ended && seen();
            std::thread::sleep(Duration::from_millis(20));
        }
        child.kill().expect("killed");
        child.wait().expect("waited");
        assert!(found);
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
