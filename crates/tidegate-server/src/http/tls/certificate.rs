use super::error::TlsSetupError;
use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use std::path::Path;
use std::time::Duration;
use x509_cert::der::Decode as _;

/// The time in which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

/// The common validity of a chain: an expired intermediate certificate ends it too.
pub fn validity(path: &Path, chain: &[CertificateDer<'_>]) -> Result<Validity, TlsSetupError> {
    let malformed = |reason: String| TlsSetupError::Malformed { path: path.to_owned(), reason };
    let mut common = Validity { not_before: Timestamp::MIN, not_after: Timestamp::MAX };
    for certificate in chain {
        let one = Validity::of(certificate).map_err(malformed)?;
        common.not_before = common.not_before.max(one.not_before);
        common.not_after = common.not_after.min(one.not_after);
    }
    Ok(common)
}

// === impl Validity ===

impl Validity {
    fn of(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        let parsed =
            x509_cert::Certificate::from_der(certificate).map_err(|error| error.to_string())?;
        let validity = parsed.tbs_certificate.validity;
        let at = |time: Duration| {
            let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
            // Beyond the year 9999 is for ever.
            Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
        };
        Ok(Self {
            not_before: at(validity.not_before.to_unix_duration()),
            not_after: at(validity.not_after.to_unix_duration()),
        })
    }

    /// The error about a certificate that is not valid now.
    pub fn check(self, path: &Path, now: Timestamp) -> Result<(), TlsSetupError> {
        let path = path.to_owned();
        match self {
            Self { not_after, .. } if now > not_after => {
                Err(TlsSetupError::Expired { path, not_after })
            }
            Self { not_before, .. } if now < not_before => {
                Err(TlsSetupError::NotYetValid { path, not_before })
            }
            _ => Ok(()),
        }
    }
}
