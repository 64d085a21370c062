//! The ways of judging beside the judge: an interpreter for each test, and another judge by a command.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use rlef_benches::said;

/// An interpreter that is started for each test and not isolated at all.
pub struct Bare {
    python: PathBuf,
    folder: tempfile::TempDir,
    /// Inputs and the outputs of the program for them.
    pub tests: Vec<(String, String)>,
}

impl Bare {
    pub fn new(source: &str, tests: usize) -> Result<Self> {
        // A version manager's script in front of the interpreter is not the interpreter's cost.
        let python = said("python3", &["-c", "import sys; print(sys.executable)"]);
        if python.is_empty() {
            bail!("cannot start python3");
        }
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("main.py"), source)?;
        let mut bare = Self {
            python: python.into(),
            folder,
            tests: vec![],
        };
        for test in 0..tests {
            let numbers: Vec<String> = (0..200)
                .map(|i| ((i + test) * 7919 % 1000).to_string())
                .collect();
            let input = format!("{}\n{}\n", numbers.len(), numbers.join(" "));
            let output = bare.run(&input)?;
            let file = |ending: &str| bare.folder.path().join(format!("{}.{ending}", test + 1));
            std::fs::write(file("in"), &input)?;
            std::fs::write(file("out"), &output)?;
            bare.tests.push((input, output));
        }
        Ok(bare)
    }

    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    fn run(&self, input: &str) -> Result<String> {
        let mut child = Command::new(&self.python)
            .arg(self.folder.path().join("main.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().context("no stdin")?;
        stdin.write_all(input.as_bytes())?;
        drop(stdin);
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!("the program failed: {}", output.status);
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// All tests once.
    pub fn judge(&self, workers: usize) -> Result<()> {
        let next = AtomicUsize::new(0);
        let work = || -> Result<()> {
            while let Some((input, output)) = self.tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.run(input)? != *output {
                    bail!("the program printed something else");
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|t| match t.join() {
                Ok(result) => result,
                Err(_) => bail!("a thread of the measurement ended early"),
            })
        })
    }
}

/// Another judge, started for each round.
pub struct Peer {
    words: Vec<String>,
    tests: usize,
}

impl Peer {
    pub fn new(command: &str, bare: &Bare) -> Result<Self> {
        let mut words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            bail!("--peer is empty");
        }
        let folder = bare.folder();
        words.push(folder.join("main.py").display().to_string());
        words.push(folder.display().to_string());
        let tests = bare.tests.len();
        words.push(tests.to_string());
        Ok(Self { words, tests })
    }

    pub fn name(&self) -> String {
        let script = self.words.iter().rev().nth(3);
        let name = script.and_then(|path| path.rsplit('/').next());
        name.unwrap_or("another judge").to_owned()
    }

    pub fn judge(&self, workers: usize) -> Result<()> {
        let (program, arguments) = self.words.split_first().context("no command")?;
        let output = Command::new(program)
            .args(arguments)
            .arg(workers.to_string())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        if said.trim() != self.tests.to_string() {
            bail!("it accepted `{}` of {} tests", said.trim(), self.tests);
        }
        Ok(())
    }
}
