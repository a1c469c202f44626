//! What runs on the task's side of the sandbox: the subcommand `launch` of the program. Nobody types it.

mod confine;
mod disk;
mod kill;
mod landlock_rules;
mod plan;
mod probe;
mod seccomp_filter;
mod stage;
mod supervise;
mod tree;
mod watch;

pub(super) use kill::signal;
pub(super) use plan::{Breach, Ended, Exit, KILL, LINE_BYTES_MAX, Limits, Plan, Report, TERMINATE};
pub(super) use probe::Probed;
pub use stage::Stage;
pub(super) use tree::{Process, everybody};
