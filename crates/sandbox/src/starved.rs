//! Whether the kernel has lately killed for want of memory. Where no control group bounds the memory of a run, nothing else
//! tells such a death from that of a program that has killed itself.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Processes that the kernel has killed since the system was started, in whatever group (Linux 4.13).
const COUNT: (&str, &str) = ("/proc/vmstat", "oom_kill ");

/// What has been seen of it.
struct Seen {
    count: Option<u64>,
    /// When it was last found to have risen.
    risen: Option<Instant>,
}

static SEEN: Mutex<Seen> = Mutex::new(Seen {
    count: None,
    risen: None,
});

/// Whether it may have killed a process of a run that began at `start`. Looks at what was seen before as well, because
/// several runs may ask about one rise. At the first question, and after a kill that nobody asked about, the answer is yes
/// for one that is long past: whoever repeats the run gets the right one.
pub(crate) fn since(start: Instant) -> bool {
    let text = std::fs::read_to_string(COUNT.0).unwrap_or_default();
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    seen.now(kills(&text), start)
}

impl Seen {
    fn now(&mut self, count: Option<u64>, start: Instant) -> bool {
        if count.is_some() && count != self.count {
            (self.count, self.risen) = (count, Some(Instant::now()));
        }
        self.risen.is_some_and(|risen| risen >= start)
    }
}

fn kills(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(COUNT.1))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_of_the_time_is_told() {
        let mut seen = Seen {
            count: Some(4),
            risen: None,
        };
        let (first, second) = (Instant::now(), Instant::now());
        assert!(!seen.now(Some(4), first));
        assert!(seen.now(Some(6), first));
        // Both began before the rise was seen.
        assert!(seen.now(Some(6), second));
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(!seen.now(Some(6), Instant::now()));
        assert!(!seen.now(None, Instant::now()));
    }

    #[test]
    fn the_kernels_list_is_read() {
        assert_eq!(kills("nr_free 1\noom_kill 17\noom_kill_x 3\n"), Some(17));
        assert_eq!(kills("nr_free 1\n"), None);
    }
}
