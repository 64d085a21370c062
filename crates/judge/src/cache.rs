//! Remembers the outcomes of runs, within a bound on memory.
//!
//! Why it is worth having: a small model in training writes the same few programs again and again, and every rollout
//! of a problem meets the same tests, so most runs have been made before. Little is lost by it: the sandbox gives a
//! program the same input, a fixed hash seed, no network and an empty `/tmp` each time, so what it prints is the same by
//! construction, unless it asks for the time, for random numbers without a seed, or prints where an object lies in
//! memory. A task where that matters switches the cache off (`cache = false`).
//!
//! What is not remembered: faults, and runs that met the wall-clock limit, which depends on how busy the machine was.
//! The times reported for a remembered outcome are those of the run that made it.
//!
//! The store has two generations. New and used entries are in the young one; when that holds half the bound it becomes
//! the old one, and what was old and has not been used since is dropped. So it is bounded, and an entry in use stays.

use std::collections::HashMap;
use std::sync::Arc;

use rlef_sandbox::{Ending, Limits, Outcome, Program, Returned};
use sha2::{Digest, Sha256};

/// What a remembered answer is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    language: String,
    source: [u8; 32],
    /// What the program got, or the arguments of its function. `None`: the question was whether the source compiles.
    input: Option<[u8; 32]>,
    /// The function that was called.
    function: Option<String>,
    limits: Limits,
}

impl Key {
    pub(crate) fn run(
        program: &Program,
        function: Option<&str>,
        input: &str,
        limits: &Limits,
    ) -> Self {
        Self {
            language: program.language.to_owned(),
            source: Sha256::digest(program.source.as_bytes()).into(),
            input: Some(Sha256::digest(input.as_bytes()).into()),
            function: function.map(str::to_owned),
            limits: *limits,
        }
    }

    /// What an output validator (by its digest) says of an output.
    pub(crate) fn validated(
        validator: [u8; 32],
        test: [&[u8]; 2],
        flags: &[String],
        output: &[u8],
        limits: &Limits,
    ) -> Self {
        let mut hash = Sha256::new();
        for part in test.into_iter().chain(flags.iter().map(String::as_bytes)) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(output);
        Self {
            language: "output validator".to_owned(),
            source: validator,
            input: Some(hash.finalize().into()),
            function: None,
            limits: *limits,
        }
    }

    pub(crate) fn syntax(program: &Program, limits: &Limits) -> Self {
        Self {
            language: program.language.to_owned(),
            source: Sha256::digest(program.source.as_bytes()).into(),
            input: None,
            function: None,
            limits: *limits,
        }
    }
}

/// What a program did with one test.
#[derive(Debug)]
pub(crate) struct Ran {
    pub outcome: Outcome,
    /// What its function returned, if one was called.
    pub returned: Option<Returned>,
    /// Size of that, in bytes, more or less.
    pub returned_bytes: usize,
}

/// A remembered answer.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Ran(Arc<Ran>),
    Syntax(Option<String>),
    /// None: the validator accepts the output.
    Validated(Option<String>),
}

impl Value {
    fn bytes(&self) -> u64 {
        // Key, map slot and the structs themselves: measured by eye, it only has to keep tiny outcomes from being free.
        const OVERHEAD: u64 = 400;
        OVERHEAD
            + match self {
                Self::Ran(ran) => {
                    let printed = ran.outcome.stdout.len() + ran.outcome.stderr.len();
                    (printed + ran.returned_bytes) as u64
                }
                Self::Syntax(message) | Self::Validated(message) => {
                    message.as_ref().map_or(0, |m| m.len() as u64)
                }
            }
    }
}

#[derive(Debug)]
pub(crate) struct Cache {
    bound: u64,
    young: HashMap<Key, Value>,
    young_bytes: u64,
    old: HashMap<Key, Value>,
}

impl Cache {
    pub(crate) fn new(bound: u64) -> Self {
        Self {
            bound,
            young: HashMap::new(),
            young_bytes: 0,
            old: HashMap::new(),
        }
    }

