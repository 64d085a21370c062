//! The supervisor's handle on one launcher: starting it, talking to it, and seeing that it is gone.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{AddressFamily, Shutdown, SockFlag, SockType, shutdown, socketpair};
use wait_timeout::ChildExt;

use crate::Fault;
use crate::cgroup::{Group, Groups};
use crate::launcher;
use crate::lifeline::lifeline;
use crate::wire::{self, Identity, Reply, Request, RunRequest, SlotPlan, Trouble};

/// Set-up takes milliseconds; only a broken system takes this long.
const PATIENCE: Duration = Duration::from_secs(30);
/// For a launcher that has been told to end: it may first have to end a run.
const FAREWELL: Duration = Duration::from_secs(5);

const ADVICE: &str = "the sandbox needs Linux 5.14 or later with unprivileged user namespaces: check the settings \
    user.max_user_namespaces (above 0), kernel.unprivileged_userns_clone (1, where it exists) and \
    kernel.apparmor_restrict_unprivileged_userns (0, where it exists), and inside a container the runtime's own \
    system-call filter and masked /proc";

pub(crate) struct Slot {
    control: OwnedFd,
    launcher: Child,
    /// Closes when this process dies, and that ends the launcher even if it has been stopped.
    _lifeline: OwnedFd,
    /// What holds it and everything that it forks, where the system lends control groups. Removed after the launcher
    /// has ended: `drop` comes before the fields.
    pub(crate) group: Option<Group>,
    pub(crate) identity: Identity,
    /// Optional layers that this system did not give.
    pub(crate) missing: Vec<Trouble>,
    /// Why programs are started afresh, if they are.
    pub(crate) cold: Option<String>,
}

impl Slot {
    pub(crate) fn start(plan: &SlotPlan, group: Option<Group>) -> Result<Self, Fault> {
        let broken = |reason: &str| Fault::Broken {
            doing: "starting a launcher",
            reason: reason.into(),
        };
        let Launched {
            control,
            launcher,
            lifeline,
        } = launch()?;
        let mut slot = Self {
            control,
            launcher,
            _lifeline: lifeline,
            group,
            identity: plan.identity,
            missing: Vec::new(),
            cold: None,
        };
        if let Some(group) = &slot.group {
            // Before it forks anything.
            let joined = group.join(slot.launcher.id());
            joined
                .map_err(|(_, reason)| broken(&format!("joining its control group: {reason}")))?;
        }
        let text = serde_json::to_vec(plan).map_err(|e| broken(&e.to_string()))?;
        let plan = sealed("plan", &text).map_err(Fault::system("making a memory file"))?;
        wire::send(&slot.control, &Request::Setup, &[plan.as_raw_fd()])
            .map_err(|e| broken(&e.to_string()))?;
        match slot.reply(PATIENCE) {
            Ok(Some(Reply::Ready { missing, cold })) => {
                slot.missing = missing;
                slot.cold = cold;
            }
            Ok(Some(Reply::Unsupported(trouble))) => {
                let error = trouble.error();
                return Err(Fault::Unsupported {
                    step: trouble.step,
                    error,
                    advice: ADVICE,
                });
            }
            Ok(Some(_)) => return Err(broken("it answered out of turn")),
            Ok(None) => return Err(broken("it ended before it was set up")),
            Err(error) => return Err(broken(&error.to_string())),
        }
        Ok(slot)
    }

    /// Whether an idle launcher is still there: it says nothing of its own accord.
    pub(crate) fn alive(&self) -> bool {
        let mut ready = [PollFd::new(self.control.as_fd(), PollFlags::POLLIN)];
        poll(&mut ready, PollTimeout::ZERO) == Ok(0)
    }

    pub(crate) fn run(&self, request: RunRequest, descriptors: &[RawFd]) -> io::Result<()> {
        wire::send(&self.control, &Request::Run(request), descriptors)
    }

    pub(crate) fn kill(&self) -> io::Result<()> {
        wire::send(&self.control, &Request::Kill, &[])
    }

    /// The next reply; `None` when the launcher is gone; an error when it says nothing for `patience`.
    pub(crate) fn reply(&self, patience: Duration) -> io::Result<Option<Reply>> {
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        let mut ready = [PollFd::new(self.control.as_fd(), PollFlags::POLLIN)];
        if poll(&mut ready, timeout)? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(wire::receive(&self.control)?.map(|(reply, _)| reply))
    }
}

impl AsFd for Slot {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // The launcher takes the closed socket for our death: it ends its run, if there is one, and itself.
        let _ = shutdown(self.control.as_raw_fd(), Shutdown::Both);
        if !matches!(self.launcher.wait_timeout(FAREWELL), Ok(Some(_))) {
            let _ = self.launcher.kill();
            let _ = self.launcher.wait();
        }
    }
}

struct Launched {
    control: OwnedFd,
    launcher: Child,
    lifeline: OwnedFd,
}

/// Starts a launcher that waits for its plan, and ends when the socket or the lifeline closes.
fn launch() -> Result<Launched, Fault> {
    let socket = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    );
    let (control, theirs) = socket.map_err(Fault::errno("making a socket pair"))?;
    let (lifeline, their_end) = lifeline().map_err(Fault::system("making a pipe"))?;
    let broken = |reason: &str| Fault::Broken {
        doing: "starting a launcher",
        reason: reason.into(),
    };
    if !launcher::present() {
        return Err(broken("the launcher is not linked into this program"));
    }
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("rlef-sandbox")
        .env_clear()
        .env(launcher::MARK, "1")
        .current_dir("/");
    // This executable's own libraries may be found only with its help.
    if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
        command.env("LD_LIBRARY_PATH", path);
    }
    command
        .stdin(Stdio::from(theirs))
        // It writes nothing, and this number is open from its very beginning.
        .stdout(Stdio::from(their_end))
        .stderr(Stdio::null());
    let launcher = command.spawn().map_err(Fault::system(
        "starting /proc/self/exe as the sandbox's launcher",
    ))?;
    // The command holds the other end of the socket open.
    drop(command);
    Ok(Launched {
        control,
        launcher,
        lifeline,
    })
}

/// Finds out, with a launcher that does nothing else, which control groups can really be joined.
pub(crate) fn try_out(groups: &mut Groups) -> Result<(), Fault> {
    if groups.any() {
        let mut launched = launch()?;
        let tried = groups.try_out(launched.launcher.id());
        // It has nothing to save.
        let _ = launched.launcher.kill();
        let _ = launched.launcher.wait();
        // Only now that nothing is in them can they be removed.
        drop(tried);
    }
    Ok(())
}

/// A memory file with these contents that nobody can change any more.
pub(crate) fn sealed(name: &str, contents: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create(
        name,
        MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING,
    )?);
    file.write_all(contents)?;
    file.rewind()?;
    seal(&file)?;
    Ok(file)
}

/// Closes a memory file to every change, for everybody and for good.
pub(crate) fn seal(file: &File) -> io::Result<()> {
    let seals = SealFlag::F_SEAL_WRITE
        | SealFlag::F_SEAL_GROW
        | SealFlag::F_SEAL_SHRINK
        | SealFlag::F_SEAL_SEAL;
    fcntl(file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(())
}
