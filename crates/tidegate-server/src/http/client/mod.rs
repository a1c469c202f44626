//! HTTP client: connections to endpoints, pooled by thread, and the bodies sent on them.
//! Uses TLS, socket options and settings.
//! Must not know why a request is sent, nor which endpoint is chosen.

mod connect;
mod endpoint;
mod h2_heads;
mod informational;
mod pool;
mod read_guard;
mod upload;

pub use connect::{ConnectError, Connector};
pub use endpoint::Endpoint;
pub(crate) use endpoint::bearer;
pub use pool::{Connection, HttpVersion, Pool};
pub use upload::UploadBody;
pub(crate) use upload::{BodyRate, UploadWatch, plus};
