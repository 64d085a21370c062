//! What control groups give where the system lends some, and that none is left. Where it does not, most of these
//! tests have nothing to test and say so; `an_ordinary_user_may_be_lent_groups` makes the difference when run by root.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rlef_sandbox::{Config, Ending, Fault, Limits, Sandbox};

use crate::leftovers::children;
use crate::{alone, config, limits, run_with, sandbox, text};

const MEMORY: &str = "memory of all processes bounded together";
const CPU: &str = "CPU time of all processes counted together";
const TASKS: &str = "second bound on processes";
const KILL: &str = "all processes ended in one step";

/// Whether the system lends it to these tests.
pub(crate) fn lent(name: &str) -> bool {
    let all = sandbox().protections();
    let one = all.iter().find(|p| p.name == name).expect("listed");
    if !one.in_force {
        println!("skipped: {}", one.detail);
    }
    one.in_force
}

pub(crate) fn memory_is_bounded() -> bool {
    lent(MEMORY)
}

fn memory(mib: u64) -> Limits {
    Limits {
        memory_bytes: mib << 20,
        ..Limits::with_cpu(Duration::from_secs(5))
    }
}

#[test]
fn memory_of_children_counts_whatever_the_parent_says() {
    if !memory_is_bounded() {
        return;
    }
    // Without children that hold it all at once the limit is not passed.
    let source = |children: u32, wait: &str| {
        format!(
            "import os, time\nfor _ in range({children}):\n    if os.fork() == 0:\n        x = bytearray(b'x') * (60 << 20)\n        time.sleep(0.5)\n        os._exit(0)\n    {wait}\n\
            try:\n    while True: os.wait()\nexcept ChildProcessError: pass\nprint('fine', flush=True)\nos._exit(0)"
        )
    };
    let outcome = run_with(&source(8, ""), b"", &memory(256));
    assert_eq!(outcome.ending, Ending::MemoryLimit);
    let outcome = run_with(&source(2, "os.wait()"), b"", &memory(96));
    assert_eq!(
        outcome.ending,
        Ending::Exited(0),
        "{}",
        text(&outcome.stderr)
    );
    let peak = outcome.peak_memory_bytes.expect("known");
    assert!(peak > 60 << 20 && peak < 96 << 20, "{peak}");
}

#[test]
fn small_memory_limits_hold() {
    if !memory_is_bounded() {
        return;
    }
    for mib in [2, 4, 8, 12, 16, 24] {
        let hold = |bytes: u64| format!("x = b'x' * {bytes}\nprint(len(x))");
        let outcome = run_with(&hold((mib << 20) + (1 << 20)), b"", &memory(mib));
        assert_eq!(outcome.ending, Ending::MemoryLimit, "{mib} MiB");
        let outcome = run_with(&hold((mib - 1) << 20), b"", &memory(mib));
        assert_eq!(
            outcome.ending,
            Ending::Exited(0),
            "{mib} MiB: {}",
            text(&outcome.stderr)
        );
    }
    // Many small objects, which fit into what the interpreter has free.
    let source = "x = [str(i) for i in range(200000)]";
    assert_eq!(
        run_with(source, b"", &memory(6)).ending,
        Ending::MemoryLimit
    );
}

#[test]
fn mapping_is_not_holding() {
    if !memory_is_bounded() {
        return;
    }
    let source = "import mmap, threading, time\nm = mmap.mmap(-1, 3 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)\n\
        m[0] = 1; m[2 << 30] = 1\n\
        for _ in range(14): threading.Thread(target=time.sleep, args=(0.05,)).start()\nprint('fine')";
    let outcome = run_with(source, b"", &memory(64));
    assert_eq!(
        (outcome.ending, text(&outcome.stdout).as_str()),
        (Ending::Exited(0), "fine\n"),
        "{}",
        text(&outcome.stderr)
    );
    // Touched, it counts; and what nobody could have is refused at once, with a message.
    let source = "x = b'x' * (3 << 30)";
    assert_eq!(
        run_with(source, b"", &memory(64)).ending,
        Ending::MemoryLimit
    );
    let outcome = run_with("x = bytearray(1 << 40)", b"", &memory(64));
    assert_eq!(outcome.ending, Ending::MemoryLimit);
    assert!(
        text(&outcome.stderr).contains("MemoryError"),
        "{}",
        text(&outcome.stderr)
    );
}

