//! The public face: a [`Sandbox`] finds the interpreter once, checks its protections, and keeps slots ready.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::call::{self, Called};
use crate::candidate::{Candidate, CodeCache};
use crate::cgroup::{Ability, Groups};
use crate::interpreter::{HELPER, Interpreter};
use crate::language::{Compiled, LanguageStatus, Languages, PYTHON, Program};
use crate::launcher::order;
use crate::own;
use crate::pool::{Pool, Rehearsal, Shared};
use crate::protection::{self, Protection, SELF_CHECK, SelfCheck};
use crate::slot::{self, Slot};
use crate::supervise::{self, Baseline, Job, Source, Terms};
use crate::wire::{Form, SlotPlan, WarmPlan};
use crate::{Ending, Fault, Limits, Outcome, fault, identity, packages, policy};

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
    /// Packages that Python programs may import besides the standard library, as in `import NAME`: those of the
    /// interpreter (or of the virtual environment that it belongs to), with what they need. The warm interpreter imports
    /// them, in this order. Each makes every run dearer, used or not: numpy by about a millisecond. Default: none.
    pub packages: Vec<String>,
    /// Language files besides those that come with the crate (`assets/languages/`, whose README says what stands in
    /// one). One for a language that is known already takes the place of its file. Default: none.
    pub languages: Vec<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            interpreter: None,
            strict: true,
            warm: true,
            groups: true,
            packages: Vec::new(),
            languages: Vec::new(),
        }
    }
}

/// Runs programs, each isolated from the host and from all others. Cheap to share: every method takes `&self`, and as
/// many programs run at once as there are calls.
///
/// Methods that take a source text alone are for Python; [`Sandbox::compile`] is for every language.
pub struct Sandbox {
    pub(crate) python: Pool,
    version: String,
    protections: Vec<Protection>,
    pub(crate) languages: Languages,
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
        let languages = Languages::read(&config.languages)?;
        let found = Interpreter::find(config.interpreter.as_deref(), &config.packages)?;
        let mut modules = found.modules;
        modules.extend(config.packages.iter().cloned());
        let warm = WarmPlan {
            modules,
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
            filter: policy::filter(&[])?,
            form: Form::Python,
            executable: found.executable,
            arguments: found.arguments,
            environment: found.environment,
            file: found.file,
        };
        let shared = Arc::new(Shared::new(groups));
        let terms = Terms::python(Baseline::default());
        let mut python = Pool::new(shared.clone(), plan, terms, Rehearsal::Empty);
        let limits = Limits {
            memory_bytes: 4 << 30,
            ..Limits::with_cpu(Duration::from_secs(10))
        };
        let mut slot = python.make()?;
        let seen = match self_check(&slot, &limits, &python.terms) {
            Err(fault) if slot.cold.is_none() => {
                // A fork that does not work here may still be one that can be done without.
                python.plan.warm = None;
                slot = python.make()?;
                slot.cold = Some(fault.to_string());
                self_check(&slot, &limits, &python.terms)?
            }
            other => other?,
        };
        python.terms.baseline = Baseline {
            mapped: seen.mapped,
            resident: seen.resident,
        };
        python.rehearse(&slot)?;
        if !config.packages.is_empty() {
            let wanted = config.interpreter.unwrap_or_else(|| "python3".into());
            imported(&slot, &config.packages, &python.terms)
                .map_err(|reason| packages::fault(&wanted, reason))?;
        }
        let mut protections = protection::judge(&seen, &slot);
        protections.extend(shared.groups.protections());
        python.keep(slot);
        let absent = protections.iter().filter(|p| p.required && !p.in_force);
        let missing: Vec<String> = absent
            .map(|p| format!("{} ({})", p.name, p.detail))
            .collect();
        if config.strict && !missing.is_empty() {
            return Err(Fault::Unprotected { missing });
        }
        Ok(Self {
            python,
            version: found.version,
            protections,
            languages: languages.on(shared),
        })
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
            code,
            ..Job::new(Source::Text(source), stdin, limits, &self.python.terms)
        };
        Ok(self.python.run(&job)?.outcome)
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
        let (source, terms) = (Source::Text(source), &self.python.terms);
        let job = Job {
            mode: order::CALL,
            code,
            ..Job::new(source, asked.as_bytes(), limits, terms)
        };
        let done = self.python.run(&job)?;
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
            source: Source::Text(""),
            code: None,
            ..*job
        };
        let done = self.python.run(&empty)?;
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
        let outcome = self.python.run(&Job {
            mode: order::CHECK,
            ..Job::new(Source::Text(source), b"", limits, &self.python.terms)
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
        own::can_be_kept(limits, &self.python.terms)
    }

    /// Compiles a program in whatever language there is a file for, in a sandbox of its own, and makes it ready to be
    /// run on any number of inputs. A Python program is not looked at here: what is wrong with it shows when it is run
    /// (or in [`Sandbox::syntax_check`]).
    ///
    /// The first program of a language takes longer: its tools are looked for and tried.
    ///
    /// # Errors
    /// A fault says nothing about the program: [`Fault::UnknownLanguage`], [`Fault::NoTools`] where what the language
    /// needs is not installed, [`Fault::Tools`] where it does not work, or as for [`Sandbox::run`]. What the compiler has
    /// against the program is in [`Compiled::Error`].
    pub fn compile(&self, program: &Program) -> Result<Compiled<'_>, Fault> {
        match self.languages.name(program.language)? {
            PYTHON => Ok(Compiled::Program(self.candidate(program.source))),
            name => self.languages.compile(name, program.source),
        }
    }

    /// The languages that there are files for, and whether their tools are here. Starts each tool to ask for its
    /// version the first time.
    pub fn languages(&self) -> Vec<LanguageStatus> {
        self.languages.list(&self.version)
    }

    /// Whether programs in a language can be run: there is a file for it, and its tools are here.
    pub fn can_run(&self, language: &str) -> bool {
        self.languages.can_run(language)
    }

    /// By how much longer programs in a language may take than what the same would take in C, according to its file.
    ///
    /// # Errors
    /// [`Fault::UnknownLanguage`].
    pub fn time_factor(&self, language: &str) -> Result<f64, Fault> {
        self.languages.time_factor(language)
    }

    /// Each layer of protection and whether it is in force on this system.
    pub fn protections(&self) -> Vec<Protection> {
        self.protections.clone()
    }

    /// Version of the interpreter, as in `3.11.7`.
    pub fn python_version(&self) -> &str {
        &self.version
    }
}

