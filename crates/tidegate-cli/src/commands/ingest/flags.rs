use crate::settings_flags::{FileFlag, SettingFlags};
use clap::Args;

pub const EXAMPLES: &str = "\
Examples:
  tidegate ingest
  tidegate ingest --store postgres://tidegate@127.0.0.1/usage --tariffs tariffs.toml
  echo 'tokens,tenant=acme output=1234i' | nc -N 127.0.0.1 7071
  tidegate send usage.lp
  tidegate usage --by tenant --since 1h

Exit codes: 0 ok, 1 failed while running, 2 invalid flags or configuration.";

/// Flags of `tidegate ingest`.
#[derive(Debug, Args)]
pub struct IngestFlags {
    #[command(flatten)]
    pub file: FileFlag,
    #[command(flatten)]
    pub settings: SettingFlags,
}
