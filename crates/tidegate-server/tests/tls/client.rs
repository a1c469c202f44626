//! A TLS client that trusts one authority.

use crate::authority::{Authority, Issued};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

#[derive(Clone)]
pub struct Client {
    connector: TlsConnector,
}

/// A response, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
    /// The certificate that the server showed.
    pub certificate: CertificateDer<'static>,
}

impl Client {
    pub fn trusting(authority: &Authority) -> Self {
        Self::with(authority, None)
    }

    /// A client that shows a certificate of its own.
    pub fn showing(authority: &Authority, own: &Issued) -> Self {
        Self::with(authority, Some(own))
    }

    fn with(authority: &Authority, own: Option<&Issued>) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(authority.der.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match own {
            None => config.with_no_client_auth(),
            Some(own) => {
                let key = PrivateKeyDer::from_pem_file(&own.key).unwrap();
                config.with_client_auth_cert(vec![own.der()], key).unwrap()
            }
        };
        Self { connector: TlsConnector::from(Arc::new(config)) }
    }

    pub async fn connect(&self, port: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
        let tcp = TcpStream::connect(port).await?;
        self.connector.connect(ServerName::try_from("localhost").unwrap(), tcp).await
    }

    /// Sends a request with this token, if any, on a connection of its own.
    pub async fn try_ask(
        &self,
        port: SocketAddr,
        (method, path): (&str, &str),
        token: Option<&str>,
        body: &str,
    ) -> Result<Answer, String> {
        let stream = self.connect(port).await.map_err(|error| error.to_string())?;
        let certificate = stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned();
        let io = TokioIo::new(stream);
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(io).await.map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        request = request.header("content-type", "application/json");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::<Bytes>::from(body.to_owned())).unwrap();
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
        let body = String::from_utf8(body.to_bytes().to_vec()).unwrap();
        Ok(Answer { status, body, certificate })
    }

    pub async fn ask(
        &self,
        port: SocketAddr,
        request: (&str, &str),
        token: Option<&str>,
        body: &str,
    ) -> Answer {
        let answer = self.try_ask(port, request, token, body).await;
        answer.unwrap_or_else(|error| panic!("{request:?}: {error}"))
    }

    pub async fn get(&self, port: SocketAddr, path: &str) -> Answer {
        self.ask(port, ("GET", path), None, "").await
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}
