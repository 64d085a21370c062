//! The judge's settings, and the limits a problem's programs run under.

use std::collections::BTreeMap;
use std::time::Duration;

use rlef_problems::Problem;
use rlef_sandbox::{Limits, PYTHON};
use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// Settings of a [`Judge`](crate::Judge).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JudgeConfig {
    /// A command that runs programs in place of the sandbox, with its arguments: a virtual machine, gVisor, bubblewrap …
    /// `{file}` stands for the program's file. What a program may see, reach and use is then the command's business.
    /// Default: none.
    pub command: Vec<String>,
    /// The Python interpreter of the sandbox: a name on the PATH or a file. Default: `python3`.
    pub python: String,
    /// Packages of that interpreter that Python programs may import besides the standard library (`["numpy"]`); each makes
    /// every run a little dearer. Default: none.
    pub packages: Vec<String>,
    /// CPU seconds allowed = the problem's time limit × this. Default 1.
    pub time_factor: f64,
    /// For programs in a language, by its name (`cpp = 1.0`): the problem's time limit is multiplied by this as well.
    /// Default: for each language what its file says.
    pub language_time_factors: BTreeMap<String, f64>,
    /// A program that needs more CPU time than its limit may go on up to the limit × this. One that ends by then was near
    /// the limit, and what decides is another run under the limit itself, with no other program of this judge beside it:
    /// a busy machine makes programs slower (caches, shared cores). Default 1.5; 1 takes the first run at its word.
    pub near_limit: f64,
    /// CPU seconds that a problem's output validator has for one test. Default 60, as in the ICPC package format.
    pub validator_time_s: f64,
    /// Memory that it has, in MiB. Default 2048, as there.
    pub validator_memory_mb: u64,
    /// Wall-clock seconds allowed = the larger of CPU seconds × this and CPU seconds + `wall_extra_s`. Default 3.
    pub wall_factor: f64,
    /// See `wall_factor`. Default 2 seconds, so that a short limit is not a limit on the machine's load.
    pub wall_extra_s: f64,
    /// Memory allowed = the problem's memory limit × this. Default 1.
    pub memory_factor: f64,
    /// Cap on stdout and, separately, on stderr, in bytes, at least 1 KiB. Default 16 MiB.
    pub output_bytes: u64,
    /// Processes and threads at once, at least 1. Default 16.
    pub processes: u32,
    /// Largest file and size of the private `/tmp`, in bytes, at least 64 KiB. Default 64 MiB.
    pub file_bytes: u64,
    /// How often a run that ended in a fault (never one that ended in a failure) is tried again. Default 2.
    pub retries: u32,
    /// Pause before the first retry, in milliseconds; each further one is twice as long. Default 50.
    pub retry_pause_ms: u64,
    /// Whether the outcome of a run is remembered for the same source, stdin and limits. Default true.
    pub cache: bool,
    /// Memory the remembered outcomes may take, in bytes. Default 64 MiB.
    pub cache_bytes: u64,
    /// How much of stdout a [`TestResult`](crate::TestResult) keeps (its start), in bytes; the comparison always
    /// sees all of it. Default 64 KiB.
    pub kept_stdout_bytes: usize,
    /// How much of stderr a [`TestResult`](crate::TestResult) keeps (its end, where the trace is), in bytes.
    /// Default 16 KiB.
    pub kept_stderr_bytes: usize,
}

impl Default for JudgeConfig {
    fn default() -> Self {
        Self {
            command: vec![],
            python: "python3".into(),
            packages: vec![],
            time_factor: 1.0,
            language_time_factors: BTreeMap::new(),
            near_limit: 1.5,
            validator_time_s: 60.0,
            validator_memory_mb: 2048,
            wall_factor: 3.0,
            wall_extra_s: 2.0,
            memory_factor: 1.0,
            output_bytes: 16 << 20,
            processes: 16,
            file_bytes: 64 << 20,
            retries: 2,
            retry_pause_ms: 50,
            cache: true,
            cache_bytes: 64 << 20,
            kept_stdout_bytes: 64 << 10,
            kept_stderr_bytes: 16 << 10,
        }
    }
}

