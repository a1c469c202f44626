use crate::settings_flags::{FileFlag, SettingFlags};
use clap::Args;

pub const EXAMPLES: &str = "\
Examples:
  tidegate up --upstream http://127.0.0.1:9001
  tidegate up --upstream h2c://10.0.0.5:50051 --upstream h2c://10.0.0.6:50051 --global-limit 64
  tidegate mock --listen 127.0.0.1:9000    a mock inference server to try it with
  tidegate config init                     writes ./tidegate.toml with every setting explained
  tidegate config check                    reports all configuration errors
  tidegate config show --high-limit 50     shows effective values and their sources
  TIDEGATE_ADMISSION_HIGH_LIMIT=50 tidegate up

Flags override the environment, and the environment overrides the file.
The file is --config, else TIDEGATE_CONFIG, else ./tidegate.toml if it exists.

Exit codes: 0 ok, 1 failed while running, 2 invalid flags or configuration.";

/// Flags of `tidegate up`.
#[derive(Debug, Args)]
pub struct UpFlags {
    #[command(flatten)]
    pub file: FileFlag,
    #[command(flatten)]
    pub settings: SettingFlags,
}
