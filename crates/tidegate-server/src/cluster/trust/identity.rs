use super::error::ClusterError;
use crate::config::CertificateName;
use crate::http::tls::PeerCertificate;
use std::fmt;
use tidegate::membership::MemberRole;

/// Longest name of a node or a cell, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Scheme of the URI that a node's certificate has.
const SCHEME: &str = "tidegate://";

/// Cell, role and name of a node, as its certificate has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeIdentity {
    /// The cell.
    pub cell: String,
    /// The role.
    pub role: MemberRole,
    /// Name, unique in the cell.
    pub node: String,
}

/// Nodes whose certificates a port accepts: those of one role in one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedNodes {
    /// The cell.
    pub cell: String,
    /// The role.
    pub role: MemberRole,
}

/// True for a name that a node or a cell may have: 1 … 64 letters, digits and `. _ -`.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

// === impl NodeIdentity ===

impl NodeIdentity {
    /// An identity of these names.
    ///
    /// # Errors
    ///
    /// When one of them is no name.
    pub fn new(cell: &str, role: MemberRole, node: &str) -> Result<Self, ClusterError> {
        for name in [cell, node] {
            if !is_name(name) {
                return Err(ClusterError::Name { given: name.chars().take(100).collect() });
            }
        }
        Ok(Self { cell: cell.to_owned(), role, node: node.to_owned() })
    }

    /// URI in the certificate.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("{SCHEME}{}/{}/{}", self.cell, self.role, self.node)
    }

    /// Identity of a URI; `None` for another one.
    #[must_use]
    pub fn of_uri(uri: &str) -> Option<Self> {
        let mut parts = uri.strip_prefix(SCHEME)?.split('/');
        let (cell, role, node) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        Self::new(cell, role, node).ok()
    }

    /// Identity in a certificate, whose signature the handshake has checked. `None` unless it has exactly one.
    #[must_use]
    pub fn of_certificate(certificate: &PeerCertificate) -> Option<Self> {
        let mut found = certificate.names().iter().filter_map(|name| match name {
            CertificateName::Uri(uri) => Self::of_uri(uri),
            _ => None,
        });
        let identity = found.next()?;
        found.next().is_none().then_some(identity)
    }
}

impl fmt::Display for NodeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of cell {}", self.role, self.node, self.cell)
    }
}

// === impl TrustedNodes ===

impl TrustedNodes {
    /// The node that a peer has proven to be, if this port accepts it.
    ///
    /// # Errors
    ///
    /// Why the peer is refused.
    pub fn check(&self, peer: Option<&PeerCertificate>) -> Result<NodeIdentity, String> {
        let expected = format!("expected a {} of cell {}", self.role, self.cell);
        let Some(peer) = peer else { return Err(format!("no certificate was shown; {expected}")) };
        match NodeIdentity::of_certificate(peer) {
            Some(found) if found.role == self.role && found.cell == self.cell => Ok(found),
            Some(found) => Err(format!("the certificate is that of {found}; {expected}")),
            None => Err(format!("the certificate is none of a node; {expected}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_survives_its_uri_and_nothing_else_is_one() {
        for role in MemberRole::ALL {
            let identity = NodeIdentity::new("eu-1", role, "db.3_x").unwrap();
            assert_eq!(NodeIdentity::of_uri(&identity.uri()), Some(identity));
        }
        for uri in [
            "tidegate://a/worker",
            "tidegate://a/worker/b/c",
            "tidegate://a/boss/b",
            "tidegate:///worker/b",
            "tidegate://a/worker/b%2f",
            "https://a/worker/b",
            "spiffe://a/worker/b",
        ] {
            assert_eq!(NodeIdentity::of_uri(uri), None, "{uri}");
        }
    }
}