    pub(crate) fn get(&mut self, key: &Key) -> Option<Value> {
        if let Some(value) = self.young.get(key) {
            return Some(value.clone());
        }
        let value = self.old.remove(key)?;
        self.store(key.clone(), value.clone());
        Some(value)
    }

    pub(crate) fn put(&mut self, key: Key, value: Value) {
        if let Value::Ran(ran) = &value
            && ran.outcome.ending == Ending::WallLimit
        {
            return;
        }
        self.store(key, value);
    }

    fn store(&mut self, key: Key, value: Value) {
        let half = self.bound / 2;
        let bytes = value.bytes();
        if bytes > half {
            return;
        }
        if self.young_bytes + bytes > half {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.old.remove(&key);
        if let Some(before) = self.young.insert(key, value) {
            self.young_bytes -= before.bytes();
        }
        self.young_bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn outcome(ending: Ending, size: usize) -> Value {
        let time = Duration::from_millis(1);
        let outcome = Outcome {
            ending,
            stdout: vec![b'x'; size],
            stderr: Vec::new(),
            cpu: time,
            wall: time,
            peak_memory_bytes: None,
        };
        Value::Ran(Arc::new(Ran {
            outcome,
            returned: None,
            returned_bytes: 0,
        }))
    }

    fn key(n: usize) -> Key {
        Key::run(
            &Program::python(&format!("print({n})")),
            None,
            "",
            &Limits::with_cpu(Duration::from_secs(1)),
        )
    }

    fn held(cache: &Cache) -> u64 {
        cache
            .young
            .values()
            .chain(cache.old.values())
            .map(Value::bytes)
            .sum()
    }

    #[test]
    fn stays_within_its_bound_and_keeps_what_is_used() {
        let mut cache = Cache::new(20_000);
        cache.put(key(0), outcome(Ending::Exited(0), 500));
        for n in 1..200 {
            cache.put(key(n), outcome(Ending::Exited(0), 500 + n));
            assert!(held(&cache) <= 20_000, "{} bytes after {n}", held(&cache));
            assert!(
                cache.get(&key(0)).is_some(),
                "an entry in use was dropped after {n}"
            );
        }
        assert!(
            cache.get(&key(1)).is_none(),
            "an entry not used for long must go"
        );
        assert!(cache.get(&key(199)).is_some());
    }

    #[test]
    fn an_outcome_larger_than_the_store_is_not_kept() {
        let mut cache = Cache::new(2_000);
        cache.put(key(0), outcome(Ending::Exited(0), 5_000));
        assert!(cache.get(&key(0)).is_none());
        assert_eq!(held(&cache), 0);
    }

    #[test]
    fn replacing_an_entry_counts_it_once() {
        let mut cache = Cache::new(20_000);
        for _ in 0..100 {
            cache.put(key(0), outcome(Ending::Exited(0), 600));
        }
        assert_eq!(cache.young_bytes, 1_000);
        assert_eq!(held(&cache), 1_000);
    }

    #[test]
    fn a_run_stopped_by_the_clock_is_not_kept() {
        let mut cache = Cache::new(20_000);
        cache.put(key(0), outcome(Ending::WallLimit, 0));
        assert!(cache.get(&key(0)).is_none());
        cache.put(key(0), outcome(Ending::CpuLimit, 0));
        assert!(cache.get(&key(0)).is_some());
    }

    #[test]
    fn language_source_stdin_limits_and_question_all_count() {
        let limits = Limits::with_cpu(Duration::from_secs(1));
        let other = Limits::with_cpu(Duration::from_secs(2));
        let a = Program::python("a");
        let c = Program { language: "c", ..a };
        let keys = [
            Key::run(&a, None, "b", &limits),
            Key::run(&a, None, "", &limits),
            Key::run(&Program::python("ab"), None, "", &limits),
            Key::run(&a, None, "b", &other),
            Key::run(&a, Some("f"), "b", &limits),
            Key::run(&a, Some("g"), "b", &limits),
            Key::run(&c, None, "b", &limits),
            Key::syntax(&a, &limits),
            Key::syntax(&c, &limits),
        ];
        let different: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
    }
}
