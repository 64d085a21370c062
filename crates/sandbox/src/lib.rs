//! Runs an untrusted program on an input under limits and says what happened: Python, and by a file each C, C++, Rust,
//! Java, Go, JavaScript and whatever else can be compiled and started by a command line.
//!
//! ```no_run
//! use std::time::Duration;
//! use rlef_sandbox::{Config, Ending, Limits, Sandbox};
//!
//! let sandbox = Sandbox::new(Config::default())?;
//! let outcome = sandbox.run("print(int(input()) * 2)", b"21\n", &Limits::with_cpu(Duration::from_secs(2)))?;
//! assert_eq!(outcome.ending, Ending::Exited(0));
//! assert_eq!(outcome.stdout, b"42\n");
//! # Ok::<(), rlef_sandbox::Fault>(())
//! ```
//!
//! What is promised, against whom, and which test checks it: `SECURITY.md`. An [`Outcome`] is the program's doing, a
//! [`Fault`] is ours and never says anything about the program.
//!
//! A program that links this crate is started a second time, as a small launcher process, before its `main`; see
//! the header of `launcher.rs`. Linux only.

mod artifact;
mod ask;
mod call;
mod candidate;
mod capture;
mod cgroup;
mod external;
mod fault;
mod files;
mod filter;
mod identity;
mod interpreter;
mod language;
mod launcher;
mod lifeline;
mod outcome;
mod own;
mod packages;
mod policy;
mod pool;
mod prepared;
mod protection;
mod rehearsal;
mod root;
mod sandbox;
mod slot;
mod starved;
mod supervise;
mod text;
mod usage;
mod value;
mod verdict;
mod wire;

pub use call::{Called, Returned};
pub use candidate::Candidate;
pub use external::External;
pub use fault::Fault;
pub use language::{CompileError, Compiled, LanguageStatus, PYTHON, Program};
pub use outcome::{Ending, Limits, Outcome};
pub use prepared::{Given, Prepared, Sources};
pub use protection::Protection;
pub use sandbox::{Config, Sandbox};
pub use text::visible;
pub use value::Value;
