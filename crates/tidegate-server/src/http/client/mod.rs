//! HTTP client: connections to endpoints, pooled by thread, and the bodies sent on them.
//! Uses TLS, socket options and settings.
//! Must not know why a request is sent, nor which endpoint is chosen.

mod body;
mod connect;
mod connection;
mod endpoint;
mod error;
mod h2_heads;
mod http1;
mod informational;
mod pool;
mod read_guard;
mod stream;
mod upload;

pub use body::EndpointBody;
pub use connect::{ConnectError, Connector};
pub use connection::{Connection, Sending};
pub use endpoint::Endpoint;
pub(crate) use endpoint::bearer;
pub use error::{ClientError, Malformed, SendError};
pub use http1::Switched;
// Parsers of what servers send, for fuzz targets alone.
#[doc(hidden)]
pub use http1::{Chunk, ChunkScan, Framing, ResponseHead};
pub use pool::{HttpVersion, Pool};
pub use upload::UploadBody;
pub(crate) use upload::{BodyRate, UploadWatch, plus};
