use clap::{Args, Subcommand};
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  tidegate tariff check tariffs.toml
  tidegate tariff check tariffs.toml --tenant acme --meter tokens.output --quantity 2500000
  tidegate tariff check tariffs.toml --tenant acme --meter gpu.seconds --quantity 3600 \\
      --at 2026-03-29T01:30:00Z --json

Nothing is stored and no server is asked. docs/tariffs.md explains the file.

Exit codes: 0 ok, also with warnings; 1 the file can't be read; 2 the file or a flag is wrong.";

/// What to do with a file of tariffs.
#[derive(Debug, Subcommand)]
pub enum TariffCommand {
    /// Say everything that is wrong with a file of tariffs, or what it says; price an example by it
    #[command(after_help = EXAMPLES)]
    Check {
        /// The file
        #[arg(value_name = "FILE")]
        path: PathBuf,
        #[command(flatten)]
        example: Option<ExampleFlags>,
        /// As a JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Something to price.
#[derive(Debug, Args)]
#[command(next_help_heading = "Example")]
pub struct ExampleFlags {
    /// Who uses it
    #[arg(long, required = false)]
    #[arg(requires_all = ["meter", "quantity"])]
    pub tenant: String,
    /// What is used
    #[arg(long, required = false, requires_all = ["tenant", "quantity"])]
    pub meter: String,
    /// How much of it; negative takes back
    #[arg(long, required = false, value_name = "N", allow_negative_numbers = true)]
    #[arg(requires_all = ["tenant", "meter"])]
    pub quantity: String,
    /// When: 2026-03-29T01:30:00Z, or 2026-03-29T03:30 by the tariff's clocks [default: now]
    #[arg(long, value_name = "TIME", requires = "quantity")]
    pub at: Option<String>,
    /// How much was used before it in the period, for tiers
    #[arg(long, value_name = "N", default_value = "0", allow_negative_numbers = true)]
    #[arg(requires = "quantity")]
    pub used: String,
}
