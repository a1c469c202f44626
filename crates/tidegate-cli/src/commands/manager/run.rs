use super::flags::ManagerFlags;
use crate::cluster_node;
use crate::failure::Failure;
use crate::node_process::{self, NodeRole};
use std::process::ExitCode;
use tidegate::membership::MemberRole;

/// Runs `tidegate manager` until a signal ends it.
pub fn run(flags: &ManagerFlags) -> Result<ExitCode, Failure> {
    let file = flags.file.path.as_deref();
    let folder = cluster_node::state_folder(file, &flags.settings)?;
    let cluster = cluster_node::open(MemberRole::Manager, folder.as_deref(), &flags.join)?;
    node_process::run_in(NodeRole::Manager, file, &flags.settings, cluster)
}
