use crate::cluster_node::JoinFlags;
use crate::settings_flags::{FileFlag, SettingFlags};
use clap::Args;

pub const EXAMPLES: &str = "\
Examples:
  tidegate gate --manager 127.0.0.1:8000 --listen 127.0.0.1:8080 --admin-listen 127.0.0.1:8081
  tidegate gate --manager https://manager-1:8000 --manager https://manager-2:8000

A gate admits by priority and sheds before its managers are overloaded. Tokens of clients are passed on.
The settings are those of `tidegate up`.

Exit codes: 0 ok, 1 failed while running, 2 invalid flags or configuration.";

/// Flags of `tidegate gate`.
#[derive(Debug, Args)]
pub struct GateFlags {
    /// Client address of a manager, HOST:PORT or a URL; repeatable [default in a cluster: the one it joined by]
    #[arg(long = "manager", value_name = "ADDR")]
    pub managers: Vec<String>,
    #[command(flatten)]
    pub file: FileFlag,
    #[command(flatten)]
    pub join: JoinFlags,
    #[command(flatten)]
    pub settings: SettingFlags,
}
