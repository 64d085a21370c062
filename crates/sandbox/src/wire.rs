//! What the supervisor and its launchers say to each other: one JSON message a packet over a socket pair, with
//! descriptors beside it. Nothing a sandboxed program writes is ever read here: it has no end of this socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::policy::Instruction;
use crate::root::RootPlan;

/// Messages are small: the large things (plan, source, stdin) travel as descriptors of memory files.
const MESSAGE_BYTES: usize = 16 << 10;
const MESSAGE_DESCRIPTORS: usize = 8;

/// Which user a launcher becomes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Host user and group of everything in the sandbox.
    pub uid: u32,
    /// Host group.
    pub gid: u32,
    /// Whether the launcher is privileged and has to change to them.
    pub drop: bool,
}

/// All that a launcher has to know, once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SlotPlan {
    pub identity: Identity,
    pub root: RootPlan,
    pub filter: Vec<Instruction>,
    /// What the first descriptor of a run is.
    pub form: Form,
    /// What is started; of no account where the program itself is ([`Form::Executable`]).
    pub executable: PathBuf,
    /// Without the first, which is the name of what is started. `{memory_mb}` in one stands for the run's memory limit, as it
    /// does in the environment.
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// Name of the program's file or folder in the private /tmp.
    pub file: String,
    /// How to start the warm interpreter; none to start programs afresh.
    pub warm: Option<WarmPlan>,
    /// A control group bounds the slot's memory: when it is used up, programs go before the slot's own processes.
    pub programs_go_first: bool,
}

/// The first descriptor beside a run: what it is that is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    /// Source text for the Python interpreter, which is told the run's mode.
    Python,
    /// A file, put into /tmp.
    File,
    /// Files (`launcher/artifact.rs`), put into a folder in /tmp.
    Folder,
    /// A binary, started without ever being in the file tree.
    Executable,
}

/// What a run leaves in /tmp that is of use.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ProductPlan {
    /// Name of a file or folder in /tmp.
    pub path: String,
    /// Whether it is a folder.
    pub folder: bool,
    /// Most that is taken, in bytes.
    pub most_bytes: u64,
    /// Whether it is taken after a failure as well.
    pub always: bool,
}

/// What the warm interpreter is started with, besides what programs are.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WarmPlan {
    /// Modules to import, where they exist.
    pub modules: Vec<String>,
    /// Soft and hard limit of the stack, as programs have them.
    pub stack: (u64, u64),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// First message; the plan is in the memory file beside it.
    Setup,
    /// Run; beside it: source, stdin, stdout, stderr, and what the mode needs.
    Run(RunRequest),
    /// End the run.
    Kill,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunRequest {
    /// What is to be done (`launcher/order.rs`).
    pub mode: u64,
    /// Resource number, soft and hard limit.
    pub limits: Vec<(u32, u64, u64)>,
    /// Size of the private /tmp, in bytes.
    pub tmp_bytes: u64,
    /// The memory limit, for programs that have to be told theirs.
    pub memory_bytes: u64,
    /// Further arguments for a program that is started afresh. `{sources}` in the plan's is where they go; else it is the
    /// end.
    pub arguments: Vec<String>,
    /// Whether there are files for /tmp: the last descriptor but for the product's.
    pub files: bool,
    /// The product that is wanted: the last descriptor is a memory file for it.
    pub product: Option<ProductPlan>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// Set up; optional layers that could not be had, and why there is no warm interpreter if there is none.
    Ready {
        missing: Vec<Trouble>,
        cold: Option<String>,
    },
    /// Could not be set up.
    Unsupported(Trouble),
    /// The run's first process (as the supervisor's /proc numbers it).
    Started { pid: i32 },
    /// Everything of the run is gone.
    Ended(RunEnd),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum RunEnd {
    Report(Report),
    /// The program was not started.
    NotStarted(Trouble),
    /// The sandbox's first process died before it could report; its wait status.
    Lost(i32),
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Wait status of the program's main process.
    pub status: i32,
    /// CPU time of all its processes, in microseconds.
    pub cpu_us: u64,
    /// Largest resident set of any of its processes, in bytes.
    pub peak_bytes: u64,
    /// What became of the product.
    pub product: Product,
}

/// What became of the product of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Product {
    /// There is none, or nobody asked.
    Nothing,
    /// It has been taken out.
    Taken,
    /// It is larger than what may be taken.
    TooLarge,
}

