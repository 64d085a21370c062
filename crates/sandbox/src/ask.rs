//! Asking a command a question: it may fail, hang, never stop talking, or leave others running that hold its output
//! open. None of these keeps us.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use wait_timeout::ChildExt;

/// Ample even for a version manager written in shell on a slow disk; only reached when something hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// For the rest of its output to come through the pipe after a command has ended; longer only if somebody that it
/// started holds the pipe open.
const REST: Duration = Duration::from_secs(1);

/// Most that is read of an answer. What one interpreter says of its folders and modules is some hundred kilobytes.
const LONGEST: u64 = 16 << 20;

/// What a short command prints; an error if it fails, hangs or prints without end.
pub(crate) fn timed(command: Command) -> io::Result<Vec<u8>> {
    within(command, PATIENCE)
}

/// The same with another patience; the error of one that is at an end is `TimedOut`.
pub(crate) fn within(mut command: Command, patience: Duration) -> io::Result<Vec<u8>> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own, so that what a script started can be ended with it.
        .process_group(0)
        .spawn()?;
    let readers = [
        child.stdout.take().map(collect).transpose(),
        child.stderr.take().map(collect).transpose(),
    ];
    let [output, errors] = match readers {
        [Ok(output), Ok(errors)] => [output, errors],
        [Err(error), _] | [_, Err(error)] => {
            end(&mut child)?;
            return Err(error);
        }
    };
    let Some(status) = child.wait_timeout(patience)? else {
        end(&mut child)?;
        return Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer within {patience:?}"),
        ));
    };
    let [output, errors] = [output, errors].map(|r| r.map(Reading::take).unwrap_or_default());
    if status.success() {
        return Ok(output);
    }
    let last = String::from_utf8_lossy(&errors)
        .lines()
        .last()
        .unwrap_or_default()
        .to_owned();
    Err(io::Error::other(format!("{status}: {last}")))
}

/// Ends a child and all that it has started.
fn end(child: &mut Child) -> io::Result<()> {
    // Not yet waited for, so that the number of the group is still its own. Already gone is as good as killed.
    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
    let _ = child.kill();
    child.wait().map(drop)
}

/// A pipe that is read on a thread of its own: one that nobody reads would block the command.
struct Reading {
    bytes: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

fn collect(from: impl Read + Send + 'static) -> io::Result<Reading> {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let (tell, ended) = channel();
    let shared = bytes.clone();
    // The system may have no thread to give.
    std::thread::Builder::new().spawn(move || {
        let mut from = from.take(LONGEST);
        let mut part = [0; 1 << 13];
        // What came before an error is still worth showing. Closing the pipe at the bound ends whoever writes on.
        while let Ok(n @ 1..) = from.read(&mut part) {
            shared
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(&part[..n]);
        }
        // Nobody listens any more if the command hung.
        let _ = tell.send(());
    })?;
    Ok(Reading { bytes, ended })
}

impl Reading {
    fn take(self) -> Vec<u8> {
        // Too long is no error: what has come is the answer.
        let _ = self.ended.recv_timeout(REST);
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn shell(script: &str, patience: Duration) -> io::Result<Vec<u8>> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        within(command, patience)
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn an_answer_is_what_was_printed() {
        assert_eq!(shell("echo no >&2; echo yes", LONG).unwrap(), b"yes\n");
        let error = shell("echo why >&2; exit 3", LONG).unwrap_err().to_string();
        assert!(error.contains("why") && error.contains('3'), "{error}");
    }

    #[test]
    fn whoever_hangs_is_ended_with_all_that_it_started() {
        let start = Instant::now();
        let patience = Duration::from_millis(200);
        let error = shell("sleep 77.5 & sleep 77.5", patience).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() < LONG);
        let left = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|p| std::fs::read(p.path().join("cmdline")).ok())
            .filter(|c| c == b"sleep\x0077.5\x00")
            .count();
        assert_eq!(left, 0);
    }

    #[test]
    fn output_held_open_by_others_keeps_nobody() {
        let start = Instant::now();
        assert_eq!(shell("echo yes; sleep 30 &", LONG).unwrap(), b"yes\n");
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn output_without_end_is_cut() {
        // `yes` is ended by the closed pipe, and the shell says so.
        assert!(shell("exec yes", LONG).is_err());
    }
}
