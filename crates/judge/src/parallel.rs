//! A parallel map whose results come in the order of the items, whatever the timing.

use std::sync::Mutex;

/// Applies `f` to every item on up to `workers` threads (0 counts as 1), the caller's own among them, and returns the
/// results in the items' order. Where the system has no more threads to give, those that there are do all of the work.
///
/// # Panics
/// If `f` panics: the panic goes on in the caller.
pub fn map_in_order<T, R, F>(items: Vec<T>, workers: usize, f: F) -> Vec<R>
where
    T: Send,
    R: Send,
    F: Fn(T) -> R + Sync,
{
    let count = items.len();
    let workers = workers.clamp(1, count.max(1));
    if workers == 1 {
        return items.into_iter().map(f).collect();
    }
    let queue = Mutex::new(items.into_iter().enumerate());
    let next = || {
        queue
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .next()
    };
    let mut done: Vec<(usize, R)> = Vec::with_capacity(count);
    let work = || {
        let mut mine = Vec::new();
        while let Some((index, item)) = next() {
            mine.push((index, f(item)));
        }
        mine
    };
    std::thread::scope(|scope| {
        // The first that cannot be had is the last that is asked for.
        let threads: Vec<_> = (1..workers)
            .map_while(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        done.extend(work());
        for thread in threads {
            match thread.join() {
                Ok(mine) => done.extend(mine),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn results_come_in_order_whatever_the_timing() {
        let items: Vec<u64> = (0..40).collect();
        let results = map_in_order(items, 7, |n| {
            std::thread::sleep(Duration::from_micros((40 - n) * 100));
            n * n
        });
        assert_eq!(results, (0..40).map(|n| n * n).collect::<Vec<_>>());
    }

    #[test]
    fn no_items_and_no_workers_are_fine() {
        assert!(map_in_order(Vec::<u8>::new(), 4, |n| n).is_empty());
        assert_eq!(map_in_order(vec![1, 2], 0, |n| n + 1), [2, 3]);
    }
}
