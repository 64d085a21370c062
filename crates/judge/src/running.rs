//! Running: programs made ready and run, checked or validated, with what is remembered, retried and confirmed.

use std::cell::OnceCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLockReadGuard};
use std::time::Duration;

use rlef_problems::TestCase;
use rlef_sandbox::{Limits, Program};

use crate::cache::{Cache, Key, Ran, Value};
use crate::ending::was_near;
use crate::executor::{BoxError, Candidate, Compiled};
use crate::judge::{Judge, add};
use crate::value;

/// A program that has been made ready, or what its compiler says; empty until that is asked for.
pub(crate) type Made<'a> = OnceCell<Compiled<'a>>;

impl Judge {
    /// Makes the program ready, or remembers that it does not compile.
    fn make<'a>(
        &'a self,
        program: &Program<'a>,
        limits: &Limits,
    ) -> Result<Compiled<'a>, (u32, BoxError)> {
        if program.is_python() {
            return Ok(Compiled::Program(self.executor.candidate(program.source)));
        }
        let key = self.cache.is_some().then(|| Key::syntax(program, limits));
        if let Some(Value::Syntax(Some(message))) = self.remembered(key.as_ref()) {
            return Ok(Compiled::Error(message));
        }
        let made = self.retrying(limits, |_| {
            let _shared = self.beside_others();
            add(&self.counters.syntax_checks);
            self.executor.compile(*program)
        })?;
        if let Compiled::Error(message) = &made {
            self.remember(key, || Value::Syntax(Some(message.clone())));
        }
        Ok(made)
    }

    /// Runs the program or calls its function, or remembers having done so.
    ///
    /// A run that ends a little after its time is up is made again, alone.
    pub(crate) fn ran<'a>(
        &'a self,
        program: &Program<'a>,
        made: &Made<'a>,
        function: Option<&str>,
        test: &TestCase,
        limits: &Limits,
    ) -> Result<Tried, (u32, BoxError)> {
        let key = self
            .cache
            .is_some()
            .then(|| Key::run(program, function, &test.input, limits));
        if let Some(Value::Ran(ran)) = self.remembered(key.as_ref()) {
            return Ok(Tried::Ran(ran));
        }
        let ready = match made.get() {
            Some(ready) => ready,
            None => {
                let ready = self.make(program, limits)?;
                made.get_or_init(|| ready)
            }
        };
        let candidate = match ready {
            Compiled::Program(candidate) => candidate,
            Compiled::Error(message) => return Ok(Tried::CompileError(message.clone())),
        };
        let generous = self.config.generous(limits);
        let mut ran = self.retrying(&generous, |limits| {
            let _shared = self.beside_others();
            self.once(candidate.as_ref(), function, test, limits)
        })?;
        if was_near(&ran.outcome, limits, &generous) {
            ran = self.retrying(limits, |limits| {
                add(&self.counters.confirmations);
                let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
                self.once(candidate.as_ref(), function, test, limits)
            })?;
        }
        let ran = Arc::new(ran);
        self.remember(key, || Value::Ran(Arc::clone(&ran)));
        Ok(Tried::Ran(ran))
    }

    fn once(
        &self,
        candidate: &dyn Candidate,
        function: Option<&str>,
        test: &TestCase,
        limits: &Limits,
    ) -> Result<Ran, BoxError> {
        add(&self.counters.runs);
        let Some(function) = function else {
            let outcome = candidate.run(test.input.as_bytes(), limits)?;
            return Ok(Ran {
                outcome,
                returned: None,
                returned_bytes: 0,
            });
        };
        let called = candidate.call(function, &test.input, limits)?;
        Ok(Ran {
            returned_bytes: value::size(&called.returned),
            outcome: called.outcome,
            returned: Some(called.returned),
        })
    }

    /// To be held while a program runs: one that has to be alone waits for it.
    pub(crate) fn beside_others(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count_validation(&self) {
        add(&self.counters.validations);
    }

    /// Checks whether the program parses, or remembers having checked it.
    pub(crate) fn syntax(
        &self,
        program: &Program,
        limits: &Limits,
    ) -> Result<Option<String>, (u32, BoxError)> {
        let key = self.cache.is_some().then(|| Key::syntax(program, limits));
        if let Some(Value::Syntax(message)) = self.remembered(key.as_ref()) {
            return Ok(message);
        }
        let message = self.retrying(limits, |limits| {
            let _shared = self.beside_others();
            add(&self.counters.syntax_checks);
            self.executor.syntax_check(program.source, limits)
        })?;
        self.remember(key, || Value::Syntax(message.clone()));
        Ok(message)
    }

    pub(crate) fn remembered(&self, key: Option<&Key>) -> Option<Value> {
        let value = lock(self.cache.as_ref()?).get(key?)?;
        add(&self.counters.cache_hits);
        Some(value)
    }

    pub(crate) fn remember(&self, key: Option<Key>, value: impl FnOnce() -> Value) {
        if let (Some(cache), Some(key)) = (&self.cache, key) {
            lock(cache).put(key, value());
        }
    }

    /// Tries up to `1 + retries` times; gives the number of tries and the last error if all fail.
    ///
    /// Each retry has twice the wall-clock time: the usual fault is a machine so busy that a program could not use its
    /// CPU time, which stays the limit that counts.
    pub(crate) fn retrying<T>(
        &self,
        limits: &Limits,
        attempt: impl Fn(&Limits) -> Result<T, BoxError>,
    ) -> Result<T, (u32, BoxError)> {
        let mut limits = *limits;
        let mut tries = 0;
        loop {
            tries += 1;
            match attempt(&limits) {
                Ok(value) => return Ok(value),
                Err(error) => {
                    add(&self.counters.failed_tries);
                    if tries > self.config.retries {
                        return Err((tries, error));
                    }
                    let pause = self
                        .config
                        .retry_pause_ms
                        .saturating_mul(1 << (tries - 1).min(6));
                    std::thread::sleep(Duration::from_millis(pause.min(5_000)));
                    limits.wall = limits.wall.saturating_mul(2);
                }
            }
        }
    }
}

/// What came of a test.
pub(crate) enum Tried {
    Ran(Arc<Ran>),
    /// There is nothing to run.
    CompileError(String),
}

/// A thread that panicked inside the cache left at worst a wrong byte count, which only moves the bound.
fn lock(cache: &Mutex<Cache>) -> MutexGuard<'_, Cache> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}