#[test]
fn memory_outside_of_processes_counts() {
    if !memory_is_bounded() {
        return;
    }
    let fill = "data = b'x' * (1 << 16)\nn = 0\ntry:\n    while True:\n        with open(str(n // 128), 'ab', buffering=0) as f: f.write(data)\n        n += 1\nexcept OSError as e: print(e.errno, n // 16)";
    for (mib, files, wanted) in [(24, 200, None), (200, 24, Some(libc::ENOSPC))] {
        let limits = Limits {
            file_bytes: files << 20,
            ..memory(mib)
        };
        for _ in 0..5 {
            let outcome = run_with(fill, b"", &limits);
            match wanted {
                None => assert_eq!(outcome.ending, Ending::MemoryLimit),
                Some(number) => assert_eq!(
                    (outcome.ending, text(&outcome.stdout)),
                    (Ending::Exited(0), format!("{number} {files}\n")),
                    "{}",
                    text(&outcome.stderr)
                ),
            }
        }
    }
    // What lies in pipes that nobody reads.
    let source = "import os\nkept = []\nfor _ in range(100):\n    r, w = os.pipe()\n    os.write(w, b'x' * 65536)\n    kept.append((r, w))\nprint(len(kept))";
    assert_eq!(
        run_with(source, b"", &memory(4)).ending,
        Ending::MemoryLimit
    );
    let outcome = run_with(source, b"", &memory(16));
    assert_eq!(text(&outcome.stdout), "100\n", "{}", text(&outcome.stderr));
}

#[test]
fn running_out_of_memory_costs_the_slot_nothing() {
    if !memory_is_bounded() {
        return;
    }
    // Alone, because slots of other tests come and go.
    let output = alone("groups::slot_that_stays").env("STAYS", "1").output();
    let output = output.expect("started");
    let said = text(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{}",
        text(&output.stderr)
    );
}

#[test]
#[ignore = "started by running_out_of_memory_costs_the_slot_nothing"]
fn slot_that_stays() {
    if std::env::var_os("STAYS").is_none() {
        return;
    }
    let own = Sandbox::new(config()).expect("a sandbox");
    let below = |pid: &String| children(pid.parse().expect("a number"));
    let launchers = children(std::process::id());
    let warm: Vec<_> = launchers.iter().map(below).collect();
    let sources = [
        "x = []\nwhile True: x.append(b'x' * (1 << 20))",
        // Many small ones, none of them larger than the interpreter that they were forked from.
        "import os, time\nfor i in range(14):\n    if os.fork() == 0: break\nn = 0\nwhile True:\n    open('%d-%d' % (os.getpid(), n), 'wb').write(b'x' * 4096); n += 1\n    if n % 250 == 0: time.sleep(0)",
        "for n in ('-1000', '0'):\n    try: open('/proc/self/oom_score_adj', 'w').write(n); print('lowered')\n    except OSError: pass\nx = []\nwhile True: x.append(b'x' * (1 << 20))",
        "x = []\nwhile True:\n    try: x.append(b'x' * (1 << 20))\n    except MemoryError: pass",
    ];
    let tight = Limits {
        file_bytes: 1 << 30,
        ..memory(12)
    };
    for source in sources.iter().cycle().take(20) {
        let outcome = match own.run(source, b"", &tight) {
            Err(Fault::Overloaded { .. }) => continue,
            other => other.expect("the sandbox works"),
        };
        assert_eq!(
            outcome.ending,
            Ending::MemoryLimit,
            "{source}: {}",
            text(&outcome.stderr)
        );
        assert!(!text(&outcome.stdout).contains("lowered"));
        let next = own.run("print(1)", b"", &limits());
        let passed = match &next {
            Ok(outcome) => outcome.ending == Ending::Exited(0) && outcome.stdout == b"1\n",
            Err(fault) => matches!(fault, Fault::Overloaded { .. }),
        };
        assert!(passed, "{next:?}");
    }
    let after = children(std::process::id());
    assert_eq!(after, launchers, "the launcher was replaced");
    assert_eq!(
        after.iter().map(below).collect::<Vec<_>>(),
        warm,
        "the warm interpreter was replaced"
    );
}

