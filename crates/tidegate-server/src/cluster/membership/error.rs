use crate::cluster::trust::ClusterError;
use std::io;
use std::net::SocketAddr;

/// Membership can't start. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum MembershipError {
    /// The UDP socket can't be opened.
    #[error(
        "can't open UDP {address} for membership: {source}; is this node running already, or was its folder copied \
         from another machine?"
    )]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The files of the node can't be used.
    #[error(transparent)]
    Files(#[from] ClusterError),
    /// The system refused a thread or a descriptor.
    #[error("the system refused a thread or a descriptor: {0}")]
    System(#[from] io::Error),
}
