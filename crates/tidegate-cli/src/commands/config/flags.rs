use crate::settings_flags::{FileFlag, SettingFlags};
use clap::Subcommand;
use std::path::PathBuf;

/// Subcommands of `tidegate config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Write a configuration file with every setting explained
    Init {
        /// Path of the file; - is standard output
        #[arg(value_name = "PATH", default_value = "tidegate.toml")]
        path: PathBuf,
        /// Overwrite an existing file
        #[arg(long)]
        force: bool,
    },
    /// Report all errors of the configuration
    Check {
        /// Configuration file; without it TIDEGATE_CONFIG, else ./tidegate.toml if it exists
        #[arg(value_name = "FILE")]
        path: Option<PathBuf>,
        #[command(flatten)]
        settings: SettingFlags,
    },
    /// Show every effective value and its source
    Show {
        #[command(flatten)]
        file: FileFlag,
        #[command(flatten)]
        settings: SettingFlags,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}
