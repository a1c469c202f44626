//! HTTP for every port: TLS, sockets, bodies, admission, error responses, metrics pages and the client.
//! Uses settings of `config`.
//! Must not know gateway, ingest, tasks or node.

pub mod admission;
mod body;
pub mod client;
pub(crate) mod date;
pub mod error_response;
mod exposition;
mod extension;
mod handlers;
mod histogram;
mod phase;
pub(crate) mod port;
mod process_metrics;
pub(crate) mod read_body;
mod rejection;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod tls;
pub(crate) mod wire;

pub use body::{ByteStream, ResponseBody};
pub use exposition::{Exposition, Series};
pub use extension::{Answer, Caller, Extension, InUse, Port};
pub use handlers::Handler;
pub use histogram::{BOUNDS_S, Histogram, HistogramSnapshot};
pub use phase::Phase;
pub use port::HttpPort;
pub(crate) use process_metrics::write_process;
pub use rejection::{Rejection, RejectionCause, RejectionReason, WaitForecast};
pub use tls::{
    ClientIdentity, ClientTls, TlsFault, TlsSetupError, TlsSetupErrors, check_tls_files,
};
/// The stream of a connection that [`ClientTls`] has opened.
pub use tokio_rustls::client::TlsStream;