#[test]
fn a_machine_out_of_memory_is_no_memory_limit() {
    // A group around the supervisor has less than the program may use: that is not the program's doing.
    let Some(around) = Around::make(&["memory"], "around") else {
        return;
    };
    let limit = around.folders[0].join("memory.limit_in_bytes");
    if fs::write(&limit, (200_u64 << 20).to_string()).is_err() {
        println!("skipped: {} cannot be written", limit.display());
        return;
    }
    let output = around
        .start(alone("groups::supervisor_with_little_memory").env("LITTLE", "1"))
        .output()
        .expect("started");
    let said = text(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{}",
        text(&output.stderr)
    );
}

#[test]
#[ignore = "started by a_machine_out_of_memory_is_no_memory_limit"]
fn supervisor_with_little_memory() {
    if std::env::var_os("LITTLE").is_none() {
        return;
    }
    let source = "x = []\nwhile True: x.append(b'x' * (1 << 20))";
    let result = sandbox().run(source, b"", &memory(4096));
    assert!(
        matches!(&result, Err(Fault::Broken { reason, .. }) if reason.contains("ran out of memory")),
        "{result:?}"
    );
    assert_eq!(
        run_with(source, b"", &memory(20)).ending,
        Ending::MemoryLimit
    );
}

/// Each child works for a while and is never waited for.
const UNCOUNTED: &str = "import os, signal, sys, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nn = int(input())\n\
    for _ in range(n):\n    if os.fork() == 0:\n        t = time.process_time()\n        while time.process_time() < t + 0.03: pass\n        os._exit(0)\n    try: os.wait()\n    except ChildProcessError: pass\n\
    os._exit(0)";

#[test]
fn cpu_time_of_children_that_nobody_waits_for_counts() {
    if !lent(CPU) {
        return;
    }
    let limits = Limits {
        wall: Duration::from_secs(60),
        ..Limits::with_cpu(Duration::from_millis(500))
    };
    let outcome = run_with(UNCOUNTED, b"8", &limits);
    assert_eq!(outcome.ending, Ending::Exited(0));
    let ms = Duration::from_millis;
    assert!(
        outcome.cpu > ms(230) && outcome.cpu < ms(500),
        "{:?}",
        outcome.cpu
    );
    let outcome = run_with(UNCOUNTED, b"1000", &limits);
    assert_eq!(outcome.ending, Ending::CpuLimit);
    assert!(
        outcome.cpu >= ms(500) && outcome.cpu < ms(1500),
        "{:?}",
        outcome.cpu
    );
}

#[test]
fn the_slots_own_work_is_not_charged() {
    if !lent(CPU) {
        return;
    }
    let without = Sandbox::new(Config {
        groups: false,
        ..config()
    });
    let without = without.expect("a sandbox");
    let median = |sandbox: &Sandbox| {
        let mut all: Vec<_> = (0..40)
            .filter_map(|_| Some(sandbox.run("pass", b"", &limits()).ok()?.cpu))
            .collect();
        all.sort();
        all[all.len() / 2]
    };
    let (with, without) = (median(sandbox()), median(&without));
    assert!(
        with < without * 3 / 2,
        "{with:?} with groups, {without:?} without"
    );
}

