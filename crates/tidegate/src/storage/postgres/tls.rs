use crate::storage::StoreError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// TLS mode of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TlsMode {
    /// Not at all.
    Off,
    /// Against listeners only, where the server offers it: anyone's certificate will do.
    Unchecked,
    /// The server's certificate must be its own, by the machine's authorities or by those in a file.
    Checked {
        /// The file.
        root: Option<PathBuf>,
    },
}

/// Takes any certificate, as the mode `prefer` does everywhere.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

/// TLS connector of a mode.
pub(super) fn connector(mode: &TlsMode) -> Result<MakeRustlsConnect, StoreError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::Unusable(format!("TLS is not available: {error}")))?;
    let config = match mode {
        TlsMode::Checked { root } => builder.with_root_certificates(roots(root.as_deref())?),
        TlsMode::Off | TlsMode::Unchecked => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        }
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => {
            let unreadable = |error| {
                StoreError::Unusable(format!(
                    "sslrootcert={} is no readable PEM file: {error}",
                    path.display()
                ))
            };
            let found = CertificateDer::pem_file_iter(path).map_err(unreadable)?;
            let found = found.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
            roots.add_parsable_certificates(found);
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(StoreError::Unusable(
            "no certificate authority found: install ca-certificates, or add sslrootcert=FILE to the address"
                .into(),
        ));
    }
    Ok(roots)
}

// === impl AnyCertificate ===

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
