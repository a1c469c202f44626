//! TLS of every port and of connections to others: certificates, their checks and their reload.
//! Uses the files that `config` names, and the format of metrics.
//! Must not know what is said over a connection.

mod certificate;
mod check;
mod client;
mod error;
mod fault;
mod file_state;
mod peer_certificate;
mod pem;
mod port;
mod provider;
mod reload;
mod server;

pub use check::check_tls_files;
pub(crate) use check::tasks_tls;
pub use client::{ClientIdentity, ClientTls};
pub(crate) use client::{EITHER, HTTP1_ONLY, upstream_connector};
pub use error::{TlsSetupError, TlsSetupErrors};
pub use fault::TlsFault;
pub use peer_certificate::PeerCertificate;
pub(crate) use port::{PortFiles, TlsPort, write_tls};
pub(crate) use provider::provider;
pub(crate) use reload::reload_forever;
