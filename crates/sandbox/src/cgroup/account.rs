//! The group of one slot: set before a run, read after it.

use std::cell::Cell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::file::Numbers;
use super::find::Version;
use super::memory::{Events, Killed, Memory, Peak};
use super::{Ability, Groups, Place, describe, leftovers};

/// The kernel takes no number above its own limit, which is at least this.
const MOST_TASKS: u64 = 32768;
/// What a group may hold in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Bytes, the slot's own included.
    pub memory: u64,
    /// Processes and threads, the slot's own included.
    pub tasks: u64,
}

/// What happened in a group during a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    /// CPU time of everything in it, the slot's own work included.
    pub cpu: Option<Duration>,
    /// Most memory that it held, in bytes, the slot's own included; since the run began where `peak_is_of_run`.
    pub peak: Option<u64>,
    /// Otherwise the peak is that of the group's whole life.
    pub peak_is_of_run: bool,
    pub killed: Killed,
}

/// What the slot itself needs, as found by running an empty program (see `rehearsal.rs`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Own {
    /// Bytes that the group held at most.
    pub memory: u64,
    /// Of them, what was resident in the program's own process.
    pub resident: u64,
    /// CPU time besides the program's.
    pub cpu: Duration,
}

/// A control group in each hierarchy that is of use. Removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Group {
    folders: Vec<Folder>,
    memory: Option<Memory>,
    tasks: Option<Numbers>,
    cpu: Option<Clock>,
    set: Cell<Option<Bounds>>,
    before: Cell<(Duration, Events)>,
    pub(crate) own: Cell<Own>,
}

/// One of its folders; the lock says that we live.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// The first ability that it was made for.
    ability: Ability,
    _held: File,
}

impl Drop for Folder {
    fn drop(&mut self) {
        leftovers::remove(&self.path);
    }
}

impl Group {
    /// Makes it wherever `groups` says. Tells which ability is to blame for a failure.
    pub(super) fn make(groups: &Groups) -> Result<Self, (Ability, String)> {
        let mut group = Self {
            folders: Vec::new(),
            memory: None,
            tasks: None,
            cpu: None,
            set: Cell::new(None),
            before: Cell::default(),
            own: Cell::default(),
        };
        let any = Ability::Kill;
        let name = leftovers::slot_name().map_err(|e| (any, e.to_string()))?;
        let folder = |place: &Place| place.folder.join(&name);
        for ability in super::ABILITIES {
            let Some(place) = groups.place(ability) else {
                continue;
            };
            let path = folder(place);
            group
                .add(ability, place.version, &path)
                .map_err(|reason| (ability, reason))?;
        }
        Ok(group)
    }

    /// Makes its folder, if this is the first to need it, and opens the files.
    fn add(&mut self, ability: Ability, version: Version, path: &Path) -> Result<(), String> {
        if self.folders.iter().all(|f| f.path != path) {
            fs::create_dir(path).map_err(|e| describe(path, &e))?;
            let held = leftovers::lock(path);
            // From here on it is removed whatever comes.
            let folder = held.map(|held| Folder {
                path: path.to_path_buf(),
                ability,
                _held: held,
            });
            self.folders.push(folder.map_err(|error| {
                let _ = fs::remove_dir(path);
                describe(path, &error)
            })?);
        }
        let writable = |name: &str| {
            let file = path.join(name);
            Numbers::writable(&file).map_err(|e| describe(&file, &e))
        };
        match ability {
            Ability::Memory => self.memory = Some(Memory::open(version, path)?),
            Ability::Tasks => self.tasks = Some(writable("pids.max")?),
            Ability::Cpu => self.cpu = Some(Clock::open(version, path)?),
            Ability::Kill => {
                let file = path.join("cgroup.kill");
                fs::metadata(&file).map_err(|e| describe(&file, &e))?;
            }
        }
        Ok(())
    }

    /// Puts a process in, with all that it will fork. Tells which ability is to blame for a failure.
    pub(crate) fn join(&self, process: u32) -> Result<(), (Ability, String)> {
        for Folder { path, ability, .. } in &self.folders {
            let file = path.join("cgroup.procs");
            fs::write(&file, process.to_string()).map_err(|e| (*ability, describe(&file, &e)))?;
        }
        Ok(())
    }

