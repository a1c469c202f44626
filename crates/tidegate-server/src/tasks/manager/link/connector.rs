use crate::http::ClientTls;
use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

/// Longest time to connect, and for the handshake of TLS after that.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Opens connections to an executor, with TLS where its URL has it.
#[derive(Clone)]
pub struct LinkConnector {
    http: HttpConnector,
    tls: Option<ClientTls>,
}

/// A connection to an executor.
pub enum LinkStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

type BoxError = Box<dyn Error + Send + Sync>;

// === impl LinkConnector ===

impl LinkConnector {
    pub fn new(tls: Option<ClientTls>) -> Self {
        let mut http = HttpConnector::new();
        http.set_connect_timeout(Some(CONNECT_TIMEOUT));
        http.set_nodelay(true);
        http.enforce_http(false);
        Self { http, tls }
    }
}

impl Service<Uri> for LinkConnector {
    type Response = TokioIo<LinkStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let is_https = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default().to_owned();
        let (connecting, tls) = (self.http.call(uri), self.tls.clone());
        Box::pin(async move {
            let tcp = connecting.await?.into_inner();
            let stream = match (is_https, tls) {
                (false, _) => LinkStream::Plain(tcp),
                (true, None) => return Err("no TLS is set up for https executors".into()),
                (true, Some(tls)) => {
                    let stream = timeout(CONNECT_TIMEOUT, tls.connect(&host, tcp)).await??;
                    LinkStream::Tls(Box::new(stream))
                }
            };
            Ok(TokioIo::new(stream))
        })
    }
}

// === impl LinkStream ===

impl Connection for LinkStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for LinkStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Self::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for LinkStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(cx, buf),
            Self::Tls(tls) => Pin::new(tls).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Self::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}
