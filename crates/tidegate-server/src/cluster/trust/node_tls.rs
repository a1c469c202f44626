use super::error::ClusterError;
use super::folder::ClusterFolder;
use super::identity::NodeIdentity;
use super::token::{FINGERPRINT_BYTES, fingerprint};
use crate::http::tls::{ClientTls, PeerCertificate, provider};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use std::sync::Arc;
use tidegate::membership::MemberRole;
use tokio_rustls::TlsAcceptor;

type Chain = Vec<CertificateDer<'static>>;

/// Verifier of the managers of a cluster: by authority, role and cell, not by host name. Every node may have any
/// address, and a certificate of another role for the same address is none of a manager.
#[derive(Debug)]
struct ManagerVerifier {
    anchor: Anchor,
    algorithms: WebPkiSupportedAlgorithms,
}

/// Trust that a manager's certificate has to lead to.
#[derive(Debug)]
enum Anchor {
    /// The authority of this node's cell.
    Authority { roots: RootCertStore, cell: String },
    /// The authority with this digest, which the manager shows with its own certificate.
    Fingerprint([u8; FINGERPRINT_BYTES]),
}

/// TLS of a node to the managers of its cell, with its own certificate.
///
/// # Errors
///
/// When a file of the node can't be used.
pub fn node_tls(folder: &ClusterFolder, cell: &str) -> Result<ClientTls, ClusterError> {
    let (chain, key) = pair(folder)?;
    let mut roots = RootCertStore::empty();
    for authority in certificates(folder, "ca.pem")? {
        roots.add(authority)?;
    }
    let anchor = Anchor::Authority { roots, cell: cell.to_owned() };
    let config = client(anchor)?.with_client_auth_cert(chain, key)?;
    Ok(ClientTls::of_config(config))
}

/// TLS of a node that joins, to the manager of the authority with this digest.
///
/// # Errors
///
/// When the system lacks what TLS needs.
pub fn join_connector(authority: [u8; FINGERPRINT_BYTES]) -> Result<ClientTls, ClusterError> {
    let config = client(Anchor::Fingerprint(authority))?.with_no_client_auth();
    Ok(ClientTls::of_config(config))
}

/// TLS of a manager for nodes that join, which have no certificate yet.
///
/// # Errors
///
/// When a file of the node can't be used.
pub fn join_acceptor(folder: &ClusterFolder) -> Result<TlsAcceptor, ClusterError> {
    let (chain, key) = pair(folder)?;
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn client(
    anchor: Anchor,
) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>, ClusterError> {
    let provider = provider();
    let algorithms = provider.signature_verification_algorithms;
    let verifier = Arc::new(ManagerVerifier { anchor, algorithms });
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier))
}

fn pair(folder: &ClusterFolder) -> Result<(Chain, PrivateKeyDer<'static>), ClusterError> {
    let key = PrivateKeyDer::from_pem_slice(folder.read("node.key")?.as_bytes());
    let key = key.map_err(|error| folder.content("node.key", error.to_string()))?;
    Ok((certificates(folder, "node.pem")?, key))
}

fn certificates(folder: &ClusterFolder, name: &str) -> Result<Chain, ClusterError> {
    let pem = folder.read(name)?;
    let chain: Result<Chain, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    chain.map_err(|error| folder.content(name, error.to_string()))
}

// === impl ManagerVerifier ===

impl ManagerVerifier {
    fn check(
        &self,
        own: &CertificateDer<'_>,
        shown: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let parsed = ParsedCertificate::try_from(own)?;
        let mut pinned = RootCertStore::empty();
        let (roots, cell) = match &self.anchor {
            Anchor::Authority { roots, cell } => (roots, Some(cell)),
            Anchor::Fingerprint(wanted) => {
                let authority = shown.iter().find(|shown| fingerprint(shown) == *wanted);
                let unknown = Error::InvalidCertificate(CertificateError::UnknownIssuer);
                pinned.add(authority.ok_or(unknown)?.clone().into_owned())?;
                (&pinned, None)
            }
        };
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, roots, shown, now, algorithms)?;
        let identity = NodeIdentity::of_certificate(&PeerCertificate::from_der(own));
        let is_manager = identity.as_ref().is_some_and(|identity| {
            identity.role == MemberRole::Manager && cell.is_none_or(|cell| *cell == identity.cell)
        });
        match is_manager {
            true => Ok(()),
            false => {
                let shown =
                    identity.map_or_else(|| "none of a node".to_owned(), |it| it.to_string());
                Err(Error::General(format!(
                    "the certificate is that of {shown}; expected a manager of this cell"
                )))
            }
        }
    }
}

impl ServerCertVerifier for ManagerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity, intermediates, now).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
