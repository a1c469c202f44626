//! Tasks as processes of this machine, in a sandbox of several layers. At start each layer is tried, used when
//! available, and reported with the reason when not.
//! Uses `execution` and `config`.
//! Must not know slots, leases, HTTP or the manager.
//!
//! The sandbox protects the machine from programs that go wrong. It is no boundary against hostile programs: those
//! belong in a virtual machine.
//!
//! Start of a task with every layer in force:
//!
//! ```text
//! worker ── bwrap ── tidegate launch supervise ── tidegate launch confine → exec → the runtime
//!           mounts,  process 1 of its namespace:  limits, Landlock, seccomp,
//!           names    watches, stops, reaps        then becomes the task
//! ```
//!
//! Worker and supervisor talk over the supervisor's standard input, which is a socket. The task inherits the
//! supervisor's standard output and error, which are pipes that the worker reads. The task's end of a third pipe,
//! for progress, is the first thing that the worker sends over the socket.

mod access_rules;
mod bubblewrap;
mod config;
mod ending;
mod error;
mod execution;
mod folder;
pub mod launch;
mod layers;
mod orphans;
mod own_ports;
mod progress_reader;
mod runner;
mod runtime;
mod sweeper;
mod uids;

pub use config::{LayerUse, Layers, Network, ProcessConfig, RuntimeConfig};
pub use error::RunnerError;
pub use runner::ProcessRunner;
