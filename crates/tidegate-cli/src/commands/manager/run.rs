use super::flags::ManagerFlags;
use crate::failure::Failure;
use crate::node_process::{self, NodeRole};
use std::process::ExitCode;

/// Runs `tidegate manager` until a signal ends it.
pub fn run(flags: &ManagerFlags) -> Result<ExitCode, Failure> {
    node_process::run(NodeRole::Manager, flags.file.path.as_deref(), &flags.settings)
}
