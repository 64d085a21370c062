//! Slots of one kind, made when they are needed and kept for the next run.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::artifact::Artifact;
use crate::cgroup::{Group, Groups};
use crate::own;
use crate::rehearsal::rehearse;
use crate::slot::Slot;
use crate::supervise::{self, Finished, Job, Source, Terms};
use crate::wire::SlotPlan;
use crate::{Ending, Fault, identity, starved};

/// How often a run is repeated that the kernel has ended for want of memory.
const STARVED_TRIES: u32 = 3;

/// What the slots of all kinds have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub groups: Groups,
    made: AtomicU32,
}

impl Shared {
    pub(crate) fn new(groups: Groups) -> Self {
        Self {
            groups,
            made: AtomicU32::new(0),
        }
    }
}

/// The program that a new slot is measured with.
pub(crate) enum Rehearsal {
    /// None: the slot's own needs count as the program's, whose limits are wide.
    None,
    /// An empty Python program.
    Empty,
    /// One that does next to nothing.
    Program(Artifact),
}

/// Slots that are all made by one plan.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    pub(crate) plan: SlotPlan,
    pub(crate) terms: Terms,
    pub(crate) rehearsal: Rehearsal,
    idle: Mutex<Vec<Slot>>,
}

/// Whether it ended as what the kernel kills for want of memory ends, and no group tells.
fn perhaps_starved(slot: &Slot, done: &Finished) -> bool {
    let told = slot.group.as_ref().is_some_and(Group::bounds_memory);
    done.outcome.ending == Ending::Signalled(libc::SIGKILL) && !told
}

impl Pool {
    pub(crate) fn new(
        shared: Arc<Shared>,
        plan: SlotPlan,
        terms: Terms,
        rehearsal: Rehearsal,
    ) -> Self {
        Self {
            shared,
            plan,
            terms,
            rehearsal,
            idle: Mutex::default(),
        }
    }

    /// Carries out one run in a slot that is free, or in a new one.
    pub(crate) fn run(&self, job: &Job) -> Result<Finished, Fault> {
        own::can_be_kept(job.limits, job.terms)?;
        let mut repeated = false;
        let mut starved = 0;
        loop {
            let start = Instant::now();
            let slot = match self.lock().pop() {
                Some(slot) if slot.alive() => slot,
                // Somebody killed an idle launcher; its successor is as good.
                _ => {
                    let slot = self.make()?;
                    self.rehearse(&slot)?;
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
                Ok(done) if perhaps_starved(&slot, &done) && starved::since(start) => {
                    self.keep(slot);
                    starved += 1;
                    if starved == STARVED_TRIES {
                        return Err(Fault::Broken {
                            doing: "running a program",
                            reason: "the machine ran out of memory, and the program was killed each time".into(),
                        });
                    }
                }
                Err(fault) if !matches!(fault, Fault::Overloaded { .. }) => return Err(fault),
                other => {
                    self.keep(slot);
                    return other;
                }
            }
        }
    }

    /// A slot that has not been measured.
    pub(crate) fn make(&self) -> Result<Slot, Fault> {
        let number = self.shared.made.fetch_add(1, Ordering::Relaxed);
        let plan = SlotPlan {
            identity: identity::identity(number)?,
            ..self.plan.clone()
        };
        Slot::start(&plan, self.shared.groups.make()?)
    }

    pub(crate) fn rehearse(&self, slot: &Slot) -> Result<(), Fault> {
        let source = match &self.rehearsal {
            Rehearsal::None => return Ok(()),
            Rehearsal::Empty => Source::Text(""),
            Rehearsal::Program(artifact) => Source::Compiled(artifact),
        };
        rehearse(slot, source, &self.terms)
    }

    pub(crate) fn keep(&self, slot: Slot) {
        self.lock().push(slot);
    }

    /// Ends the idle slots; others take their places.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Slot>> {
        // The list is right after a panic elsewhere, too: it only ever gains or loses whole slots.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
