//! One language at work: its tools, once they have been found and tried, and the slots that compile and run.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::file::{Compile, Kind, LanguageFile};
use super::main_class::{main_class, starting};
use super::message::{clean, part_was_killed};
use super::tools::Tools;
use super::{CompileError, Compiled};
use crate::artifact::Artifact;
use crate::cgroup::Ability;
use crate::files::Files;
use crate::pool::{Pool, Rehearsal, Shared};
use crate::root::RootPlan;
use crate::supervise::{Baseline, Finished, Job, Left, Source, Terms};
use crate::wire::{Form, ProductPlan, SlotPlan};
use crate::{Candidate, Ending, Fault, Limits, Outcome, identity, policy};

/// For the known program; a JVM on a busy machine is ready in a second or two.
const CHECK_CPU: Duration = Duration::from_secs(20);
/// Main thread's stack of a compiler, soft and hard: they recurse deeply.
const COMPILER_STACK: (u64, u64) = (64 << 20, 64 << 20);
/// Address space of a compiler on top of its memory limit where that is bounded in its place: libraries, and what is
/// mapped but not used.
const COMPILER_SPACE: u64 = 1 << 30;
/// How often compiling is tried because the machine was too busy to tell anything, or because somebody (as a rule the kernel,
/// for want of memory) killed the compiler.
const TRIES: u32 = 3;

/// A language of a sandbox.
pub(super) struct Kit {
    file: LanguageFile,
    shared: Arc<Shared>,
    /// Set when they have been found: what is absent may be installed, and a busy machine answers later.
    tools: OnceLock<Tools>,
    /// Set when the known program has compiled and run.
    slots: OnceLock<Slots>,
    setting_up: Mutex<()>,
}

struct Slots {
    compile: Option<Compiling>,
    run: Pool,
}

struct Compiling {
    pool: Pool,
    limits: Limits,
    product: ProductPlan,
    /// Endings of files that are compiled together.
    sources: Vec<String>,
    /// The class that is started and the ending of its file, where programs may have another.
    starter: Option<(String, String)>,
    rejects: Vec<i32>,
    /// What a message must not show.
    visible: Vec<PathBuf>,
}

/// What a compiler made of a source.
enum Made {
    Program(Artifact),
    /// It says that the program is wrong, or reached a limit.
    Rejected(CompileError),
    /// It ended in a way that may be the program's doing or its own.
    Odd(CompileError),
}

/// A compiled program and where it is run.
pub(crate) struct Ready<'s> {
    kit: &'s Kit,
    run: &'s Pool,
    artifact: Artifact,
}

impl Ready<'_> {
    pub(crate) fn language(&self) -> &str {
        &self.kit.file.title
    }

    pub(crate) fn run(&self, stdin: &[u8], limits: &Limits) -> Result<Outcome, Fault> {
        run(self.run, &self.artifact, stdin, limits)
    }
}

/// Whether the compiler, or a part of it, was killed, and not by us: nothing that it reads can make it do so itself.
fn killed(outcome: &Outcome) -> bool {
    match outcome.ending {
        Ending::Signalled(signal) => signal == libc::SIGKILL,
        Ending::Exited(code) => code != 0 && part_was_killed(&outcome.stderr),
        _ => false,
    }
}

fn killed_each_time() -> Fault {
    Fault::Broken {
        doing: "compiling a program",
        reason: format!(
            "the compiler was killed from outside, {TRIES} times; the machine may have too little memory"
        ),
    }
}

fn run(pool: &Pool, artifact: &Artifact, stdin: &[u8], limits: &Limits) -> Result<Outcome, Fault> {
    let source = Source::Compiled(artifact);
    let done = pool.run(&Job::new(source, stdin, limits, &pool.terms))?;
    Ok(done.outcome)
}

impl Kit {
    pub(super) fn new(file: LanguageFile, shared: Arc<Shared>) -> Self {
        Self {
            file,
            shared,
            tools: OnceLock::new(),
            slots: OnceLock::new(),
            setting_up: Mutex::new(()),
        }
    }

    pub(super) fn file(&self) -> &LanguageFile {
        &self.file
    }

