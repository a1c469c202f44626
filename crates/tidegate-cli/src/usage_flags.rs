use crate::threshold_flags::AdminFlag;
use clap::{Args, ValueEnum};

pub const EXAMPLES: &str = "\
Examples:
  tidegate usage                                   the last hour, a row a tenant
  tidegate usage --by meter --since 7d
  tidegate usage --by both --tenant acme --since 2026-11-01 --until 2026-12-01
  tidegate usage --since 15m --json
  tidegate usage --store tidegate-data             of a node that is not running

Times are whole minutes: the first is rounded down, the last up. Amounts are exact in the store and with --json;
the table rounds them to 4 digits.

Exit codes: 0 ok, 1 no node there or its store can't be read, 2 wrong flags.";

/// What was used, and what it costs.
#[derive(Debug, Args)]
pub struct UsageFlags {
    /// One row for each of what
    #[arg(long, value_enum, default_value = "tenant")]
    pub by: By,
    /// From when on: a time ago such as 90s, 15m, 1h or 7d, a date, or a time such as 2026-11-16T08:00:00Z
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub since: String,
    /// Until when, in the same forms; without it until now
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only this tenant's
    #[arg(long)]
    pub tenant: Option<String>,
    /// Only this meter's
    #[arg(long)]
    pub meter: Option<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub admin: AdminFlag,
    /// Read this folder or database itself, and not through a node
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    Tenant,
    Meter,
    Both,
}

// === impl By ===

impl By {
    pub fn word(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Meter => "meter",
            Self::Both => "both",
        }
    }
}
