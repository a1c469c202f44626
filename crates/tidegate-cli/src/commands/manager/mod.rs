//! `tidegate manager`: tasks for workers that dial it.
//! May use: `node_process`.
//! Must not know: other commands.

mod flags;

use crate::failure::Failure;
use crate::node_process::{self, NodeRole};
use std::process::ExitCode;

pub use flags::{EXAMPLES, ManagerFlags};

/// Runs `tidegate manager` until a signal ends it.
pub fn run(flags: &ManagerFlags) -> Result<ExitCode, Failure> {
    node_process::run(NodeRole::Manager, flags.file.path.as_deref(), &flags.settings)
}
