use crate::cluster_node::JoinFlags;
use crate::settings_flags::{FileFlag, SettingFlags};
use clap::Args;

pub const EXAMPLES: &str = "\
Examples:
  tidegate manager                           tasks on 127.0.0.1:8000, workers on 127.0.0.1:8002
  tidegate worker --manager 127.0.0.1:8002   a worker for it, on this machine
  tidegate manager --task-store postgres://tidegate@db/tidegate
  tidegate manager --config manager.toml     for workers elsewhere: [workers] address, [tls], [[worker]]
  tidegate cluster init                      makes a cluster, of which the manager is then the first node
  tidegate workers                           shows the workers that are connected

The settings are those of `tidegate up`; without upstreams, local slots and usage records unless they are set.

Exit codes: 0 ok, 1 failed while running, 2 invalid flags or configuration.";

/// Flags of `tidegate manager`.
#[derive(Debug, Args)]
pub struct ManagerFlags {
    #[command(flatten)]
    pub file: FileFlag,
    #[command(flatten)]
    pub join: JoinFlags,
    #[command(flatten)]
    pub settings: SettingFlags,
}
