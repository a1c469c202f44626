use crate::config::CertificateName;
use rustls::server::ServerConnection;
use std::sync::Arc;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// The names of the certificate that a peer has shown and proven to own. In the extensions of its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCertificate(Arc<[CertificateName]>);

// === impl PeerCertificate ===

impl PeerCertificate {
    /// The certificate of a peer, after the handshake has checked it; `None` if the port asks for none.
    pub fn of(connection: &ServerConnection) -> Option<Self> {
        let own = connection.peer_certificates()?.first()?;
        Some(Self::from_der(own))
    }

    /// The names of a certificate. Entries that no client can have in the configuration are left out.
    pub fn from_der(der: &[u8]) -> Self {
        let mut names = vec![CertificateName::sha256(der)];
        let parsed = x509_cert::Certificate::from_der(der);
        let entries = parsed.and_then(|it| it.tbs_certificate.get::<SubjectAltName>());
        match entries {
            Ok(Some((_, SubjectAltName(entries)))) => {
                names.extend(entries.iter().filter_map(|entry| match entry {
                    GeneralName::DnsName(name) => CertificateName::dns(name.as_str()),
                    GeneralName::UniformResourceIdentifier(uri) => {
                        CertificateName::uri(uri.as_str())
                    }
                    _ => None,
                }));
            }
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(%error, "the names of a client certificate are unreadable")
            }
        }
        Self(names.into())
    }

    /// A certificate with these names.
    #[cfg(test)]
    pub fn with_names(names: Vec<CertificateName>) -> Self {
        Self(names.into())
    }

    /// The names.
    pub fn names(&self) -> &[CertificateName] {
        &self.0
    }
}
