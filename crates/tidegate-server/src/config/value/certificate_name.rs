use super::secret::TokenDigest;
use std::fmt;
use std::str::FromStr;

/// The longest DNS name, and the longest URI that a SPIFFE identity may have.
const DNS_BYTES_MAX: usize = 253;
const URI_BYTES_MAX: usize = 2_048;

/// A name that a client certificate has: one of its subject alternative names, or its own digest.
///
/// Names are compared whole. The common name is none of them: authorities check it less, and several certificates
/// may share it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CertificateName {
    /// A DNS name in lower case, without wildcards.
    Dns(Box<str>),
    /// A URI, as it is written in the certificate.
    Uri(Box<str>),
    /// SHA-256 of the certificate in DER, in lower-case hexadecimal digits.
    Sha256(Box<str>),
}

/// A text that is no name of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotACertificateName;

// === impl CertificateName ===

impl CertificateName {
    /// The name of a DNS entry; `None` for a wildcard and for what is no host name.
    #[must_use]
    pub fn dns(name: &str) -> Option<Self> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        let is_name = (1..=DNS_BYTES_MAX).contains(&name.len()) && name.bytes().all(fits);
        is_name.then(|| Self::Dns(name.to_ascii_lowercase().into()))
    }

    /// The name of a URI entry; `None` for what has no scheme.
    #[must_use]
    pub fn uri(uri: &str) -> Option<Self> {
        let has_scheme = uri.split_once(':').is_some_and(|(scheme, rest)| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && !rest.is_empty()
        });
        let is_uri = uri.len() <= URI_BYTES_MAX && uri.bytes().all(|b| b.is_ascii_graphic());
        (has_scheme && is_uri).then(|| Self::Uri(uri.into()))
    }

    /// The name of the certificate with these bytes in DER.
    #[must_use]
    pub fn sha256(der: &[u8]) -> Self {
        Self::Sha256(TokenDigest::of(der).to_hex().into())
    }
}

impl FromStr for CertificateName {
    type Err = NotACertificateName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = text.split_once(':').ok_or(NotACertificateName)?;
        let name = match kind.to_ascii_lowercase().as_str() {
            "dns" => Self::dns(name),
            "uri" => Self::uri(name),
            // As openssl prints it: with colons between the bytes.
            "sha256" => TokenDigest::from_hex(&name.replace(':', ""))
                .map(|digest| Self::Sha256(digest.to_hex().into())),
            _ => None,
        };
        name.ok_or(NotACertificateName)
    }
}

impl fmt::Display for CertificateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(name) => write!(f, "DNS:{name}"),
            Self::Uri(uri) => write!(f, "URI:{uri}"),
            Self::Sha256(digits) => write!(f, "SHA256:{digits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_openssl_prints_them() {
        let digits = "ab".repeat(32);
        let colons = vec!["AB"; 32].join(":");
        for (text, name) in [
            ("DNS:Batch.Example.com", "DNS:batch.example.com".to_owned()),
            ("dns:batch", "DNS:batch".to_owned()),
            ("URI:spiffe://prod/ns/a", "URI:spiffe://prod/ns/a".to_owned()),
            (&format!("SHA256:{digits}"), format!("SHA256:{digits}")),
            (&format!("sha256:{colons}"), format!("SHA256:{digits}")),
        ] {
            assert_eq!(text.parse::<CertificateName>().unwrap().to_string(), name, "{text}");
        }
        for text in
            ["", "batch", "DNS:", "DNS:*.a.com", "DNS:a b", "URI:a", "URI::x", "CN:a", "SHA256:ab"]
        {
            assert_eq!(text.parse::<CertificateName>(), Err(NotACertificateName), "{text}");
        }
    }
}
