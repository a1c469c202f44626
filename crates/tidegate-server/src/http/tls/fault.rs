use rustls::{AlertDescription, CertificateError, Error as RustlsError};
use std::error::Error;
use std::io;

/// The cause of a failed TLS connection that another attempt does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// The server's certificate comes from no trusted authority.
    UnknownIssuer,
    /// The server's certificate is for another host.
    OtherHost,
    /// The server's certificate can't be used for another reason, such as its time.
    BadCertificate,
    /// The server refuses the client without a certificate, or with the one that it has shown.
    ClientCertificate,
    /// The server does not speak TLS.
    NotTls,
}

// === impl TlsFault ===

impl TlsFault {
    /// The fault among an error and its causes, if there is one.
    #[must_use]
    pub fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            // The source of an I/O error is that of the error within, not this error itself.
            let within = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            let found = within
                .and_then(|within| within.downcast_ref())
                .or_else(|| error.downcast_ref::<RustlsError>());
            if let Some(error) = found {
                return Self::of_rustls(error);
            }
            next = within.map(|within| within as &(dyn Error + 'static)).or(error.source());
        }
        None
    }

    fn of_rustls(error: &RustlsError) -> Option<Self> {
        Some(match error {
            // A signature is wrong if another authority of the same name is trusted.
            RustlsError::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            ) => Self::UnknownIssuer,
            RustlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) => Self::OtherHost,
            RustlsError::InvalidCertificate(_) => Self::BadCertificate,
            RustlsError::AlertReceived(
                AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied,
            ) => Self::ClientCertificate,
            RustlsError::InvalidMessage(_) => Self::NotTls,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_found_within_io_errors() {
        let issuer = || RustlsError::InvalidCertificate(CertificateError::UnknownIssuer);
        let io = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        assert_eq!(TlsFault::of(&issuer()), Some(TlsFault::UnknownIssuer));
        assert_eq!(TlsFault::of(&io(issuer())), Some(TlsFault::UnknownIssuer));
        let nested = io::Error::other(io(issuer()));
        assert_eq!(TlsFault::of(&nested), Some(TlsFault::UnknownIssuer));
        let required = RustlsError::AlertReceived(AlertDescription::CertificateRequired);
        assert_eq!(TlsFault::of(&io(required)), Some(TlsFault::ClientCertificate));
        assert_eq!(TlsFault::of(&io(RustlsError::HandshakeNotComplete)), None);
        assert_eq!(TlsFault::of(&io::Error::from(io::ErrorKind::ConnectionReset)), None);
    }
}
