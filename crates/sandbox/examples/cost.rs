//! What isolation costs: a small program in the sandbox, forked from a warm interpreter and started afresh, against the
//! same interpreter started on the same file, in turn.
//! `cargo run --release -p rlef-sandbox --example cost -- [RUNS] [INTERPRETER] [PROGRAM INPUT]`
//!
//! CPU time is that of all processes involved, this one included. What launchers have used is known when they have
//! ended; setting up a sandbox is measured by itself and taken off.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rlef_sandbox::{Config, Ending, Limits, Sandbox};

const PROGRAM: &str =
    "n = int(input())\nnumbers = [int(x) for x in input().split()]\nprint(sum(numbers) % n)\n";
const INPUT: &[u8] = b"7\n1 2 3 4 5 6\n";

/// CPU time of this process (all threads), or of every child that it has waited for.
fn cpu(who: UsageWho) -> Result<Duration, nix::Error> {
    let usage = getrusage(who)?;
    let sum = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(sum.unsigned_abs()))
}

fn both() -> Result<Duration, nix::Error> {
    Ok(cpu(UsageWho::RUSAGE_SELF)? + cpu(UsageWho::RUSAGE_CHILDREN)?)
}

/// One way of running the program.
#[derive(Default)]
struct Way {
    name: &'static str,
    sandbox: Option<Sandbox>,
    set_up: Duration,
    cpu: Duration,
    wall: Vec<Duration>,
    inside: Vec<Duration>,
}

impl Way {
    fn new(name: &'static str, config: &Config) -> Result<Self, Box<dyn std::error::Error>> {
        let before = both()?;
        drop(Sandbox::new(config.clone())?);
        let set_up = both()? - before;
        Ok(Self {
            name,
            sandbox: Some(Sandbox::new(config.clone())?),
            set_up,
            ..Self::default()
        })
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let runs: u32 = arguments.next().map_or(Ok(200), |n| n.parse())?;
    let python = arguments.next().unwrap_or("python3".into());
    let program = arguments
        .next()
        .map_or(Ok(PROGRAM.into()), std::fs::read_to_string)?;
    let input = arguments.next().map_or(Ok(INPUT.into()), std::fs::read)?;
    let asked = Command::new(&python)
        .args(["-c", "import sys; print(sys.executable)"])
        .output()?;
    let real = String::from_utf8(asked.stdout)?.trim().to_owned();
    let folder = tempfile::tempdir()?;
    let (file, stdin) = (folder.path().join("main.py"), folder.path().join("input"));
    std::fs::write(&file, &program)?;
    std::fs::write(&stdin, &input)?;
    let config = |warm| Config {
        interpreter: Some(python.clone().into()),
        warm,
        ..Config::default()
    };
    let mut ways = [
        Way {
            name: "bare",
            ..Way::default()
        },
        Way::new("afresh", &config(false))?,
        Way::new("warm", &config(true))?,
    ];
    let limits = Limits::with_cpu(Duration::from_secs(5));
    let mut wanted = None;
    for _ in 0..runs {
        for way in &mut ways {
            let (start, used) = (Instant::now(), both()?);
            let output = match &way.sandbox {
                None => {
                    Command::new(&real)
                        .arg(&file)
                        .stdin(std::fs::File::open(&stdin)?)
                        .stderr(Stdio::null())
                        .output()?
                        .stdout
                }
                Some(sandbox) => {
                    let outcome = sandbox.run(&program, &input, &limits)?;
                    assert_eq!(outcome.ending, Ending::Exited(0));
                    way.inside.push(outcome.cpu);
                    outcome.stdout
                }
            };
            way.wall.push(start.elapsed());
            way.cpu += both()? - used;
            assert_eq!(&output, wanted.get_or_insert(output.clone()));
        }
    }
    for way in &mut ways {
        let before = cpu(UsageWho::RUSAGE_CHILDREN)?;
        if way.sandbox.take().is_some() {
            let launcher = cpu(UsageWho::RUSAGE_CHILDREN)? - before;
            way.cpu = (way.cpu + launcher).saturating_sub(way.set_up);
        }
    }
    let bare = ways[0].cpu;
    println!(
        "{real}; {runs} runs of each in turn: CPU mean, ratio to bare; wall median; the program's own CPU, median; CPU to set up"
    );
    for way in &mut ways {
        println!(
            "{:7} {:9.3?} {:.3}  {:9.3?}  {:9.3?}  {:9.3?}",
            way.name,
            way.cpu / runs,
            way.cpu.as_secs_f64() / bare.as_secs_f64(),
            median(&mut way.wall),
            median(&mut way.inside),
            way.set_up
        );
    }
    Ok(())
}