    fn tools(&self) -> Result<&Tools, String> {
        match self.tools.get() {
            Some(tools) => Ok(tools),
            None => {
                let found = Tools::find(&self.file)?;
                Ok(self.tools.get_or_init(|| found))
            }
        }
    }

    /// What the tools say of themselves, or what was looked for.
    pub(super) fn version(&self) -> Result<String, String> {
        Ok(self.tools()?.version.clone())
    }

    pub(super) fn compile(&self, source: &str) -> Result<Compiled<'_>, Fault> {
        let artifact = match self.artifact(source, &[])? {
            Ok(artifact) => artifact,
            Err(error) => return Ok(Compiled::Error(error)),
        };
        Ok(Compiled::Program(Candidate::compiled(Ready {
            kit: self,
            run: self.pool()?,
            artifact,
        })))
    }

    /// Where programs are run.
    pub(super) fn pool(&self) -> Result<&Pool, Fault> {
        Ok(&self.slots()?.run)
    }

    /// Compiles a source that has `others` beside it, by their paths; those of its own kind are compiled with it.
    pub(super) fn artifact(
        &self,
        source: &str,
        others: &[(&str, &str)],
    ) -> Result<Result<Artifact, CompileError>, Fault> {
        let Some(compiling) = &self.slots()?.compile else {
            return self.as_it_is(source).map(Ok);
        };
        let starter = compiling.starter.as_ref();
        let main = starter.and_then(|(class, _)| main_class(source, class));
        let made = match (starter, main) {
            (Some((class, ending)), Some(main)) => {
                // In a folder of its own, as its file may have the name of the one that is started.
                let file = format!("program/{}.{ending}", main.file);
                let mut all = others.to_vec();
                all.push((&file, source));
                self.made(compiling, &starting(class, &main), &all)?
            }
            _ => self.made(compiling, source, others)?,
        };
        match made {
            Made::Program(artifact) => Ok(Ok(artifact)),
            Made::Rejected(error) => Ok(Err(error)),
            // Whoever can still compile a right program is not broken: the source is to blame.
            Made::Odd(error) => match self.made(compiling, &self.file.check.source, &[])? {
                Made::Program(_) => Ok(Err(error)),
                Made::Rejected(known) | Made::Odd(known) => Err(self.broken(&known)),
            },
        }
    }

    /// Whether what is compiled holds all of the program, so that its runs need none of its other files.
    pub(super) fn is_whole(&self) -> bool {
        self.file.run.program != Kind::File
    }

    fn as_it_is(&self, source: &str) -> Result<Artifact, Fault> {
        let kept = Artifact::of(source, self.form());
        kept.map_err(Fault::system("making a memory file"))
    }

    fn form(&self) -> Form {
        match self.file.run.program {
            Kind::Binary => Form::Executable,
            Kind::File => Form::File,
            Kind::Folder => Form::Folder,
        }
    }

    fn broken(&self, error: &CompileError) -> Fault {
        self.tools_fault(format!(
            "a known program does not compile: {} ({})",
            error.message, error.ending
        ))
    }

    fn tools_fault(&self, reason: String) -> Fault {
        Fault::Tools {
            language: self.file.title.clone(),
            reason,
        }
    }

    fn made(
        &self,
        compiling: &Compiling,
        source: &str,
        others: &[(&str, &str)],
    ) -> Result<Made, Fault> {
        let files = Files::new(others.iter().map(|(path, text)| (*path, text.as_bytes())))?;
        // Found by the compiler where the command says so, under a name that is no option.
        let further = others.iter().filter(|(path, _)| compiling.takes(path));
        let further: Vec<String> = further.map(|(path, _)| format!("./{path}")).collect();
        let mut tries = 0;
        let done = loop {
            tries += 1;
            let (source, terms) = (Source::Text(source), &compiling.pool.terms);
            let job = Job {
                files: Some(&files).filter(|_| !others.is_empty()),
                arguments: &further,
                product: Some(&compiling.product),
                ..Job::new(source, b"", &compiling.limits, terms)
            };
            match compiling.pool.run(&job) {
                Err(Fault::Overloaded { .. }) if tries < TRIES => {}
                Ok(done) if killed(&done.outcome) && tries < TRIES => {}
                Ok(done) if killed(&done.outcome) => return Err(killed_each_time()),
                other => break other?,
            }
        };
        Ok(compiling.judge(done, self.form()))
    }

    /// Looks for the tools and tries them, the first time.
    fn slots(&self) -> Result<&Slots, Fault> {
        if let Some(slots) = self.slots.get() {
            return Ok(slots);
        }
        // One thread does it; the others wait and find it done.
        let _held = self
            .setting_up
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(slots) = self.slots.get() {
            return Ok(slots);
        }
        let made = self.set_up()?;
        Ok(self.slots.get_or_init(|| made))
    }

    fn set_up(&self) -> Result<Slots, Fault> {
        let tools = self.tools().map_err(|sought| Fault::NoTools {
            language: self.file.title.clone(),
            sought,
        })?;
        let compile = match &self.file.compile {
            Some(compile) => Some(self.compiling(compile, tools)?),
            None => None,
        };
        let check = &self.file.check;
        let known = || match &compile {
            None => self.as_it_is(&check.source),
            Some(compiling) => match self.made(compiling, &check.source, &[])? {
                Made::Program(artifact) => Ok(artifact),
                Made::Rejected(error) | Made::Odd(error) => Err(self.broken(&error)),
            },
        };
        let known = known()?;
        let mut run_pool = self.running(tools, &known)?;
        let limits = Limits::with_cpu(CHECK_CPU);
        let outcome = run(&run_pool, &known, check.input.as_bytes(), &limits)?;
        if (outcome.ending, &outcome.stdout[..]) != (Ending::Exited(0), check.output.as_bytes()) {
            let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
            return Err(self.tools_fault(format!(
                "a known program does not run as it should: {}, it printed `{}`, {}",
                outcome.ending,
                String::from_utf8_lossy(&outcome.stdout).trim_end(),
                said.trim_end().chars().take(2000).collect::<String>()
            )));
        }
        // The slot that this ran in was not measured: only now is there something to measure with.
        run_pool.forget();
        run_pool.rehearsal = Rehearsal::Program(known);
        Ok(Slots {
            compile,
            run: run_pool,
        })
    }

    fn compiling(&self, compile: &Compile, tools: &Tools) -> Result<Compiling, Fault> {
        let wrong = |reason: String| self.tools_fault(reason);
        let objects = tools.fill_all(&compile.libraries_of).map_err(wrong)?;
        let objects: Vec<PathBuf> = objects.into_iter().map(PathBuf::from).collect();
        let root = tools.root(&compile.see, &objects).map_err(wrong)?;
        let plan = self.plan(
            tools,
            root,
            &compile.command,
            &compile.environment,
            (Form::File, &self.file.source),
        )?;
        let terms = Terms {
            baseline: Baseline {
                mapped: COMPILER_SPACE,
                resident: COMPILER_SPACE,
            },
            address_space: compile.address_space,
            sampled: true,
            stack: COMPILER_STACK,
            processes: 0,
            out_of_memory: Vec::new(),
        };
        let shared = self.shared.clone();
        Ok(Compiling {
            pool: Pool::new(shared, plan, terms, Rehearsal::None),
            limits: compile.limits(),
            product: ProductPlan {
                path: self.file.place().into(),
                folder: self.file.run.program == Kind::Folder,
                most_bytes: compile.product_mb.saturating_mul(1 << 20),
                always: false,
            },
            sources: compile.sources.clone(),
            starter: match self.file.source.rsplit_once('.') {
                Some((class, ending)) if compile.main_class => {
                    Some((class.to_owned(), ending.to_owned()))
                }
                _ => None,
            },
            rejects: compile.rejects.clone(),
            visible: {
                let seen = tools.seen(&compile.see).map_err(wrong)?;
                // By where they really are as well: some tools follow their links first.
                let real = seen.iter().filter_map(|path| path.canonicalize().ok());
                real.chain(seen.iter().cloned()).collect()
            },
        })
    }

    fn running(&self, tools: &Tools, known: &Artifact) -> Result<Pool, Fault> {
        let run = &self.file.run;
        let wrong = |reason: String| self.tools_fault(reason);
        let mut objects = match run.program {
            Kind::Binary => vec![known.path()],
            Kind::File | Kind::Folder => {
                let objects = tools.fill_all(&run.libraries_of).map_err(wrong)?;
                objects.into_iter().map(PathBuf::from).collect()
            }
        };
        // A linker takes only what a program uses: the known program's libraries are not those of every other. By name,
        // so that the loader looks for them where it will.
        objects.extend(run.libraries.iter().map(PathBuf::from));
        let root = tools.root(&run.see, &objects).map_err(wrong)?;
        let program = (self.form(), self.file.place());
        let plan = self.plan(tools, root, &run.command, &run.environment, program)?;
        let terms = Terms {
            baseline: {
                let own = run.own_memory_mb.saturating_mul(1 << 20);
                Baseline {
                    mapped: own,
                    resident: own,
                }
            },
            address_space: run.address_space,
            sampled: true,
            stack: {
                let bytes = run.stack_mb.saturating_mul(1 << 20);
                (bytes, bytes)
            },
            processes: run.own_processes,
            out_of_memory: run.out_of_memory.clone(),
        };
        let shared = self.shared.clone();
        Ok(Pool::new(shared, plan, terms, Rehearsal::None))
    }

    fn plan(
        &self,
        tools: &Tools,
        root: RootPlan,
        command: &[String],
        environment: &std::collections::BTreeMap<String, String>,
        (form, file): (Form, &str),
    ) -> Result<SlotPlan, Fault> {
        let wrong = |reason: String| self.tools_fault(reason);
        let mut command = tools.fill_all(command).map_err(wrong)?;
        let executable = command.remove(0);
        let mut filled = Vec::new();
        for (name, value) in environment {
            filled.push((name.clone(), tools.fill(value).map_err(wrong)?));
        }
        let mut groups = self.file.system_calls.clone();
        if form == Form::Executable {
            groups.push(policy::FROM_DESCRIPTOR.into());
        }
        Ok(SlotPlan {
            identity: identity::identity(0)?,
            root,
            filter: policy::filter(&groups)?,
            form,
            executable: executable.into(),
            arguments: command,
            environment: filled,
            file: file.into(),
            warm: None,
            programs_go_first: self.shared.groups.has(Ability::Memory),
        })
    }
}

