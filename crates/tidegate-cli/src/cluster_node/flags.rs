use clap::Args;
use std::net::SocketAddr;
use tidegate_server::cluster::{JoinTarget, UdpAddresses};

/// Flags of a node that joins a cluster.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub struct JoinFlags {
    /// Join a cluster, by the token that `tidegate cluster init` prints; later starts need it no more. Other users
    /// see arguments, so prefer the variable
    #[arg(long, value_name = "TOKEN@HOST:PORT", env = "TIDEGATE_JOIN", hide_env_values = true)]
    pub join: Option<JoinTarget>,
    /// Name of the node, unique in its cell [default: the host name and the role]
    #[arg(long, value_name = "NAME", requires = "join")]
    pub node: Option<String>,
    /// Host by which other nodes reach this one [default: its address on the way to the manager]
    #[arg(long, value_name = "HOST", requires = "join")]
    pub host: Option<String>,
    #[command(flatten)]
    pub addresses: UdpFlags,
}

/// UDP addresses of a node, for when it joins.
#[derive(Clone, Debug, Default, Args)]
pub struct UdpFlags {
    /// UDP address that other members send to [default: port 8010, 8011 or 8012 of the host, by role]
    #[arg(long, value_name = "ADDR")]
    pub udp: Option<SocketAddr>,
    /// UDP address to listen on, where it is another one, such as in a container
    #[arg(long, value_name = "ADDR")]
    pub udp_listen: Option<SocketAddr>,
}

// === impl UdpFlags ===

impl UdpFlags {
    pub fn addresses(&self) -> UdpAddresses {
        UdpAddresses { advertised: self.udp, listen: self.udp_listen }
    }
}
