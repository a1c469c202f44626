use super::flags::UpFlags;
use crate::failure::Failure;
use crate::node_process::{self, NodeRole};
use std::process::ExitCode;

/// Runs `tidegate up` until a signal ends it.
pub fn run(flags: &UpFlags) -> Result<ExitCode, Failure> {
    node_process::run(NodeRole::All, flags.file.path.as_deref(), &flags.settings)
}
