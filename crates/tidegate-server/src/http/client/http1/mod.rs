//! HTTP/1.1 to endpoints: heads, the framing of bodies, and the connection that carries one exchange at a time.
//! Uses a stream of bytes and the parser of heads that the HTTP server uses as well.
//! Must not know how connections are opened, pooled or chosen.

mod chunks;
mod connection;
mod detached;
mod read_buffer;
mod request_head;
mod response_head;
mod switched;
mod upload;

#[doc(hidden)]
pub use chunks::{Chunk, ChunkScan};
pub(super) use connection::Http1;
pub(super) use detached::Detached;
#[doc(hidden)]
pub use response_head::{Framing, ResponseHead};
pub use switched::Switched;
