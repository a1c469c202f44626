use crate::admin_client::AdminFlag;
use clap::Args;

pub const EXAMPLES: &str = "\
Examples:
  tidegate status                 task counts and executors
  tidegate status nightly-7       details of one task
  tidegate status nightly-7 --json
  tidegate status nightly-7 --follow   until it ends: status, progress with rates, and a bar

Exit codes: 0 ok, 1 node not reachable or unknown task, 2 invalid flags.";

/// Flags of `tidegate status`.
#[derive(Debug, Args)]
pub struct StatusFlags {
    /// Task id; without it task counts and executors
    pub id: Option<String>,
    /// Follow the task to its end: a line for each change
    #[arg(long, short, requires = "id", conflicts_with = "json")]
    pub follow: bool,
    /// Print the node's JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub admin: AdminFlag,
}
