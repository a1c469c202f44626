//! An HTTP port that one thread serves, and its connections.
//! Uses the bodies of responses.
//! Must not know what is answered.

mod connections;
mod http_port;

pub use http_port::HttpPort;
