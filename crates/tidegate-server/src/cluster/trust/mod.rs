//! Trust between nodes: the authority, certificates with role and cell, join tokens, and the files of a node.
//! Uses TLS of `http`. Must not know how a node joins, nor who is alive.

mod authority;
mod certificate_request;
mod error;
mod folder;
mod hex;
mod identity;
mod node_tls;
mod token;
mod token_book;

pub use authority::Authority;
pub use certificate_request::certificate_request;
pub use error::ClusterError;
pub use folder::{ClusterFolder, ManagerRecord, NodeRecord, UdpAddresses};
pub use hex::{from_hex, to_hex};
pub use identity::{NodeIdentity, TrustedNodes};
pub use node_tls::{join_acceptor, join_connector, node_tls};
pub use token::{JoinToken, fingerprint};
pub use token_book::{JoinRefused, NodeBook, TokenUse};
