use crate::admin_client::AdminFlag;
use clap::Args;

pub const EXAMPLES: &str = "\
Examples:
  tidegate workers
  tidegate workers --admin 127.0.0.1:8001
  tidegate workers --json

CPU, MEMORY and LOAD are those of the worker's machine. FLUSH is how the worker sends progress, which \
follows the manager's backpressure level; QUEUE is the manager's queue to the worker.

Exit codes: 0 ok, 1 manager not reachable, 2 invalid flags.";

/// Flags of `tidegate workers`.
#[derive(Debug, Args)]
pub struct WorkersFlags {
    /// Print the manager's JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub admin: AdminFlag,
}