/// A step that failed and what the system said.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Trouble {
    pub step: String,
    pub errno: i32,
}

impl Trouble {
    pub(crate) fn new(step: impl Into<String>, error: impl Into<io::Error>) -> Self {
        Self {
            step: step.into(),
            errno: error.into().raw_os_error().unwrap_or(0),
        }
    }

    pub(crate) fn error(&self) -> io::Error {
        io::Error::from_raw_os_error(self.errno)
    }
}

pub(crate) fn send<T: Serialize>(
    socket: &impl AsFd,
    message: &T,
    descriptors: &[RawFd],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MESSAGE_BYTES || descriptors.len() > MESSAGE_DESCRIPTORS {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "message too long",
        ));
    }
    let beside = [ControlMessage::ScmRights(descriptors)];
    let beside: &[_] = if descriptors.is_empty() { &[] } else { &beside };
    loop {
        // Without MSG_NOSIGNAL a dead peer would raise SIGPIPE in the calling program.
        match sendmsg::<()>(
            socket.as_fd().as_raw_fd(),
            &[IoSlice::new(&bytes)],
            beside,
            MsgFlags::MSG_NOSIGNAL,
            None,
        ) {
            Err(nix::Error::EINTR) => {}
            other => return other.map(|_| ()).map_err(Into::into),
        }
    }
}

/// Length of the next message, which is waited for; 0 when the other side is gone.
fn waiting(socket: &impl AsFd) -> io::Result<usize> {
    let flags = libc::MSG_PEEK | libc::MSG_TRUNC;
    loop {
        // SAFETY: nothing is written, as there is room for nothing.
        let length =
            unsafe { libc::recv(socket.as_fd().as_raw_fd(), std::ptr::null_mut(), 0, flags) };
        match usize::try_from(length) {
            Ok(length) => return Ok(length),
            Err(_) => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::EINTR) => {}
                error if error.raw_os_error() == Some(libc::ECONNRESET) => return Ok(0),
                error => return Err(error),
            },
        }
    }
}

/// The next message, or `None` when the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(
    socket: &impl AsFd,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    // As long as the message: in a process that has just been forked, or has just forked, each page that is written to
    // is copied first.
    let mut bytes = vec![0; waiting(socket)?.min(MESSAGE_BYTES)];
    let mut space = nix::cmsg_space!([RawFd; MESSAGE_DESCRIPTORS]);
    let mut descriptors = Vec::new();
    let length = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let answer = recvmsg::<()>(
            socket.as_fd().as_raw_fd(),
            &mut parts,
            Some(&mut space),
            MsgFlags::MSG_CMSG_CLOEXEC,
        );
        match answer {
            Err(nix::Error::EINTR) => {}
            Err(nix::Error::ECONNRESET) => return Ok(None),
            Err(error) => return Err(error.into()),
            Ok(message) => {
                for beside in message.cmsgs()? {
                    if let ControlMessageOwned::ScmRights(numbers) = beside {
                        // SAFETY: the kernel has just made these descriptors for this process; nobody else owns them.
                        descriptors.extend(
                            numbers
                                .into_iter()
                                .map(|n| unsafe { OwnedFd::from_raw_fd(n) }),
                        );
                    }
                }
                break message.bytes;
            }
        }
    };
    if length == 0 {
        return Ok(None);
    }
    Ok(Some((
        serde_json::from_slice(&bytes[..length])?,
        descriptors,
    )))
}
