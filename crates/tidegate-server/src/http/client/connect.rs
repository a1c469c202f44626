use super::connection::Shared;
use super::h2_heads::FrameCheck;
use super::http1::Http1;
use super::informational::HeadWatch;
use super::read_guard::ReadGuard;
use super::stream::{Stream, TlsEnd};
use super::{Endpoint, HttpVersion};
use crate::config::{ProxyConfig, Scheme};
use crate::http::tls::{EITHER, HTTP1_ONLY, TlsSetupError, upstream_connector};
use crate::http::wire::{
    self, H2_CONNECTION_WINDOW, H2_PING_EVERY, H2_SEND_MAX, H2_STREAM_WINDOW, TLS_BUFFER_MAX,
};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Opens connections to endpoints.
#[derive(Clone)]
pub struct Connector {
    tls: Option<Tls>,
    timeout: Duration,
}

/// TLS connectors by the versions of HTTP that they offer.
#[derive(Clone)]
struct Tls {
    either: TlsConnector,
    http1: TlsConnector,
}

/// A connection just opened: the server chooses its version under TLS, the scheme otherwise.
pub(super) enum Opened {
    Http1(Box<Http1>),
    Http2(Shared),
}

/// No connection could be opened. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No answer in time.
    #[error("no connection within {0:?}")]
    Timeout(Duration),
    /// The name could not be resolved, or the peer refused or can't be reached.
    #[error("{0}")]
    Refused(#[source] io::Error),
    /// TCP worked and TLS did not.
    #[error("TLS failed: {0}")]
    Tls(#[source] io::Error),
    /// The connection was made, and HTTP could not start on it.
    #[error("HTTP could not start: {0}")]
    Handshake(#[source] hyper::Error),
}

// === impl Connector ===

impl Connector {
    /// A connector with these settings; with TLS where `any_https`.
    ///
    /// # Errors
    ///
    /// When an `https` upstream needs certificate authorities and none can be read.
    pub fn new(config: &ProxyConfig, any_https: bool) -> Result<Self, TlsSetupError> {
        let connector = |protocols| upstream_connector(config.tls_ca.as_deref(), protocols);
        let tls = match any_https {
            true => Some(Tls { either: connector(&EITHER)?, http1: connector(&HTTP1_ONLY)? }),
            false => None,
        };
        Ok(Self { tls, timeout: config.connect_timeout })
    }

    /// Opens a connection that speaks this version.
    pub(super) async fn open(
        &self,
        endpoint: &Endpoint,
        version: HttpVersion,
    ) -> Result<Opened, ConnectError> {
        let open = async {
            let stream = self.connect(endpoint, version).await?;
            let h2 = match &stream {
                Stream::Plain(_) => endpoint.scheme == Scheme::H2c || version == HttpVersion::Http2,
                Stream::Tls(tls) => tls.speaks_h2(),
            };
            if h2 {
                start_http2(stream).await
            } else {
                Ok(Opened::Http1(Box::new(Http1::new(stream))))
            }
        };
        self.in_time(open).await
    }

    /// Opens and closes a connection, with TLS where the endpoint wants it. Sends no request.
    pub(crate) async fn reach(&self, endpoint: &Endpoint) -> Result<(), ConnectError> {
        self.in_time(self.connect(endpoint, HttpVersion::Any)).await.map(drop)
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, ConnectError> {
        match tokio::time::timeout(self.timeout, work).await {
            Ok(done) => done,
            Err(_elapsed) => Err(ConnectError::Timeout(self.timeout)),
        }
    }

    async fn connect(
        &self,
        endpoint: &Endpoint,
        version: HttpVersion,
    ) -> Result<Stream, ConnectError> {
        let address = (endpoint.host.as_str(), endpoint.port);
        let tcp = TcpStream::connect(address).await.map_err(ConnectError::Refused)?;
        wire::prepare(&tcp).map_err(ConnectError::Refused)?;
        match (endpoint.scheme, &self.tls) {
            (Scheme::Https, Some(tls)) => {
                let name = ServerName::try_from(endpoint.host.clone())
                    .map_err(|error| ConnectError::Tls(io::Error::other(error)))?;
                let connector =
                    if version == HttpVersion::Http1 { &tls.http1 } else { &tls.either };
                let mut stream = connector.connect(name, tcp).await.map_err(ConnectError::Tls)?;
                stream.get_mut().1.set_buffer_limit(Some(TLS_BUFFER_MAX));
                Ok(Stream::Tls(TlsEnd::new(stream)))
            }
            (Scheme::Http | Scheme::H2c | Scheme::Https, _) => Ok(Stream::Plain(tcp)),
        }
    }
}

async fn start_http2(stream: Stream) -> Result<Opened, ConnectError> {
    let heads = Arc::new(HeadWatch::default());
    let io = TokioIo::new(ReadGuard::new(stream, FrameCheck::new(Arc::clone(&heads))));
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(H2_PING_EVERY)
        .initial_stream_window_size(H2_STREAM_WINDOW)
        .initial_connection_window_size(H2_CONNECTION_WINDOW)
        .max_send_buf_size(H2_SEND_MAX)
        .handshake(io)
        .await
        .map_err(ConnectError::Handshake)?;
    tokio::spawn(async move { log_end(connection.await) });
    Ok(Opened::Http2(Shared { sender, heads }))
}

/// A connection's end is an event of its requests, which report it; here it is only worth a trace.
fn log_end(end: hyper::Result<()>) {
    if let Err(error) = end {
        tracing::debug!(%error, "upstream connection ended");
    }
}
