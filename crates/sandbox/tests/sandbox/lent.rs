//! Groups that others make for this process, and groups that it makes and has to remove.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rlef_sandbox::{Limits, Sandbox};

use crate::groups::{CPU, KILL, MEMORY, TASKS, lent, memory};
use crate::{alone, config, limits, run_with, sandbox, text};

/// Folders of all groups that a process has made, wherever.
pub(crate) fn groups_of(pid: u32) -> BTreeSet<PathBuf> {
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
        let mut command = alone("lent::supervisor_that_makes_groups");
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
pub(crate) struct Around {
    pub folders: Vec<PathBuf>,
}

impl Around {
    pub(crate) fn make(hierarchies: &[&str], name: &str) -> Option<Self> {
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
    pub(crate) fn start(&self, command: &Command) -> Command {
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
            crate::users::as_user(&["--test-threads", "2", "groups::", "lent::"])
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
