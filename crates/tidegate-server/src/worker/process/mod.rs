//! Tasks as processes of this machine, in a sandbox of several layers. Each is looked for at start, used when it
//! is there, and named with the reason when it is not.
//!
//! The sandbox keeps programs that go wrong from taking the machine with them. It is not a boundary against
//! programs that are written to get out: those belong into a virtual machine.
//!
//! How a task is started, with every layer in force:
//!
//! ```text
//! worker ── bwrap ── tidegate launch supervise ── tidegate launch confine → exec → the runtime
//!           mounts,  process 1 of its namespace:  limits, Landlock, seccomp,
//!           names    watches, stops, reaps        then becomes the task
//! ```
//!
//! The worker and the supervisor talk over the supervisor's standard input, which is a socket. The task inherits
//! the supervisor's standard output and error, which are pipes that the worker reads.

mod bubblewrap;
mod config;
mod declared;
mod ending;
mod execution;
mod folder;
mod layers;
mod output_text;
mod runner;
mod runtime;
mod strays;
mod uids;

pub mod launch;

pub use config::{LayerUse, Layers, Network, ProcessConfig, RuntimeConfig};
pub use runner::{ProcessRunner, RunnerError};
