//! An HTTP port that one thread serves, and its connections.
//! Uses the bodies of responses.
//! Must not know what is answered.

mod accept_errors;
mod connections;
mod http_port;
mod spare_descriptors;

pub(crate) use accept_errors::AcceptErrors;
pub(crate) use connections::{Connections, Listed, OpenConnection, Stage};
pub use http_port::HttpPort;
pub(crate) use spare_descriptors::SpareDescriptors;
