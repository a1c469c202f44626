//! Cluster: the trust between nodes, how a node joins, and membership over UDP.
//! Uses TLS and error responses of `http`, and the rules of membership in core.
//! Must not know tasks, the gateway or the ingestion. Membership decides nothing that runs.

mod extension;
mod join;
mod member;
mod members_error;
mod membership;
mod trust;

pub use extension::{MemberLoad, MemberWorkers, MembersExtension};
pub(crate) use join::JOIN_PREAMBLE;
pub use join::{JoinDesk, JoinError, JoinTarget, JoinTargetError, JoinWish, join};
pub use member::{Cluster, InitWish, init, new_token};
pub use membership::{
    DrainNote, Facts, KEY_BYTES, Keyring, MemberState, MemberView, Membership, MembershipError,
    MembershipSettings, PacketCounts,
};
pub use trust::{
    ClusterError, ClusterFolder, JoinToken, ManagerRecord, NodeIdentity, NodeRecord, TokenUse,
    TrustedNodes, UdpAddresses, node_tls,
};