#[test]
fn processes_are_bounded_twice() {
    if !lent(TASKS) {
        return;
    }
    let found = |name: &str| -> Vec<u64> {
        let groups = groups_of(std::process::id());
        let files = groups
            .iter()
            .filter_map(|g| fs::read_to_string(g.join(name)).ok());
        files.filter_map(|t| t.trim().parse().ok()).collect()
    };
    // Room for the limit and what is the sandbox's, and for little else.
    let limits = Limits {
        processes: 5,
        ..limits()
    };
    run_with("print(1)", b"", &limits);
    assert!(
        found("pids.max").iter().any(|n| (8..=20).contains(n)),
        "{:?}",
        found("pids.max")
    );
}

#[test]
fn groups_can_be_switched_off() {
    let own = Sandbox::new(Config {
        groups: false,
        ..config()
    });
    let own = own.expect("a sandbox");
    for name in [MEMORY, CPU, TASKS, KILL] {
        let all = own.protections();
        let one = all.iter().find(|p| p.name == name).expect("listed");
        assert!(!one.in_force && !one.required);
        assert!(
            one.detail.contains("switched off") && one.detail.contains("Delegate"),
            "{}",
            one.detail
        );
    }
    let outcome = own.run(
        "print(open('/proc/self/oom_score_adj').read())",
        b"",
        &limits(),
    );
    if let Ok(outcome) = outcome {
        assert_eq!(
            (outcome.ending, text(&outcome.stdout).trim()),
            (Ending::Exited(0), "1000")
        );
    }
}

/// Folders of all groups that a process has made, wherever.
fn groups_of(pid: u32) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut pending = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = pending.pop() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("rlef-sandbox-") && name.contains(&format!("-{pid}-")) {
                found.insert(entry.path());
            }
            pending.push(entry.path());
        }
    }
    found
}

#[test]
fn no_group_is_left() {
    if ![MEMORY, CPU, TASKS, KILL].into_iter().any(lent) {
        return;
    }
    let start = |name: &str| {
        let mut command = alone("groups::supervisor_that_makes_groups");
        command
            .env("GROUPS", name)
            .stdout(Stdio::null())
            .spawn()
            .expect("started")
    };
    // One that ends by itself, and one that is killed in the middle of a run.
    let mut good = start("some");
    let made = good.id();
    assert!(good.wait().expect("waited").success());
    assert_eq!(groups_of(made), BTreeSet::new());

    let mut bad = start("endless");
    let killed = bad.id();
    let deadline = Instant::now() + Duration::from_secs(60);
    while groups_of(killed).is_empty() {
        assert!(Instant::now() < deadline, "no groups are made");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
    bad.kill().expect("killed");
    bad.wait().expect("waited");
    assert_ne!(
        groups_of(killed),
        BTreeSet::new(),
        "nobody could have removed them"
    );
    // Ours are in use all the while, and are not touched.
    let _ = run_with("print(1)", b"", &limits());
    let ours = groups_of(std::process::id());
    assert!(start("some").wait().expect("waited").success());
    assert_eq!(groups_of(killed), BTreeSet::new());
    let still = groups_of(std::process::id());
    assert!(still.iter().any(|g| ours.contains(g)), "{ours:?} {still:?}");
    let _ = run_with("print(1)", b"", &limits());
}

#[test]
#[ignore = "started by no_group_is_left"]
fn supervisor_that_makes_groups() {
    match std::env::var("GROUPS").as_deref() {
        Ok("some") => {
            let own = Sandbox::new(config()).expect("a sandbox");
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        for source in [
                            "print(1)",
                            "x = b'x' * (1 << 30)",
                            "import os; os.kill(os.getpid(), 9)",
                        ] {
                            let _ = own.run(source, b"", &memory(32));
                        }
                    });
                }
            });
            assert!(!groups_of(std::process::id()).is_empty());
        }
        Ok(_) => {
            let limits = Limits {
                wall: Duration::from_secs(60),
                ..Limits::with_cpu(Duration::from_secs(60))
            };
            let _ = sandbox().run("while True: pass", b"", &limits);
        }
        Err(_) => {}
    }
}

