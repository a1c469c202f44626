use clap::Args;

/// Address of the admin port that a command asks.
#[derive(Debug, Args)]
pub struct AdminFlag {
    /// Admin address of the node
    #[arg(long = "admin", value_name = "ADDR", env = "TIDEGATE_LISTEN_ADMIN_ADDRESS")]
    #[arg(default_value = "127.0.0.1:8001")]
    pub address: String,
}