impl JudgeConfig {
    /// Checks every setting's range.
    ///
    /// # Errors
    /// [`Fault::Setting`] names the first one that is out of range.
    pub fn check(&self) -> Result<(), Fault> {
        let positive = [
            ("time_factor", self.time_factor),
            ("wall_factor", self.wall_factor),
            ("memory_factor", self.memory_factor),
            ("validator_time_s", self.validator_time_s),
        ];
        for (setting, value) in positive {
            if !(value.is_finite() && value > 0.0) {
                let what = format!("is {value}; it must be a number above 0");
                return Err(Fault::Setting { setting, what });
            }
        }
        if !(1.0..=100.0).contains(&self.near_limit) {
            let what = format!("is {}; it must be a number from 1 to 100", self.near_limit);
            let setting = "near_limit";
            return Err(Fault::Setting { setting, what });
        }
        if let Err(what) = self.try_validator_limits() {
            let setting = "validator_memory_mb";
            return Err(Fault::Setting { setting, what });
        }
        for (language, factor) in &self.language_time_factors {
            if !(factor.is_finite() && *factor > 0.0) {
                return Err(Fault::Setting {
                    setting: "language_time_factors",
                    what: format!("says {factor} for {language}; it must be a number above 0"),
                });
            }
        }
        if !(self.wall_extra_s.is_finite() && self.wall_extra_s >= 0.0) {
            let what = format!("is {}; it must be 0 or more seconds", self.wall_extra_s);
            return Err(Fault::Setting {
                setting: "wall_extra_s",
                what,
            });
        }
        if self.wall_factor < 1.0 && self.wall_extra_s == 0.0 {
            let what = format!(
                "is {} with `wall_extra_s` 0, so the CPU limit could never be reached; give one of the two more",
                self.wall_factor
            );
            return Err(Fault::Setting {
                setting: "wall_factor",
                what,
            });
        }
        // Those that are limits of programs as they stand.
        let limits = self.own_limits(Duration::from_secs(1), Duration::from_secs(1), 1 << 30);
        match limits.check() {
            Err(rlef_sandbox::Fault::Limit { limit, what }) => Err(Fault::Setting {
                setting: limit,
                what,
            }),
            _ => Ok(()),
        }
    }

    /// The limits for Python programs that try to solve `problem`.
    ///
    /// # Errors
    /// [`Fault::Limits`] if the problem's limits and the factors give none that a program can be judged under; see
    /// [`Limits::check`].
    pub fn limits_for(&self, problem: &Problem) -> Result<Limits, Fault> {
        let factor = self.language_time_factors.get(PYTHON);
        self.limits_with(problem, factor.copied().unwrap_or(1.0))
    }

    /// The same for programs in a language whose factor is known.
    pub(crate) fn limits_with(&self, problem: &Problem, factor: f64) -> Result<Limits, Fault> {
        let bad = |what: String| Fault::Limits {
            problem: problem.id.clone(),
            what,
        };
        let cpu_s = problem.time_limit_s * self.time_factor * factor;
        let memory_mb = problem.memory_limit_mb as f64 * self.memory_factor;
        self.limits_of(cpu_s, memory_mb).map_err(bad)
    }

    /// The limits under which a program runs that may be near its own.
    pub(crate) fn generous(&self, limits: &Limits) -> Limits {
        if self.near_limit <= 1.0 {
            return *limits;
        }
        let longer = limits.cpu.as_secs_f64() * self.near_limit;
        Limits {
            cpu: Duration::try_from_secs_f64(longer).unwrap_or(limits.cpu),
            ..*limits
        }
    }

    /// The limits for output validators.
    pub(crate) fn validator_limits(&self) -> Limits {
        let checked = self.try_validator_limits();
        // Checked before there is a judge.
        checked.unwrap_or_else(|_| Limits::with_cpu(Duration::from_secs(60)))
    }

    fn try_validator_limits(&self) -> Result<Limits, String> {
        self.limits_of(self.validator_time_s, self.validator_memory_mb as f64)
    }

    fn limits_of(&self, cpu_s: f64, memory_mb: f64) -> Result<Limits, String> {
        let cpu = Duration::try_from_secs_f64(cpu_s)
            .ok()
            .filter(|cpu| !cpu.is_zero())
            .ok_or_else(|| format!("a time limit of {cpu_s} seconds cannot be kept"))?;
        let wall_s = (cpu_s * self.wall_factor).max(cpu_s + self.wall_extra_s);
        let wall = Duration::try_from_secs_f64(wall_s)
            .map_err(|e| format!("a wall-clock limit of {wall_s} seconds cannot be kept: {e}"))?;
        // What is no number or below 0 becomes 0, and what is too large the largest: both are out of range.
        let memory = memory_mb * f64::from(1 << 20);
        let limits = self.own_limits(cpu, wall, memory as u64);
        limits.check().map_err(|error| error.to_string())?;
        Ok(limits)
    }

    fn own_limits(&self, cpu: Duration, wall: Duration, memory_bytes: u64) -> Limits {
        Limits {
            cpu,
            wall,
            memory_bytes,
            output_bytes: self.output_bytes,
            processes: self.processes,
            file_bytes: self.file_bytes,
        }
    }
}
