//! What isolation costs compiled programs: the same source, compiled as its language file says, bare and in the sandbox.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rlef_benches::{children, cpu, said, tree_cpu};
use rlef_sandbox::{Candidate, Compiled, Config, Ending, Limits, Program, Sandbox};

const C: &str = r#"
#include <stdio.h>
int main(void) {
    long n, x, sum = 0;
    if (scanf("%ld", &n) != 1) return 1;
    while (scanf("%ld", &x) == 1) sum += x;
    printf("%ld\n", sum % n);
}
"#;
const CPP: &str = r#"
#include <algorithm>
#include <iostream>
#include <map>
#include <vector>
int main() {
    int n;
    std::cin >> n;
    std::vector<int> numbers(n);
    std::map<int, int> counts;
    for (int &x : numbers) { std::cin >> x; counts[x % 7]++; }
    std::sort(numbers.begin(), numbers.end());
    std::cout << numbers[n / 2] << '\n';
    for (auto [rest, count] : counts) std::cout << rest << ' ' << count << '\n';
}
"#;

/// A language, its program, and how it is compiled outside: as in its file.
struct Native {
    language: &'static str,
    source: &'static str,
    compiler: &'static str,
    flags: &'static [&'static str],
}

const ALL: [Native; 2] = [
    Native {
        language: "c",
        source: C,
        compiler: "gcc",
        flags: &["-std=gnu17", "-O2", "-w", "-pthread", "-lm"],
    },
    Native {
        language: "cpp",
        source: CPP,
        compiler: "g++",
        flags: &["-std=gnu++20", "-O2", "-w", "-pthread"],
    },
];

/// Prints a table; languages whose compiler is not installed are left out.
pub fn measure(python: &Path, input: &[u8], runs: u32) -> Result<()> {
    let mut rows = vec![];
    for native in &ALL {
        let version = said(native.compiler, &["--version"]);
        if version.is_empty() {
            eprintln!("{} is not installed: left out", native.compiler);
            continue;
        }
        let (bare, ours) = native.cost(python, input, runs)?;
        rows.push(format!(
            "| {} ({version}) | {bare:.2} | {ours:.2} | {:.2} |",
            native.language,
            ours / bare
        ));
    }
    if !rows.is_empty() {
        println!(
            "Compiled programs, the binary alone, {runs} runs of each in turn:\n\n\
             | language | bare, CPU ms | rlef, CPU ms | ratio |\n|---|---|---|---|\n{}\n",
            rows.join("\n")
        );
    }
    Ok(())
}

impl Native {
    /// Milliseconds of CPU time bare and in the sandbox, means.
    fn cost(&self, python: &Path, input: &[u8], runs: u32) -> Result<(f64, f64)> {
        let folder = tempfile::tempdir()?;
        let (binary, stdin) = (folder.path().join("main"), folder.path().join("input"));
        std::fs::write(&stdin, input)?;
        self.compile(folder.path(), &binary)?;
        let known = children();
        let sandbox = Sandbox::new(Config {
            interpreter: Some(python.into()),
            ..Config::default()
        })?;
        let program = Program {
            language: self.language,
            source: self.source,
        };
        let candidate = match sandbox.compile(&program)? {
            Compiled::Program(candidate) => candidate,
            Compiled::Error(error) => bail!("{}: {}", self.language, error.message),
        };
        let wanted = bare(&binary, &stdin)?;
        sandboxed(&candidate, input, &wanted)?;
        let mut launchers = children();
        launchers.retain(|pid| !known.contains(pid));
        let before = tree_cpu(&launchers);
        let (mut theirs, mut ours) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..runs {
            let used = cpu()?;
            bare(&binary, &stdin)?;
            let between = cpu()?;
            sandboxed(&candidate, input, &wanted)?;
            theirs += between.saturating_sub(used);
            ours += cpu()?.saturating_sub(between);
        }
        ours += tree_cpu(&launchers).saturating_sub(before);
        let mean = |sum: Duration| sum.as_secs_f64() * 1e3 / f64::from(runs);
        Ok((mean(theirs), mean(ours)))
    }

    fn compile(&self, folder: &Path, binary: &Path) -> Result<()> {
        let source = folder.join(format!("main.{}", self.language));
        std::fs::write(&source, self.source)?;
        let status = Command::new(self.compiler)
            .arg(&source)
            .args(self.flags)
            .arg("-o")
            .arg(binary)
            .status()?;
        if !status.success() {
            bail!("{} does not compile outside", self.language);
        }
        Ok(())
    }
}

fn bare(binary: &Path, stdin: &Path) -> Result<Vec<u8>> {
    let output = Command::new(binary)
        .stdin(std::fs::File::open(stdin)?)
        .stderr(Stdio::null())
        .output()
        .context("cannot start the binary")?;
    Ok(output.stdout)
}

fn sandboxed(candidate: &Candidate, input: &[u8], wanted: &[u8]) -> Result<()> {
    let outcome = candidate.run(input, &Limits::with_cpu(Duration::from_secs(5)))?;
    if outcome.ending != Ending::Exited(0) || outcome.stdout != wanted {
        bail!(
            "in the sandbox the program does something else: {}",
            outcome.ending
        );
    }
    Ok(())
}
