use super::error::{TlsSetupError, TlsSetupErrors, noted};
use super::pem::{certificates, private_key};
use super::provider::provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Both protocols, HTTP/2 first.
pub(crate) const EITHER: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// HTTP/1.1 alone, where a protocol may be switched.
pub(crate) const HTTP1_ONLY: [&[u8]; 1] = [b"http/1.1"];

/// TLS to servers that are not upstreams: nodes, executors and ingestion.
#[derive(Clone)]
pub struct ClientTls(TlsConnector);

/// The certificate that a client shows, in PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The certificate chain, the client's own certificate first.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

// === impl ClientTls ===

impl ClientTls {
    /// TLS that trusts the authorities of a PEM bundle, or those of the system, and shows a certificate if it has
    /// one. `setting` is the name of the bundle's setting in errors.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the files.
    pub fn new(
        ca: Option<&Path>,
        identity: Option<&ClientIdentity>,
        setting: &'static str,
    ) -> Result<Self, TlsSetupErrors> {
        let mut errors = Vec::new();
        let roots = noted(authorities(ca, setting), &mut errors);
        let shown = identity.map(|ClientIdentity { cert, key }| {
            let chain = noted(certificates(cert, "a certificate chain"), &mut errors);
            chain.zip(noted(private_key(key), &mut errors))
        });
        let config = match (roots, shown) {
            (Some(roots), None) => noted(client_config(roots, None), &mut errors),
            (Some(roots), Some(Some(pair))) => noted(client_config(roots, Some(pair)), &mut errors),
            _ => None,
        };
        match config {
            Some(config) => Ok(Self(TlsConnector::from(Arc::new(config)))),
            None => Err(TlsSetupErrors::of(setting, errors)),
        }
    }

    /// TLS of a configuration made elsewhere.
    pub(crate) fn of_config(config: ClientConfig) -> Self {
        Self(TlsConnector::from(Arc::new(config)))
    }

    /// Performs the handshake with a server of this name, a host name or an IP address.
    ///
    /// # Errors
    ///
    /// When the name is none, or the server's certificate is not trusted for it.
    pub async fn connect<S>(&self, host: &str, io: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        self.0.connect(name, io).await
    }
}

impl std::fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientTls")
    }
}

/// The connector of TLS to `https` upstreams, offering these protocols.
///
/// # Errors
///
/// When the bundle can't be read, or no authority is known at all.
pub(crate) fn upstream_connector(
    bundle: Option<&Path>,
    protocols: &[&[u8]],
) -> Result<TlsConnector, TlsSetupError> {
    let mut config = client_config(authorities(bundle, "proxy.tls_ca")?, None)?;
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The authorities of a PEM bundle, or those of the system; at least one.
fn authorities(
    bundle: Option<&Path>,
    setting: &'static str,
) -> Result<RootCertStore, TlsSetupError> {
    let mut roots = RootCertStore::empty();
    let found = match bundle {
        Some(path) => certificates(path, "certificate authorities")?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    roots.add_parsable_certificates(found);
    if roots.is_empty() { Err(TlsSetupError::NoAuthorities { setting }) } else { Ok(roots) }
}

fn client_config(
    roots: RootCertStore,
    shown: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
) -> Result<ClientConfig, TlsSetupError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    Ok(match shown {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
        None => builder.with_no_client_auth(),
    })
}
