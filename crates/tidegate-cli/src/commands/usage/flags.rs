use crate::admin_client::AdminFlag;
use clap::{Args, ValueEnum};

pub const EXAMPLES: &str = "\
Examples:
  tidegate usage                                   the last hour, by tenant
  tidegate usage --by meter --since 7d
  tidegate usage --by client                       by the client whose token delivered it
  tidegate usage --by both --tenant acme --since 2026-11-01 --until 2026-12-01
  tidegate usage --since 15m --json
  tidegate usage --store ~/.local/state/tidegate/usage  from the store of a stopped node

Times are rounded to whole minutes: --since down, --until up. Amounts are exact in \
the store and with --json; the table rounds them to 4 digits.

Exit codes: 0 ok, 1 node not reachable or store not readable, 2 invalid flags.";

/// Flags of `tidegate usage`.
#[derive(Debug, Args)]
pub struct UsageFlags {
    /// Grouping of rows
    #[arg(long, value_enum, default_value = "tenant")]
    pub by: By,
    /// Start: an age such as 90s, 15m, 1h or 7d, a date, or a time such as 2026-11-16T08:00:00Z
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub since: String,
    /// End, in the same forms [default: now]
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only this tenant
    #[arg(long)]
    pub tenant: Option<String>,
    /// Only this meter
    #[arg(long)]
    pub meter: Option<String>,
    /// Only what this client's token delivered; "" for what came without a token
    #[arg(long)]
    pub client: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub admin: AdminFlag,
    /// Read this folder or database directly, without a node
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    Tenant,
    Meter,
    Both,
    Client,
}

// === impl By ===

impl By {
    pub fn word(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Meter => "meter",
            Self::Both => "both",
            Self::Client => "client",
        }
    }
}
