//! The ways of running the program.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rlef_benches::{children, said, tree_cpu, wait_for_others};
use rlef_sandbox::{Config, Ending, Limits, Sandbox};

/// Tests of a candidate.
pub const TESTS: u32 = 10;

/// What is run.
pub struct Setting {
    pub python: PathBuf,
    /// What it imports besides the standard library.
    packages: Vec<String>,
    folder: tempfile::TempDir,
    source: String,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Setting {
    pub fn new(python: &Path, packages: &[&str], source: &str, input: Vec<u8>) -> Result<Self> {
        // A version manager's script in front of the interpreter is not the interpreter's cost.
        let real = said(
            &python.to_string_lossy(),
            &["-c", "import sys; print(sys.executable)"],
        );
        if real.is_empty() {
            bail!("cannot start {}", python.display());
        }
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("main.py"), source)?;
        std::fs::write(folder.path().join("input"), &input)?;
        let mut setting = Self {
            python: real.into(),
            packages: packages.iter().map(|p| (*p).to_owned()).collect(),
            folder,
            source: source.into(),
            input,
            output: vec![],
        };
        let bare = setting.bare();
        setting.output = setting.command(&bare)?;
        Ok(setting)
    }

    fn file(&self) -> String {
        self.folder.path().join("main.py").display().to_string()
    }

    /// The words of a command that runs the program without any isolation.
    pub fn bare(&self) -> Vec<String> {
        vec![self.python.display().to_string(), self.file()]
    }

    /// The program in bubblewrap, with the namespaces and the private folders that this sandbox has.
    pub fn bubblewrap(&self) -> Vec<String> {
        let folder = self.folder.path().display().to_string();
        let mut words: Vec<String> = [
            "bwrap",
            "--unshare-all",
            "--new-session",
            "--die-with-parent",
            "--ro-bind",
            "/",
            "/",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--tmpfs",
            "/tmp",
            "--ro-bind",
            &folder,
            "/tmp/box",
            "--chdir",
            "/tmp",
        ]
        .map(String::from)
        .to_vec();
        words.extend([self.python.display().to_string(), "/tmp/box/main.py".into()]);
        words
    }

    fn firejail(&self) -> Vec<String> {
        let folder = self.folder.path().display().to_string();
        let mut words: Vec<String> = [
            "firejail",
            "--quiet",
            "--noprofile",
            "--net=none",
            "--seccomp",
            "--caps.drop=all",
        ]
        .map(String::from)
        .to_vec();
        words.extend([
            format!("--read-only={folder}"),
            self.python.display().to_string(),
            self.file(),
        ]);
        words
    }

    pub fn command(&self, words: &[String]) -> Result<Vec<u8>> {
        let (program, arguments) = words.split_first().context("an empty command")?;
        let output = Command::new(program)
            .args(arguments)
            .stdin(Stdio::from(File::open(self.folder.path().join("input"))?))
            .output()
            .with_context(|| format!("cannot start {program}"))?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        if !self.output.is_empty() && output.stdout != self.output {
            bail!("{program} gives another output");
        }
        Ok(output.stdout)
    }

    pub fn sandboxed(&self, sandbox: &Sandbox) -> Result<()> {
        self.same(&sandbox.run(&self.source, &self.input, &limits())?)
    }

    pub fn candidate(&self, sandbox: &Sandbox) -> Result<()> {
        let candidate = sandbox.candidate(&self.source);
        (0..TESTS).try_for_each(|_| self.same(&candidate.run(&self.input, &limits())?))
    }

    fn same(&self, outcome: &rlef_sandbox::Outcome) -> Result<()> {
        if outcome.ending != Ending::Exited(0) || outcome.stdout != self.output {
            bail!(
                "in the sandbox the program does something else: {}",
                outcome.ending
            );
        }
        Ok(())
    }

