//! `tidegate up`: the gateway with ingestion and tasks in one process.
//! May use: `node_process`.
//! Must not know: other commands.

mod flags;

use crate::failure::Failure;
use crate::node_process::{self, NodeRole};
use std::process::ExitCode;

pub use flags::{EXAMPLES, UpFlags};

/// Runs `tidegate up` until a signal ends it.
pub fn run(flags: &UpFlags) -> Result<ExitCode, Failure> {
    node_process::run(NodeRole::All, flags.file.path.as_deref(), &flags.settings)
}
