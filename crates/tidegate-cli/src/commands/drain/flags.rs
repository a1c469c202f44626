use crate::admin_client::AdminFlag;
use clap::Args;

pub const EXAMPLES: &str = "\
Examples:
  tidegate drain db1-worker                    nothing new is dispatched to it; what it executes goes on
  tidegate undrain db1-worker
  tidegate drain db1-worker --admin 10.0.0.1:8001

A drain is set at the manager of the worker, survives its restarts, and is shown to every member.

Exit codes: 0 ok, 1 manager not reachable or no such worker, 2 invalid flags.";

/// Flags of `tidegate drain`.
#[derive(Debug, Args)]
pub struct DrainFlags {
    /// Name of the worker
    pub node: String,
    /// End the drain, as `tidegate undrain` does
    #[arg(long)]
    pub off: bool,
    #[command(flatten)]
    pub admin: AdminFlag,
}

/// Flags of `tidegate undrain`.
#[derive(Debug, Args)]
pub struct UndrainFlags {
    /// Name of the worker
    pub node: String,
    #[command(flatten)]
    pub admin: AdminFlag,
}
