use crate::admin_client::AdminFlag;
use clap::Args;

pub const EXAMPLES: &str = "\
Examples:
  tidegate logs nightly-7
  tidegate logs nightly-7 --follow
  tidegate logs nightly-7 --stderr

Exit codes: 0 ok, 1 node not reachable or unknown task, 2 invalid flags.";

/// Flags of `tidegate logs`.
#[derive(Debug, Args)]
pub struct LogsFlags {
    /// Task id
    pub id: String,
    /// Follow the output until the task ends
    #[arg(long, short)]
    pub follow: bool,
    /// Only standard output
    #[arg(long, conflicts_with = "stderr")]
    pub stdout: bool,
    /// Only standard error
    #[arg(long)]
    pub stderr: bool,
    #[command(flatten)]
    pub admin: AdminFlag,
}