    pub(crate) fn bounds_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Sets the bounds of the next run, and begins to count.
    pub(crate) fn begin(&self, bounds: Bounds) -> std::io::Result<()> {
        let set = self.set.get();
        if set != Some(bounds) {
            if let Some(memory) = &self.memory {
                memory.bound(set.map(|s| s.memory), bounds.memory)?;
            }
            if let Some(tasks) = &self.tasks {
                let any = bounds.tasks >= MOST_TASKS;
                let value = if any {
                    "max".into()
                } else {
                    bounds.tasks.to_string()
                };
                tasks.set(&value)?;
            }
            self.set.set(Some(bounds));
        }
        let mut events = Events::default();
        if let Some(memory) = &self.memory {
            memory.peak.reset()?;
            events = memory.events()?;
        }
        self.before.set((self.clock()?.unwrap_or_default(), events));
        Ok(())
    }

    fn clock(&self) -> std::io::Result<Option<Duration>> {
        self.cpu.as_ref().map(Clock::read).transpose()
    }

    /// CPU time that the program of this run has used so far, or a little less: twice what the slot needs for a run is
    /// taken off. Nothing where it cannot be told.
    pub(crate) fn program_cpu(&self) -> Option<Duration> {
        let used = self.clock().ok()??.saturating_sub(self.before.get().0);
        Some(self.without_own(used))
    }

    /// Takes the slot's own work off; see [`Group::program_cpu`].
    pub(crate) fn without_own(&self, cpu: Duration) -> Duration {
        cpu.saturating_sub(2 * self.own.get().cpu)
    }

    /// Whether the kernel has killed in this run because the group reached its bound.
    pub(crate) fn over_bound(&self) -> bool {
        self.used()
            .is_ok_and(|used| used.killed == Killed::OverBound)
    }

    /// What happened since [`Group::begin`].
    pub(crate) fn used(&self) -> std::io::Result<Used> {
        let (clock, before) = self.before.get();
        let mut used = Used {
            cpu: self.clock()?.map(|now| now.saturating_sub(clock)),
            peak: None,
            peak_is_of_run: false,
            killed: Killed::Nobody,
        };
        if let Some(memory) = &self.memory {
            used.peak = memory.peak.read()?;
            used.peak_is_of_run = matches!(memory.peak, Peak::OfRun(..));
            let bound = self.set.get().map_or(u64::MAX, |b| b.memory);
            used.killed = memory.events()?.since(&before, used.peak, bound);
        }
        Ok(used)
    }

    /// Most memory that a run's processes held together, in bytes, the interpreter's own included; where it is known
    /// of that run alone.
    pub(crate) fn peak_of_program(&self, used: &Used) -> Option<u64> {
        let own = self.own.get();
        let peak = used.peak.filter(|_| used.peak_is_of_run)?;
        Some(peak.saturating_sub(own.memory) + own.resident)
    }

    /// What it holds now, in bytes.
    pub(crate) fn held(&self) -> Option<u64> {
        self.memory.as_ref()?.now.number().ok()
    }

    /// How many processes are alive in it.
    pub(crate) fn processes(&self) -> usize {
        let lines = |folder: &Folder| fs::read_to_string(folder.path.join("cgroup.procs"));
        let text = self.folders.first().and_then(|f| lines(f).ok());
        text.map_or(0, |t| t.lines().count())
    }
}

/// CPU time of everything in a group.
#[derive(Debug)]
enum Clock {
    Nanoseconds(Numbers),
    Microseconds(Numbers),
}

impl Clock {
    fn open(version: Version, group: &Path) -> Result<Self, String> {
        let name = match version {
            Version::One => "cpuacct.usage",
            Version::Two => "cpu.stat",
        };
        let file = group.join(name);
        let told = |e| describe(&file, &e);
        let numbers = Numbers::read_only(&file).map_err(told)?;
        let clock = match version {
            Version::One => Self::Nanoseconds(numbers),
            Version::Two => Self::Microseconds(numbers),
        };
        clock.read().map_err(told)?;
        Ok(clock)
    }

    fn read(&self) -> std::io::Result<Duration> {
        match self {
            Self::Nanoseconds(file) => file.number().map(Duration::from_nanos),
            Self::Microseconds(file) => file.named("usage_usec").map(Duration::from_micros),
        }
    }
}
