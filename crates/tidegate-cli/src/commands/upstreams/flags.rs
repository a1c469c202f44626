use crate::admin_client::AdminFlag;
use clap::Args;

pub const EXAMPLES: &str = "\
Examples:
  tidegate upstreams
  tidegate upstreams --admin 127.0.0.1:8001
  tidegate upstreams --json

LIMIT is the most requests that an upstream is sent at once; MOVED is the cause of the last change \
of a limit that is found (--limit auto). WAITING has the queued requests of a model by priority.

Exit codes: 0 ok, 1 gateway not reachable, 2 invalid flags.";

/// Flags of `tidegate upstreams`.
#[derive(Debug, Args)]
pub struct UpstreamsFlags {
    /// Print the gateway's JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub admin: AdminFlag,
}
