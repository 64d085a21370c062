//! The public face: a [`Sandbox`] finds the interpreter once, checks its protections, and keeps slots ready.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::call::{self, Called};
use crate::candidate::{Candidate, CodeCache};
use crate::cgroup::{Ability, Groups};
use crate::interpreter::{HELPER, Interpreter};
use crate::launcher::order;
use crate::own;
use crate::protection::{self, Protection, SELF_CHECK, SelfCheck};
use crate::rehearsal::rehearse;
use crate::slot::{self, Slot};
use crate::supervise::{self, Baseline, Finished, Job};
use crate::wire::{SlotPlan, WarmPlan};
use crate::{Ending, Fault, Limits, Outcome, fault, identity, policy};

/// How a sandbox is to be.
#[derive(Debug, Clone)]
pub struct Config {
    /// The Python interpreter: a path, or a name to look for on the PATH. Default: `python3`.
    pub interpreter: Option<PathBuf>,
    /// Refuse to run if a required protection is missing. Without it only the protections that the sandbox cannot
    /// be built without are insisted on; [`Sandbox::protections`] tells which are in force.
    pub strict: bool,
    /// Fork programs from an interpreter that has started already and imported what most of them use, instead of
    /// starting one for each. The protections are the same. Where it cannot be had, programs are started afresh, and
    /// [`Sandbox::protections`] says why. Default: true.
    pub warm: bool,
    /// Use control groups for what the system lends of them: they bound the memory of all processes of a run together
    /// and count their CPU time. Without them both are sampled. In version 2, a process that is alone in a group that
    /// was lent to it moves into one below it, because only then can there be others. Default: true.
    pub groups: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            interpreter: None,
            strict: true,
            warm: true,
            groups: true,
        }
    }
}

/// Runs Python programs, each isolated from the host and from all others. Cheap to share: every method takes
/// `&self`, and as many programs run at once as there are calls.
pub struct Sandbox {
    plan: SlotPlan,
    groups: Groups,
    version: String,
    baseline: Baseline,
    protections: Vec<Protection>,
    idle: Mutex<Vec<Slot>>,
    slots_made: AtomicU32,
}

/// Open files that a sandbox takes: a program's are put above number 100 before they get their own numbers
/// (`native/fork.rs`), and a run has a dozen in this process.
const DESCRIPTORS: u64 = 128;

/// Exit codes of the boot file when it only compiles; a crash of the compiler gives others.
const COMPILES: i32 = 64;
const DOES_NOT_COMPILE: i32 = 65;

impl Sandbox {
    /// Finds the interpreter and what it needs, sets up the first slot and checks its protections from inside.
    /// Takes a fifth of a second or so; make one and keep it.
    ///
    /// # Errors
    /// The interpreter cannot be found or used, the system does not allow what the sandbox is built on, or
    /// (strict) a required protection is not in force.
    pub fn new(config: Config) -> Result<Self, Fault> {
        let limit = fault::descriptors();
        if limit < DESCRIPTORS {
            let needed = DESCRIPTORS;
            return Err(Fault::Descriptors { limit, needed });
        }
        let found = Interpreter::find(config.interpreter.as_deref())?;
        let warm = WarmPlan {
            modules: found.modules,
            stack: supervise::stack(),
        };
        let mut groups = if config.groups {
            Groups::find()
        } else {
            Groups::none("switched off")
        };
        slot::try_out(&mut groups)?;
        let plan = SlotPlan {
            programs_go_first: groups.has(Ability::Memory),
            warm: Some(warm).filter(|_| config.warm && !HELPER.is_empty()),
            identity: identity::identity(0)?,
            root: found.root,
            filter: policy::filter()?,
            executable: found.executable,
            arguments: found.arguments,
            environment: found.environment,
            file: found.file,
        };
        let mut sandbox = Self {
            plan,
            groups,
            version: found.version,
            baseline: Baseline::default(),
            protections: Vec::new(),
            idle: Mutex::default(),
            slots_made: AtomicU32::new(0),
        };
        let limits = Limits {
            memory_bytes: 4 << 30,
            ..Limits::with_cpu(Duration::from_secs(10))
        };
        let mut slot = sandbox.make_slot()?;
        let seen = match self_check(&slot, &limits) {
            Err(fault) if slot.cold.is_none() => {
                // A fork that does not work here may still be one that can be done without.
                sandbox.plan.warm = None;
                slot = sandbox.make_slot()?;
                slot.cold = Some(fault.to_string());
                self_check(&slot, &limits)?
            }
            other => other?,
        };
        sandbox.baseline = Baseline {
            mapped: seen.mapped,
            resident: seen.resident,
        };
        rehearse(&slot, sandbox.baseline)?;
        sandbox.protections = protection::judge(&seen, &slot);
        sandbox.protections.extend(sandbox.groups.protections());
        sandbox.keep(slot);
        let absent = sandbox
            .protections
            .iter()
            .filter(|p| p.required && !p.in_force);
        let missing: Vec<String> = absent
            .map(|p| format!("{} ({})", p.name, p.detail))
            .collect();
        if config.strict && !missing.is_empty() {
            return Err(Fault::Unprotected { missing });
        }
        Ok(sandbox)
    }

