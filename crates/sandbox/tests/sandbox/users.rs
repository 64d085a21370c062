//! The same tests as an ordinary user, and what does not need one.

use std::process::Command;

use crate::text;

/// A user that owns nothing; nobody needs to have set it up.
const USER: &str = "54321";

#[test]
fn an_ordinary_user_needs_no_set_up() {
    if ["AFRESH", "AS_USER"]
        .iter()
        .any(|n| std::env::var_os(n).is_some())
    {
        return; // we are that user, or another such round
    }
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: these tests are being run by an ordinary user already");
        return;
    }
    let Some((_place, mut command)) = as_user(&["--test-threads", "2"]) else {
        return;
    };
    for afresh in [false, true] {
        if afresh {
            command.env("AFRESH", "1");
            // Programs in other languages have nothing to do with how Python is started.
            command.args(["--skip", "languages::"]);
        }
        let output = command.output().expect("started");
        let said = text(&output.stdout);
        assert!(output.status.success(), "{said}\n{}", text(&output.stderr));
        let passed = said
            .lines()
            .find(|l| l.starts_with("test result: ok"))
            .unwrap_or_else(|| panic!("{said}"));
        println!("as user {USER}, afresh {afresh}: {passed}");
    }
}

/// This binary as an ordinary user, and the folder in which that user finds it; nothing where that cannot be.
pub(crate) fn as_user(arguments: &[&str]) -> Option<(tempfile::TempDir, Command)> {
    let own = std::env::current_exe().expect("known");
    let place = tempfile::tempdir_in("/tmp").expect("a folder");
    let copy = place.path().join("tests");
    std::fs::copy(own, &copy).expect("copied");
    let opened = Command::new("chmod")
        .arg("755")
        .arg(place.path())
        .arg(&copy)
        .status();
    assert!(opened.is_ok_and(|s| s.success()));
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]);
    // Where such a user may look; /root is closed to it.
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", "/nonexistent")
        .env("AS_USER", "1")
        .current_dir("/");
    let python = command.get_envs().count() > 0
        && ["/usr/local/bin/python3", "/usr/bin/python3", "/bin/python3"]
            .iter()
            .any(|p| std::fs::exists(p).unwrap_or(false));
    if !python || Command::new("setpriv").arg("--version").output().is_err() {
        println!("skipped: needs setpriv and a python3 outside of root's home");
        return None;
    }
    command.arg(&copy).args(arguments);
    Some((place, command))
}
