use crate::config::TlsFiles;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// TLS could not be set up from the files that the configuration names.
#[derive(Debug, thiserror::Error)]
pub enum TlsSetupError {
    /// A file could not be read or is not PEM.
    #[error("{path} is no readable PEM file: {source}; give a PEM file with {expected}")]
    Pem {
        /// The file.
        path: PathBuf,
        /// The expected content.
        expected: &'static str,
        /// The cause.
        source: rustls::pki_types::pem::Error,
    },
    /// The certificate and the key don't make a server.
    #[error("the certificate in {cert} and the key in {key} can't be used: {source}")]
    Pair {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The cause.
        source: rustls::Error,
    },
    /// The crypto provider lacks the protocol versions that are needed.
    #[error("TLS is not available: {0}")]
    Provider(#[from] rustls::Error),
    /// No certificate authority is known, so no `https` upstream could be trusted.
    #[error(
        "no certificate authority found: install ca-certificates, or set proxy.tls_ca to a PEM bundle"
    )]
    NoAuthorities,
}

/// Both protocols, HTTP/2 first.
pub(crate) const EITHER: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// HTTP/1.1 alone, where a protocol may be switched.
pub(crate) const HTTP1_ONLY: [&[u8]; 1] = [b"http/1.1"];

/// The acceptor of TLS from clients, offering HTTP/2 and HTTP/1.1.
///
/// # Errors
///
/// When a file can't be read, or the key does not fit the certificate.
pub(crate) fn server_acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsSetupError> {
    let chain = certificates(&files.cert, "a certificate chain")?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|source| TlsSetupError::Pem {
        path: files.key.clone(),
        expected: "a private key",
        source,
    })?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|source| TlsSetupError::Pair {
            cert: files.cert.clone(),
            key: files.key.clone(),
            source,
        })?;
    config.alpn_protocols = owned(&EITHER);
    Ok(TlsAcceptor::from(Arc::new(config)))
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
    let mut roots = RootCertStore::empty();
    match bundle {
        Some(path) => {
            roots.add_parsable_certificates(certificates(path, "certificate authorities")?);
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(TlsSetupError::NoAuthorities);
    }
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = owned(protocols);
    Ok(TlsConnector::from(Arc::new(config)))
}

fn certificates(
    path: &Path,
    expected: &'static str,
) -> Result<Vec<CertificateDer<'static>>, TlsSetupError> {
    let unreadable = |source| TlsSetupError::Pem { path: path.to_owned(), expected, source };
    CertificateDer::pem_file_iter(path)
        .map_err(unreadable)?
        .collect::<Result<_, _>>()
        .map_err(unreadable)
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn owned(protocols: &[&[u8]]) -> Vec<Vec<u8>> {
    protocols.iter().map(|name| name.to_vec()).collect()
}
