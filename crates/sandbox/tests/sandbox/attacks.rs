//! The catalogue of attacks: each program here wants to do harm or to pass without solving anything. Each is judged,
//! and then an honest program in the same slot has to find everything as it was before the first of them.
//! `ATTACKS.md` maps the kinds of attack to their tests.

mod escape;
mod files;
mod memory;
mod output;
mod processes;
mod rewards;
mod serve;
mod source;
mod time;

use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rlef_sandbox::{Ending, Fault, Limits, Outcome, Sandbox};

use crate::{alone, config, leftovers, passes, text};

/// A hostile program and what may come of it.
pub(crate) struct Attack {
    name: String,
    source: String,
    stdin: Vec<u8>,
    limits: Limits,
    wanted: Vec<Ending>,
    stdout: Option<Vec<u8>>,
}

/// One that has to end in one of these ways.
pub(crate) fn attack(name: &str, source: impl Into<String>, wanted: &[Ending]) -> Attack {
    Attack {
        name: name.into(),
        source: source.into(),
        stdin: Vec::new(),
        limits: Limits {
            memory_bytes: 256 << 20,
            ..Limits::with_cpu(Duration::from_secs(3))
        },
        wanted: wanted.to_vec(),
        stdout: None,
    }
}

/// One that achieves nothing, says so on stdout, and ends well.
pub(crate) fn harmless(name: &str, source: impl Into<String>, stdout: impl AsRef<[u8]>) -> Attack {
    attack(name, source, &[Ending::Exited(0)]).prints(stdout)
}

/// The two ways of being too slow: which of them it is depends on how much of a CPU it got.
pub(crate) const TOO_SLOW: [Ending; 2] = [Ending::CpuLimit, Ending::WallLimit];

impl Attack {
    pub(crate) fn prints(mut self, stdout: impl AsRef<[u8]>) -> Self {
        self.stdout = Some(stdout.as_ref().to_vec());
        self
    }

    pub(crate) fn reads(mut self, stdin: impl Into<Vec<u8>>) -> Self {
        self.stdin = stdin.into();
        self
    }

    /// For those that use up CPU time.
    pub(crate) fn cpu(mut self, milliseconds: u64) -> Self {
        self.limits.cpu = Duration::from_millis(milliseconds);
        self.limits.wall = Duration::from_secs(20);
        self
    }

    /// For those that sleep.
    pub(crate) fn wall(mut self, milliseconds: u64) -> Self {
        self.limits.wall = Duration::from_millis(milliseconds);
        self
    }

    pub(crate) fn memory(mut self, bytes: u64) -> Self {
        self.limits.memory_bytes = bytes;
        self
    }

    pub(crate) fn any_output(mut self) -> Self {
        self.stdout = None;
        self
    }

    pub(crate) fn allow(mut self, ending: Ending) -> Self {
        self.wanted.push(ending);
        self
    }

    pub(crate) fn output(mut self, bytes: u64) -> Self {
        self.limits.output_bytes = bytes;
        self
    }
}

/// A sandbox with one slot, in a process of its own, so that all that belongs to it can be told from the outside.
pub(crate) struct Arena {
    sandbox: Sandbox,
    before: String,
    outside: Outside,
    /// What went wrong: all of it is told at the end of a group.
    findings: RefCell<Vec<String>>,
}

/// What the host sees of a sandbox that is idle.
#[derive(Debug, PartialEq, Eq)]
struct Outside {
    launchers: Vec<String>,
    /// The warm interpreter, where there is one.
    below: Vec<Vec<String>>,
    descriptors: usize,
    threads: usize,
}

impl Outside {
    fn look() -> Self {
        let launchers = leftovers::children(std::process::id());
        let below = |l: &String| leftovers::children(l.parse().expect("a number"));
        let count = |path| std::fs::read_dir(path).expect("there").count();
        Self {
            below: launchers.iter().map(below).collect(),
            launchers,
            descriptors: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
        }
    }
}

/// A busy machine is not what these tests are about.
const PATIENCE: u32 = 20;

impl Arena {
    fn new() -> Self {
        let sandbox = Sandbox::new(config()).expect("a sandbox");
        let before = honest(&sandbox);
        assert!(before.starts_with("42\n"), "{before}");
        let outside = Outside::look();
        assert_eq!(outside.launchers.len(), 1);
        Self {
            sandbox,
            before,
            outside,
            findings: RefCell::default(),
        }
    }

