use crate::cluster_node::UdpFlags;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use tidegate::membership::MemberRole;

pub const EXAMPLES: &str = "\
Examples:
  tidegate cluster init                        a cluster on this machine, for a first look
  tidegate cluster init --host 10.0.0.1        nodes on other machines reach this one there
  tidegate cluster token worker                a token for workers, valid for one hour
  tidegate cluster token gate --once           a token for one gate

Exit codes: 0 ok, 1 failed, 2 invalid flags.";

/// Subcommands of `tidegate cluster`.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Make a cluster: its authority, the certificate of this machine's manager, and the UDP key
    Init(InitFlags),
    /// Print the command with which a node joins
    Token(TokenFlags),
}

#[derive(Debug, Args)]
pub struct FolderFlag {
    /// State folder of the manager [default: as that of `tidegate manager`]
    #[arg(long, value_name = "FOLDER")]
    pub state_folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct InitFlags {
    /// Name of the cell
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub cell: String,
    /// Name of the manager, unique in the cell [default: the host name and the role]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Name or address by which other nodes reach this machine
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub host: String,
    /// Port for workers, by which nodes also join
    #[arg(long, value_name = "PORT", default_value_t = 8_002)]
    pub port: u16,
    #[command(flatten)]
    pub udp: UdpFlags,
    #[command(flatten)]
    pub folder: FolderFlag,
    #[command(flatten)]
    pub valid: ValidFlag,
}

#[derive(Debug, Args)]
pub struct TokenFlags {
    /// Role of the nodes: manager, worker or gate
    #[arg(value_name = "ROLE")]
    pub role: MemberRole,
    /// For one node, instead of every node until the token expires
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub valid: ValidFlag,
    #[command(flatten)]
    pub folder: FolderFlag,
}

#[derive(Debug, Args)]
pub struct ValidFlag {
    /// Validity of tokens, in seconds
    #[arg(long = "valid-s", value_name = "SECONDS", default_value_t = 3_600)]
    pub seconds: u64,
}