/// Whether programs really get the packages. If not, what is in the way.
fn imported(slot: &Slot, packages: &[String], terms: &Terms) -> Result<(), String> {
    // Each is named before its turn: one that hangs has no last words.
    let import = |p: &String| {
        format!("sys.stderr.write('\\n{IMPORTING}{p}\\n')\nsys.stderr.flush()\nimport {p}\n")
    };
    let imports: String = packages.iter().map(import).collect();
    let source = format!("import sys\n{imports}");
    let limits = Limits {
        memory_bytes: 4 << 30,
        ..Limits::with_cpu(Duration::from_secs(20))
    };
    let job = Job::new(Source::Text(&source), b"", &limits, terms);
    let outcome = supervise::run(slot, &job).map_err(|fault| fault.to_string())?;
    let outcome = outcome.outcome;
    if outcome.ending == Ending::Exited(0) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&outcome.stderr);
    let turn = |line: &str| line.strip_prefix(IMPORTING).map(str::to_owned);
    let name = said.lines().rev().find_map(turn).unwrap_or_default();
    let last = said.trim_end().lines().last().unwrap_or_default();
    let last = if turn(last).is_some() { "" } else { last };
    Err(format!(
        "imported in the sandbox, `{name}` fails: {}: {last}; leave out what does not work without a network, threads or \
         files of the host",
        outcome.ending
    ))
}

/// Stands before the name of a package in stderr.
const IMPORTING: &str = "importing ";

fn self_check(slot: &Slot, limits: &Limits, terms: &Terms) -> Result<SelfCheck, Fault> {
    let outcome = supervise::run(
        slot,
        &Job::new(Source::Text(SELF_CHECK), b"", limits, terms),
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