    pub(crate) fn expect(&self, right: bool, finding: impl FnOnce() -> String) {
        if !right {
            self.findings.borrow_mut().push(finding());
        }
    }

    pub(crate) fn run(&self, attack: &Attack) -> Outcome {
        for _ in 0..PATIENCE {
            match self
                .sandbox
                .run(&attack.source, &attack.stdin, &attack.limits)
            {
                Err(Fault::Overloaded { .. }) => {}
                other => return other.unwrap_or_else(|e| panic!("{}: {e}", attack.name)),
            }
        }
        panic!("the machine is too busy for: {}", attack.name);
    }

    /// Runs it, judges it, and looks for what it has left.
    pub(crate) fn stage(&self, attack: &Attack) -> Outcome {
        let outcome = self.run(attack);
        let name = &attack.name;
        let fits = |wanted: &Ending| match wanted {
            Ending::Forbidden(_) => matches!(outcome.ending, Ending::Forbidden(_)),
            wanted => *wanted == outcome.ending,
        };
        let said = || {
            let cut = |bytes: &[u8]| text(&bytes[bytes.len().saturating_sub(1000)..]);
            format!("{}\n---\n{}", cut(&outcome.stdout), cut(&outcome.stderr))
        };
        self.expect(attack.wanted.iter().any(fits), || {
            format!("{name} ended with {:?}: {}", outcome.ending, said())
        });
        if let Some(stdout) = &attack.stdout {
            self.expect(outcome.stdout == *stdout, || {
                format!("{name} printed: {}", said())
            });
        }
        self.nothing_is_left(name);
        outcome
    }

    pub(crate) fn nothing_is_left(&self, name: &str) {
        let outside = Outside::look();
        self.expect(outside == self.outside, || {
            format!("after {name}: {outside:?}, not {:?}", self.outside)
        });
        let after = honest(&self.sandbox);
        let differ = self.before.lines().zip(after.lines());
        let differ: Vec<_> = differ.filter(|(before, after)| before != after).collect();
        self.expect(after == self.before, || format!("after {name}: {differ:?}"));
    }

    /// The compiler alone, on the attack's source.
    pub(crate) fn check(&self, attack: &Attack) -> Option<String> {
        let check = || self.sandbox.syntax_check(&attack.source, &attack.limits);
        (0..PATIENCE)
            .find_map(|_| match check() {
                Err(Fault::Overloaded { .. }) => None,
                other => Some(other.unwrap_or_else(|e| panic!("{}: {e}", attack.name))),
            })
            .expect("the machine is too busy for this test")
    }
}

/// Works as any program does, and looks everywhere.
const HONEST: &str = include_str!("attacks/honest.py");

fn honest(sandbox: &Sandbox) -> String {
    let limits = Limits::with_cpu(Duration::from_secs(10));
    for _ in 0..PATIENCE {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970");
        let input = format!("21\n{}\n", now.as_secs());
        match sandbox.run(HONEST, input.as_bytes(), &limits) {
            Err(Fault::Overloaded { .. }) => {}
            other => {
                let outcome = other.expect("the sandbox works");
                assert_eq!(
                    outcome.ending,
                    Ending::Exited(0),
                    "{}",
                    text(&outcome.stderr)
                );
                return text(&outcome.stdout);
            }
        }
    }
    panic!("the machine is too busy for this test");
}

/// Attacks on one slot.
type Group = fn(&Arena);

const GROUPS: [(&str, Group); 9] = [
    ("escape", escape::all),
    ("files", files::all),
    ("memory", memory::all),
    ("output", output::all),
    ("processes", processes::all),
    ("rewards", rewards::all),
    ("serve", serve::all),
    ("source", source::all),
    ("time", time::all),
];

pub(crate) fn stage_all(arena: &Arena, attacks: impl IntoIterator<Item = Attack>) {
    for attack in attacks {
        arena.stage(&attack);
    }
}

/// Stages a group in a process of its own.
pub(crate) fn stage_group(name: &str) {
    passes(alone("attacks::one_group").env("GROUP", name));
}

#[test]
#[ignore = "started for each group, in a process of its own"]
fn one_group() {
    let Ok(name) = std::env::var("GROUP") else {
        return;
    };
    let found = GROUPS.iter().find(|(known, _)| *known == name);
    let arena = Arena::new();
    found.expect("a known group").1(&arena);
    let findings = arena.findings.into_inner();
    assert!(findings.is_empty(), "{}", findings.join("\n\n"));
}
