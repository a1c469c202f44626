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
    /// Report all errors of the configuration and of the TLS files that it names
    Check {
        /// Configuration file, as with --config
        #[arg(value_name = "FILE", conflicts_with = "path")]
        target: Option<PathBuf>,
        #[command(flatten)]
        file: FileFlag,
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
