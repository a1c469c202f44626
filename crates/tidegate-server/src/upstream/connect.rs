use super::Upstream;
use crate::config::{ProxyConfig, Scheme};
use crate::proxy::UploadBody;
use crate::tls::{TlsSetupError, upstream_connector};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Pings on an HTTP/2 connection with requests on it, so that a peer that vanished is noticed.
const H2_PING_EVERY: Duration = Duration::from_secs(20);

/// Opens connections to upstreams.
#[derive(Clone)]
pub struct Connector {
    tls: Option<TlsConnector>,
    timeout: Duration,
}

/// What was opened: its kind is the upstream's choice under TLS, and the scheme's otherwise.
pub(super) enum Opened {
    H1(http1::SendRequest<UploadBody>),
    H2(http2::SendRequest<UploadBody>),
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
    /// A connector for these upstreams' schemes.
    ///
    /// # Errors
    ///
    /// When an `https` upstream needs certificate authorities and none can be read.
    pub fn new(config: &ProxyConfig, any_https: bool) -> Result<Self, TlsSetupError> {
        let tls = match any_https {
            true => Some(upstream_connector(config.tls_ca.as_deref())?),
            false => None,
        };
        Ok(Self { tls, timeout: config.connect_timeout })
    }

    /// Opens a connection; `prefer_h2` asks a plain `http` upstream for HTTP/2 with prior knowledge.
    pub(super) async fn open(
        &self,
        upstream: &Upstream,
        prefer_h2: bool,
    ) -> Result<Opened, ConnectError> {
        match tokio::time::timeout(self.timeout, self.open_untimed(upstream, prefer_h2)).await {
            Ok(opened) => opened,
            Err(_elapsed) => Err(ConnectError::Timeout(self.timeout)),
        }
    }

    async fn open_untimed(
        &self,
        upstream: &Upstream,
        prefer_h2: bool,
    ) -> Result<Opened, ConnectError> {
        let address = (upstream.host.as_str(), upstream.port);
        let tcp = TcpStream::connect(address).await.map_err(ConnectError::Refused)?;
        tcp.set_nodelay(true).map_err(ConnectError::Refused)?;
        match (upstream.scheme, &self.tls) {
            (Scheme::Https, Some(tls)) => {
                let name = ServerName::try_from(upstream.host.clone())
                    .map_err(|error| ConnectError::Tls(io::Error::other(error)))?;
                let stream = tls.connect(name, tcp).await.map_err(ConnectError::Tls)?;
                let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                handshake(stream, h2).await
            }
            (Scheme::H2c, _) => handshake(tcp, true).await,
            (Scheme::Http | Scheme::Https, _) => handshake(tcp, prefer_h2).await,
        }
    }
}

async fn handshake<S>(stream: S, h2: bool) -> Result<Opened, ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(stream);
    if h2 {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(H2_PING_EVERY)
            .adaptive_window(true)
            .handshake(io)
            .await
            .map_err(ConnectError::Handshake)?;
        tokio::spawn(async move { log_end(connection.await) });
        Ok(Opened::H2(sender))
    } else {
        let (sender, connection) =
            http1::Builder::new().handshake(io).await.map_err(ConnectError::Handshake)?;
        tokio::spawn(async move { log_end(connection.with_upgrades().await) });
        Ok(Opened::H1(sender))
    }
}

/// A connection's end is an event of its requests, which report it; here it is only worth a trace.
fn log_end(end: hyper::Result<()>) {
    if let Err(error) = end {
        tracing::debug!(%error, "upstream connection ended");
    }
}
