use clap::{Args, Subcommand};

/// Examples in the help.
pub const EXAMPLES: &str = "Examples:
  tidegate token new --client web      a token, and the [[client]] for the configuration
  tidegate token new --operator ops    the same for an operator";

/// Subcommands of `tidegate token`.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Print a new token, and what to put into the configuration
    #[command(after_help = EXAMPLES)]
    New(NewFlags),
}

/// The holder of a new token.
#[derive(Debug, Args)]
pub struct NewFlags {
    /// Name of the client
    #[arg(long, value_name = "NAME", default_value = "client", conflicts_with = "operator")]
    pub client: String,
    /// Name of the operator
    #[arg(long, value_name = "NAME")]
    pub operator: Option<String>,
}
