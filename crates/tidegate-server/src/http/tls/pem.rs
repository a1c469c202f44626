use super::error::TlsSetupError;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Bits of a file's mode with which every user of the machine can read it.
const READABLE_BY_ALL: u32 = 0o004;

/// The certificates of a PEM file, at least one.
pub fn certificates(
    path: &Path,
    expected: &'static str,
) -> Result<Vec<CertificateDer<'static>>, TlsSetupError> {
    let unreadable = |source| TlsSetupError::Pem { path: path.to_owned(), expected, source };
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(unreadable)?
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    match found.is_empty() {
        true => Err(TlsSetupError::Empty { path: path.to_owned(), expected }),
        false => Ok(found),
    }
}

/// The private key of a file that its owner and group alone can read.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsSetupError> {
    // Read first: a file without a key, such as a certificate, may be readable by all.
    let key = PrivateKeyDer::from_pem_file(path).map_err(|source| match source {
        PemError::NoItemsFound => {
            TlsSetupError::Empty { path: path.to_owned(), expected: "a private key" }
        }
        source => TlsSetupError::Pem { path: path.to_owned(), expected: "a private key", source },
    })?;
    let mode = std::fs::metadata(path).map(|metadata| metadata.permissions().mode() & 0o7777);
    match mode {
        Ok(mode) if mode & READABLE_BY_ALL != 0 => {
            Err(TlsSetupError::KeyExposed { path: path.to_owned(), mode })
        }
        _ => Ok(key),
    }
}