impl Compiling {
    /// Whether it is told of such a file, or finds it by itself.
    fn takes(&self, path: &str) -> bool {
        self.sources
            .iter()
            .any(|ending| path.ends_with(ending.as_str()))
    }

    fn judge(&self, done: Finished, form: Form) -> Made {
        let Finished {
            outcome, product, ..
        } = done;
        let said = match outcome.stderr.is_empty() {
            true => &outcome.stdout,
            false => &outcome.stderr,
        };
        let said = clean(said, &self.visible);
        let ending = outcome.ending;
        let error = |message: String| CompileError { message, ending };
        let and_said = |what: String| match said.is_empty() {
            true => what.clone(),
            false => format!("{what}\n{said}"),
        };
        let limits = &self.limits;
        let reached = |what: String| {
            Made::Rejected(error(and_said(format!("the compiler reached its {what}"))))
        };
        match (ending, product) {
            (Ending::Exited(0), Left::Artifact(artifact)) => Made::Program(artifact.in_form(form)),
            (Ending::Exited(0), Left::TooLarge) => Made::Rejected(error(
                "the compiled program is larger than it may be".into(),
            )),
            (Ending::Exited(0), Left::Nothing) => {
                Made::Rejected(error(and_said("the compiler made no program of it".into())))
            }
            (Ending::Exited(code), _) if self.rejects.contains(&code) => {
                Made::Rejected(error(match said.is_empty() {
                    true => format!("the compiler rejects it without a word (exit status {code})"),
                    false => said,
                }))
            }
            (Ending::CpuLimit, _) => reached(format!("CPU time limit ({:?})", limits.cpu)),
            (Ending::WallLimit, _) => reached(format!("wall-clock time limit ({:?})", limits.wall)),
            (Ending::MemoryLimit, _) => {
                reached(format!("memory limit ({} MiB)", limits.memory_bytes >> 20))
            }
            (Ending::OutputLimit, _) => {
                reached(format!("output limit ({} KiB)", limits.output_bytes >> 10))
            }
            (Ending::Exited(_) | Ending::Signalled(_) | Ending::Forbidden(_), _) => Made::Odd(
                error(and_said(format!("the compiler did not finish: {ending}"))),
            ),
        }
    }
}
