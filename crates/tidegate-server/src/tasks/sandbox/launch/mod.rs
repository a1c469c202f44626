//! The `launch` subcommand: the processes on the task's side of the sandbox. Only the sandbox starts it.
//! Uses the sandbox's configuration.
//! Must not know the runner that starts it: they talk over a socket.

mod command;
mod confine;
mod descriptor;
mod disk_usage;
mod landlock_rules;
mod limit_watcher;
mod plan;
mod probe;
mod process;
mod process_tree;
mod run;
mod seccomp_filter;
mod supervise;

pub use command::LaunchCommand;
pub(super) use descriptor::send as send_descriptor;
pub(super) use plan::{Breach, Ended, Exit, KILL, LINE_BYTES_MAX, Limits, Plan, Report, TERMINATE};
pub(super) use probe::Probed;
pub(super) use process::{Process, all_processes};
pub(super) use process_tree::signal;
pub use run::run;