    /// Runs `source` with `stdin` and waits for its end. When this returns, every process that the program has
    /// started is dead and everything that it has written (but for the outcome) is gone.
    ///
    /// # Errors
    /// A fault says nothing about the program: try again, or leave it out.
    pub fn run(&self, source: &str, stdin: &[u8], limits: &Limits) -> Result<Outcome, Fault> {
        self.run_with(source, stdin, limits, None)
    }

    /// A program that is to be run on several inputs: as so many calls of [`Sandbox::run`] or [`Sandbox::call`], but it
    /// is compiled only once.
    pub fn candidate(&self, source: &str) -> Candidate<'_> {
        Candidate::new(self, source)
    }

    pub(crate) fn run_with(
        &self,
        source: &str,
        stdin: &[u8],
        limits: &Limits,
        code: Option<&CodeCache>,
    ) -> Result<Outcome, Fault> {
        let job = Job {
            source,
            stdin,
            mode: order::RUN,
            code,
            limits,
            baseline: self.baseline,
        };
        Ok(self.job(&job)?.outcome)
    }

    /// Runs `source`, then calls `function` with `arguments` (a JSON array) and reads what it returns.
    ///
    /// `function` is a name in the program, or a dotted one as in `Solution.solve`; a class on the way is instantiated
    /// without arguments. A name that the program does not have is looked for in its class `Solution`. The program's
    /// `__name__` is `solution`, and its stdin is empty.
    ///
    /// # Errors
    /// A fault says nothing about the program. [`Fault::Call`] if the arguments are not a JSON array, or if the
    /// interpreter cannot read them within the limits.
    pub fn call(
        &self,
        source: &str,
        function: &str,
        arguments: &str,
        limits: &Limits,
    ) -> Result<Called, Fault> {
        self.call_with(source, function, arguments, limits, None)
    }

    pub(crate) fn call_with(
        &self,
        source: &str,
        function: &str,
        arguments: &str,
        limits: &Limits,
        code: Option<&CodeCache>,
    ) -> Result<Called, Fault> {
        let asked = call::asked(function, arguments)?;
        let job = Job {
            source,
            stdin: asked.as_bytes(),
            mode: order::CALL,
            code,
            limits,
            baseline: self.baseline,
        };
        let done = self.job(&job)?;
        if call::perhaps_unread(done.outcome.ending, &done.result) {
            self.arguments_are_read(&job)?;
        }
        Ok(Called {
            outcome: done.outcome,
            returned: call::returned(&done.result),
        })
    }

    /// Whether an empty program gets its arguments: what a program says of them counts for nothing.
    fn arguments_are_read(&self, job: &Job) -> Result<(), Fault> {
        let empty = Job {
            source: "",
            code: None,
            ..*job
        };
        let done = self.job(&empty)?;
        match call::unread(done.outcome.ending, &done.result) {
            None => Ok(()),
            Some(why) => Err(Fault::Call {
                what: format!(
                    "the interpreter cannot read the arguments under these limits: {why}"
                ),
            }),
        }
    }

    /// Whether `source` compiles: `None`, or what the compiler says, as Python would print it. The program is
    /// compiled under `limits` in a sandbox of its own and never executed. Running out of a limit, or crashing the
    /// compiler, is the program's failure.
    ///
    /// # Errors
    /// As for [`Sandbox::run`].
    pub fn syntax_check(&self, source: &str, limits: &Limits) -> Result<Option<String>, Fault> {
        let outcome = self.job(&Job {
            source,
            stdin: b"",
            mode: order::CHECK,
            code: None,
            limits,
            baseline: self.baseline,
        })?;
        let outcome = outcome.outcome;
        let said = String::from_utf8_lossy(&outcome.stderr)
            .trim_end()
            .to_owned();
        Ok(match outcome.ending {
            Ending::Exited(COMPILES) => None,
            Ending::Exited(DOES_NOT_COMPILE) | Ending::MemoryLimit if !said.is_empty() => {
                Some(said)
            }
            other => Some(format!("the compiler did not finish: {other}")),
        })
    }

    /// Whether programs can be run under these limits here: they are in range ([`Limits::check`]), and this process has
    /// itself what it would give.
    ///
    /// # Errors
    /// [`Fault::Limit`] or [`Fault::OwnLimit`].
    pub fn check(&self, limits: &Limits) -> Result<(), Fault> {
        limits.check()?;
        own::can_be_kept(limits, self.baseline)
    }

    /// Each layer of protection and whether it is in force on this system.
    pub fn protections(&self) -> Vec<Protection> {
        self.protections.clone()
    }

    /// Version of the interpreter, as in `3.11.7`.
    pub fn python_version(&self) -> &str {
        &self.version
    }

    fn job(&self, job: &Job) -> Result<Finished, Fault> {
        own::can_be_kept(job.limits, self.baseline)?;
        let mut repeated = false;
        loop {
            let slot = match self.lock().pop() {
                Some(slot) if slot.alive() => slot,
                // Somebody killed an idle launcher; its successor is as good.
                _ => {
                    let slot = self.make_slot()?;
                    rehearse(&slot, self.baseline)?;
                    slot
                }
            };
            // After a fault of the machinery the slot is not to be trusted: dropping it ends whatever is left in it.
            match supervise::run(&slot, job) {
                // Its warm interpreter may be to blame, or a lack of memory that has passed: once more with another.
                Err(Fault::Broken { .. })
                    if (slot.cold.is_none() || slot.group.is_some()) && !repeated =>
                {
                    repeated = true;
                }
                Err(fault) if !matches!(fault, Fault::Overloaded { .. }) => return Err(fault),
                other => {
                    self.keep(slot);
                    return other;
                }
            }
        }
    }

    fn make_slot(&self) -> Result<Slot, Fault> {
        let number = self.slots_made.fetch_add(1, Ordering::Relaxed);
        let plan = SlotPlan {
            identity: identity::identity(number)?,
            ..self.plan.clone()
        };
        Slot::start(&plan, self.groups.make()?)
    }

    fn keep(&self, slot: Slot) {
        self.lock().push(slot);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Slot>> {
        // The list is right after a panic elsewhere, too: it only ever gains or loses whole slots.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn self_check(slot: &Slot, limits: &Limits) -> Result<SelfCheck, Fault> {
    let outcome = supervise::run(
        slot,
        &Job {
            source: SELF_CHECK,
            stdin: b"",
            mode: order::RUN,
            code: None,
            limits,
            baseline: Baseline::default(),
        },
    )?
    .outcome;
    let answer = serde_json::from_slice(&outcome.stdout);
    answer.map_err(|_| Fault::Broken {
        doing: "checking the sandbox from inside",
        reason: format!(
            "{}: {}",
            outcome.ending,
            String::from_utf8_lossy(&outcome.stderr).trim_end()
        ),
    })
}
