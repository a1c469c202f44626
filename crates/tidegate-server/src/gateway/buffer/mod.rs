//! Responses that wait for their clients: the bytes of each, and of all against `proxy.buffer_mib`.
//! Uses nothing of the gateway.
//! Must not know requests, upstreams or sockets.

mod budget;
mod response_buffer;

pub use budget::BufferBudget;
pub use response_buffer::{Piece, ResponseBuffer, Waiting};
