use crate::admin_client::AdminFlag;
use clap::Args;

pub const EXAMPLES: &str = "\
Examples:
  tidegate members
  tidegate members --admin 127.0.0.1:8081      the view of a gate
  tidegate members --json

STATE is that in the view of the node that is asked: alive, suspect, down or left, and draining. LOAD is slots \
in use, as a manager knows it of its workers; LEVEL is the backpressure level.

Exit codes: 0 ok, 1 node not reachable or in no cluster, 2 invalid flags.";

/// Flags of `tidegate members`.
#[derive(Debug, Args)]
pub struct MembersFlags {
    /// Print the node's JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub admin: AdminFlag,
}
