//! The proxy: one request, from its head to the end of its response.
//! Uses admission, upstreams and their load, the decision log, telemetry and the control plane.
//! Must not know how connections are accepted, nor which thread serves them.

mod context;
mod dispatch;
mod error;
mod request;
mod response;
mod selection;
mod serve;
mod turn_meter;

pub use context::{ClientContext, Proxy, ThreadProxy};
pub use error::ProxyError;
// Parsers of what clients send, for fuzz targets alone.
#[doc(hidden)]
pub use request::{ModelScan, Scanned, deadline::of as deadline_of};
pub use response::GatewayBody;
pub use serve::serve;
