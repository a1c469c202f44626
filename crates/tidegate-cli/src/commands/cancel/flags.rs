use crate::admin_client::AdminFlag;
use clap::Args;

pub const EXAMPLES: &str = "\
Examples:
  tidegate cancel nightly-7
  tidegate cancel nightly-7 nightly-8

A queued task is cancelled at once; a running task is stopped first.

Exit codes: 0 all cancelled or being cancelled, 1 some ended before or are unknown, 2 invalid flags.";

/// Flags of `tidegate cancel`.
#[derive(Debug, Args)]
pub struct CancelFlags {
    /// Task ids
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    #[command(flatten)]
    pub admin: AdminFlag,
}
