use super::TlsFlags;
use std::error::Error;
use tidegate_server::http::TlsFault;

/// Explains a TLS fault and names the flags that mend it; `None` for any other error.
pub fn tls_advice(error: &(dyn Error + 'static), flags: &TlsFlags) -> Option<String> {
    Some(match (TlsFault::of(error)?, &flags.ca) {
        (TlsFault::UnknownIssuer, None) => {
            "no authority of this system has issued its certificate; name its authority with --ca FILE"
                .to_owned()
        }
        (TlsFault::UnknownIssuer, Some(ca)) => format!(
            "no authority in {} has issued its certificate; name its authority with --ca FILE",
            ca.display()
        ),
        (TlsFault::OtherHost, _) => {
            format!("its certificate is for another host: {error}; use a host name of the certificate")
        }
        (TlsFault::BadCertificate, _) => {
            format!("its certificate can't be trusted: {error}; renew it at the node")
        }
        (TlsFault::ClientCertificate, _) if flags.cert.is_none() => CLIENT_CERTIFICATE.to_owned(),
        (TlsFault::ClientCertificate, _) => {
            "it refuses the certificate of --cert; show one of an authority that it trusts".to_owned()
        }
        (TlsFault::NotTls, _) => {
            "the port does not speak TLS; use http://, or leave out --tls, --ca and --cert".to_owned()
        }
    })
}

/// Advice to a client that showed no certificate.
pub const CLIENT_CERTIFICATE: &str =
    "it asks for a client certificate; show one with --cert FILE and --cert-key FILE";
