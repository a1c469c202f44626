//! Joining of nodes: a request with a token, by TLS on the port for workers, and a certificate in return.
//! Uses `trust`. Must not know membership, nor sessions of workers.

mod client;
mod desk;
mod message;
mod target;

pub(super) use client::udp_address;
pub use client::{JoinError, JoinWish, join};
pub use desk::JoinDesk;
pub(crate) use message::JOIN_PREAMBLE;
pub(super) use target::host_and_port;
pub use target::{JoinTarget, JoinTargetError};