    /// An interpreter that has what the program needs and forks it without any isolation.
    fn forking(&self) -> Result<Forking> {
        let server = self.folder.path().join("floor.py");
        std::fs::write(&server, include_str!("floor.py"))?;
        let mut process = Command::new(&self.python)
            .arg(server)
            .arg(self.file())
            .arg(self.folder.path().join("input"))
            .args(["collections", "heapq", "json", "random", "re"])
            .args(&self.packages)
            .env("OPENBLAS_NUM_THREADS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let ends = process.stdin.take().zip(process.stdout.take());
        let (ask, answer) = ends.context("the interpreter that forks has no pipes")?;
        Ok(Forking {
            process,
            ask,
            answer,
        })
    }

    /// The sandbox, with or without the warm interpreter.
    pub fn sandbox(&self, warm: bool) -> Result<Sandbox> {
        let config = Config {
            interpreter: Some(self.python.clone()),
            packages: self.packages.clone(),
            warm,
            ..Config::default()
        };
        Ok(Sandbox::new(config)?)
    }
}

fn limits() -> Limits {
    Limits::with_cpu(Duration::from_secs(20))
}

/// One way of running the program.
pub struct Way {
    pub name: String,
    /// Tests that one run counts for.
    pub tests: u32,
    how: How,
    /// The sandbox's launchers: what they have used is not known to this process before they end.
    launchers: Vec<i32>,
    before: Duration,
}

/// The floor: a fork of a ready interpreter, and nothing around it.
struct Forking {
    process: Child,
    ask: ChildStdin,
    answer: ChildStdout,
}

impl Forking {
    fn run(&mut self) -> Result<()> {
        self.ask.write_all(b"\n")?;
        (self.answer.read_exact(&mut [0])).context("the program fails when it is forked")
    }
}

impl Drop for Forking {
    fn drop(&mut self) {
        // One that has ended by itself is waited for all the same.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

type Made = fn(Box<Sandbox>) -> How;

enum How {
    Command(Vec<String>),
    Run(Box<Sandbox>),
    Candidate(Box<Sandbox>),
    Forked(Forking),
}

impl Way {
    /// The bare interpreter first, the floor last; between them the sandbox, and of the others those that are installed.
    /// Or of these only the sandbox.
    pub fn all(setting: &Setting, two: bool) -> Result<Vec<Self>> {
        let mut all = vec![Self::command("bare `python3 file.py`", setting.bare())];
        let sandboxes: [(&str, bool, u32, Made); 3] = [
            ("**rlef**, one test", true, 1, How::Run),
            (
                "**rlef**, candidate with 10 tests, compiling included",
                true,
                TESTS,
                How::Candidate,
            ),
            ("rlef, interpreter started afresh", false, 1, How::Run),
        ];
        let count = if two { 2 } else { sandboxes.len() };
        for (name, warm, tests, how) in sandboxes.into_iter().take(count) {
            all.push(Self::kept(name, tests, setting, || {
                Ok(how(Box::new(setting.sandbox(warm)?)))
            })?);
        }
        let peers = [
            ("bwrap", "bubblewrap", setting.bubblewrap()),
            ("firejail", "firejail", setting.firejail()),
        ];
        let count = if two { 0 } else { peers.len() };
        for (program, name, words) in peers.into_iter().take(count) {
            let version = said(program, &["--version"]);
            if version.is_empty() {
                eprintln!("{program} is not installed: left out");
                continue;
            }
            all.push(Self::command(&format!("{name} ({version})"), words));
        }
        let floor = "forked from a ready interpreter, no isolation (floor)";
        all.push(Self::kept(floor, 1, setting, || {
            Ok(How::Forked(setting.forking()?))
        })?);
        Ok(all)
    }

    /// One that has processes of its own which stay from run to run.
    fn kept(
        name: &str,
        tests: u32,
        setting: &Setting,
        how: impl FnOnce() -> Result<How>,
    ) -> Result<Self> {
        let known = children();
        let mut way = Self {
            name: name.into(),
            tests,
            how: how()?,
            launchers: vec![],
            before: Duration::ZERO,
        };
        // Once before it counts: what is made only once is there.
        way.run(setting).with_context(|| way.name.clone())?;
        way.launchers = children();
        way.launchers.retain(|pid| !known.contains(pid));
        way.before = tree_cpu(&way.launchers);
        Ok(way)
    }

    fn command(name: &str, words: Vec<String>) -> Self {
        Self {
            name: name.into(),
            tests: 1,
            how: How::Command(words),
            launchers: vec![],
            before: Duration::ZERO,
        }
    }

    pub fn run(&mut self, setting: &Setting) -> Result<()> {
        match &mut self.how {
            How::Command(words) => {
                let known = children();
                setting.command(words)?;
                // Some commands end before what they have started.
                wait_for_others(&known);
                Ok(())
            }
            How::Run(sandbox) => setting.sandboxed(sandbox),
            How::Candidate(sandbox) => setting.candidate(sandbox),
            How::Forked(forking) => forking.run(),
        }
    }

    /// CPU time that its launchers have used, setting up left out.
    pub fn launchers_cpu(&self) -> Duration {
        tree_cpu(&self.launchers).saturating_sub(self.before)
    }
}
