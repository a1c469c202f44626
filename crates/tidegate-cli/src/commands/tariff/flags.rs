use clap::{Args, Subcommand};
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  tidegate tariff check tariffs.toml
  tidegate tariff check tariffs.toml --tenant acme --meter tokens.output --quantity 2500000
  tidegate tariff check tariffs.toml --tenant acme --meter gpu.seconds --quantity 3600 \\
      --at 2026-03-29T01:30:00Z --json

Nothing is stored and no server is contacted. docs/tariffs.md explains the file.

Exit codes: 0 ok, also with warnings; 1 file not readable; 2 invalid file or flags.";

/// Subcommands of `tidegate tariff`.
#[derive(Debug, Subcommand)]
pub enum TariffCommand {
    /// Report all errors of a tariff file, or its contents; price an example
    #[command(after_help = EXAMPLES)]
    Check {
        /// Tariff file
        #[arg(value_name = "FILE")]
        path: PathBuf,
        #[command(flatten)]
        example: Option<ExampleFlags>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

/// Example to price.
#[derive(Debug, Args)]
#[command(next_help_heading = "Example")]
pub struct ExampleFlags {
    /// Tenant
    #[arg(long, required = false)]
    #[arg(requires_all = ["meter", "quantity"])]
    pub tenant: String,
    /// Meter
    #[arg(long, required = false, requires_all = ["tenant", "quantity"])]
    pub meter: String,
    /// Quantity; a negative one is a correction
    #[arg(long, required = false, value_name = "N", allow_negative_numbers = true)]
    #[arg(requires_all = ["tenant", "meter"])]
    pub quantity: String,
    /// Time: 2026-03-29T01:30:00Z, or 2026-03-29T03:30 in the tariff's time zone [default: now]
    #[arg(long, value_name = "TIME", requires = "quantity")]
    pub at: Option<String>,
    /// Quantity used before in the period, for tiers
    #[arg(long, value_name = "N", default_value = "0", allow_negative_numbers = true)]
    #[arg(requires = "quantity")]
    pub used: String,
}
