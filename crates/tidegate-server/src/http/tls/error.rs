use std::fmt;
use std::path::PathBuf;

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
    /// A file has nothing of what is expected.
    #[error("{path} has nothing to use; give a PEM file with {expected}")]
    Empty {
        /// The file.
        path: PathBuf,
        /// The expected content.
        expected: &'static str,
    },
    /// A certificate that can't be read as one.
    #[error("the certificate in {path} is not valid X.509: {reason}; issue a new one")]
    Malformed {
        /// The certificate's file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// A certificate whose time is over.
    #[error("the certificate in {path} expired at {not_after}; renew it")]
    Expired {
        /// The certificate's file.
        path: PathBuf,
        /// The end of its validity.
        not_after: jiff::Timestamp,
    },
    /// A certificate whose time has not come.
    #[error(
        "the certificate in {path} is not valid before {not_before}; check the clock of this machine, or \
         issue a new one"
    )]
    NotYetValid {
        /// The certificate's file.
        path: PathBuf,
        /// The begin of its validity.
        not_before: jiff::Timestamp,
    },
    /// The certificate and the key don't make a pair.
    #[error(
        "the certificate in {cert} and the key in {key} can't be used together: {source}; give the key that the \
         certificate was issued for"
    )]
    Pair {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The cause.
        source: rustls::Error,
    },
    /// A private key that other users of the machine can read.
    #[error("every user can read the private key in {path} (mode {mode:04o}): chmod 640 {path}")]
    KeyExposed {
        /// The key's file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Authorities that can't verify client certificates.
    #[error("the authorities in {path} can't verify client certificates: {reason}")]
    Authorities {
        /// The bundle.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// The crypto provider lacks what is needed, or a client's certificate does not fit its key.
    #[error("TLS can't be set up: {0}")]
    Provider(#[from] rustls::Error),
    /// No certificate authority is known, so no server could be trusted.
    #[error(
        "no certificate authority found: install ca-certificates, or set {setting} to a PEM bundle"
    )]
    NoAuthorities {
        /// The setting or flag that names a bundle.
        setting: &'static str,
    },
}

/// Everything that is wrong with the TLS files of a process, at least one error.
#[derive(Debug)]
pub struct TlsSetupErrors(Vec<(Vec<&'static str>, TlsSetupError)>);

// === impl TlsSetupErrors ===

impl TlsSetupErrors {
    /// Errors with the use of their files, such as a port. An error of shared files is told once, with all uses.
    pub(crate) fn check(
        errors: impl IntoIterator<Item = (&'static str, TlsSetupError)>,
    ) -> Result<(), Self> {
        let mut all: Vec<(Vec<&'static str>, TlsSetupError)> = Vec::new();
        for (used_by, error) in errors {
            let text = error.to_string();
            match all.iter_mut().find(|(_, other)| other.to_string() == text) {
                Some((uses, _)) => uses.push(used_by),
                None => all.push((vec![used_by], error)),
            }
        }
        if all.is_empty() { Ok(()) } else { Err(Self(all)) }
    }

    /// Errors of files with one use.
    pub(crate) fn of(used_by: &'static str, errors: Vec<TlsSetupError>) -> Self {
        Self(errors.into_iter().map(|error| (vec![used_by], error)).collect())
    }

    pub(super) fn into_errors(self) -> impl Iterator<Item = (&'static str, TlsSetupError)> {
        let one = |(uses, error): (Vec<&'static str>, _)| Some((uses.first().copied()?, error));
        self.0.into_iter().filter_map(one)
    }

    /// The errors.
    pub fn iter(&self) -> impl Iterator<Item = &TlsSetupError> {
        self.0.iter().map(|(_, error)| error)
    }
}

impl fmt::Display for TlsSetupErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.len() == 1 { "error" } else { "errors" };
        write!(f, "{} {plural} in TLS files:", self.0.len())?;
        self.0.iter().try_for_each(|(uses, error)| write!(f, "\n  {}: {error}", uses.join(", ")))
    }
}

impl std::error::Error for TlsSetupErrors {}

/// The value, or nothing with its error on the list.
pub(super) fn noted<T>(
    result: Result<T, TlsSetupError>,
    errors: &mut Vec<TlsSetupError>,
) -> Option<T> {
    result.map_err(|error| errors.push(error)).ok()
}