/// Groups around a process, one in each hierarchy named, below those of this process.
struct Around {
    folders: Vec<PathBuf>,
}

impl Around {
    fn make(hierarchies: &[&str], name: &str) -> Option<Self> {
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut made = Self {
            folders: Vec::new(),
        };
        for hierarchy in hierarchies {
            let line = text.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                let names = parts.next()?;
                let same = names.split(',').any(|n| n == *hierarchy)
                    || (names.is_empty() && *hierarchy == "unified");
                same.then(|| parts.next()).flatten()
            });
            let mount = Path::new("/sys/fs/cgroup").join(hierarchy);
            let folder = mount
                .join(line?.trim_start_matches('/'))
                .join(format!("test-{name}-{}", std::process::id()));
            if !mount.exists() || fs::create_dir(&folder).is_err() {
                println!("skipped: {} cannot be made", folder.display());
                return None;
            }
            made.folders.push(folder);
        }
        Some(made)
    }

    /// The command, started inside of all of them.
    fn start(&self, command: &Command) -> Command {
        let enter: String = self
            .folders
            .iter()
            .map(|f| format!("echo $$ > '{}/cgroup.procs' && ", f.display()))
            .collect();
        let mut inside = Command::new("sh");
        inside
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        inside
            .arg("-c")
            .arg(format!("{enter} exec \"$@\""))
            .arg("sh")
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                inside.env(name, value);
            }
        }
        inside
    }
}

impl Drop for Around {
    fn drop(&mut self) {
        for folder in &self.folders {
            let deadline = Instant::now() + Duration::from_secs(5);
            while fs::remove_dir(folder).is_err() && Instant::now() < deadline {
                // What a process that has just ended has left, and may still be ending in.
                for below in fs::read_dir(folder).into_iter().flatten().flatten() {
                    let _ = fs::remove_dir(below.path());
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

#[test]
fn an_ordinary_user_may_be_lent_groups() {
    if std::env::var_os("AS_USER").is_some() || std::env::var_os("LENT").is_some() {
        return; // we are that user
    }
    let all: (&[&str], &[&str]) = (
        &["memory", "pids", "cpuacct", "unified"],
        &[MEMORY, TASKS, CPU, KILL],
    );
    for (hierarchies, wanted) in [all, (&["unified"], &[CPU, KILL]), (&["memory"], &[MEMORY])] {
        let Some(lent) = Around::make(hierarchies, "lent") else {
            return;
        };
        for folder in &lent.folders {
            for path in [
                folder.clone(),
                folder.join("cgroup.procs"),
                folder.join("cgroup.subtree_control"),
            ] {
                let _ = std::os::unix::fs::chown(path, Some(54321), Some(54321));
            }
        }
        let Some((_place, mut command)) =
            crate::users::as_user(&["--test-threads", "2", "groups::"])
        else {
            return;
        };
        command.env("LENT", wanted.join(","));
        let output = lent
            .start(&command)
            .current_dir("/")
            .output()
            .expect("started");
        let said = text(&output.stdout);
        assert!(
            output.status.success(),
            "{hierarchies:?}: {said}\n{}",
            text(&output.stderr)
        );
        println!(
            "{hierarchies:?}: {}",
            said.lines()
                .find(|l| l.starts_with("test result: ok"))
                .expect("passed")
        );
    }
}

#[test]
fn what_was_lent_is_used() {
    let Ok(wanted) = std::env::var("LENT") else {
        return; // only started by an_ordinary_user_may_be_lent_groups
    };
    for name in wanted.split(',') {
        assert!(lent(name), "{name}: {:?}", sandbox().protections());
    }
}
