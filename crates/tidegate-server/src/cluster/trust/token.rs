use super::hex::{from_hex, to_hex};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use std::fmt;
use std::str::FromStr;

/// Random bytes of a token.
pub const SECRET_BYTES: usize = 16;
/// Bytes of the digest of the authority's certificate.
pub const FINGERPRINT_BYTES: usize = 32;

/// Token with which a node joins: a secret, and the SHA-256 of the certificate of the authority, by which the node
/// knows that it talks to the right cluster before it shows the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    pub(in crate::cluster) secret: [u8; SECRET_BYTES],
    pub(in crate::cluster) authority: [u8; FINGERPRINT_BYTES],
}

/// SHA-256 of a certificate.
pub fn fingerprint(der: &[u8]) -> [u8; FINGERPRINT_BYTES] {
    let mut bytes = [0; FINGERPRINT_BYTES];
    bytes.copy_from_slice(digest(&SHA256, der).as_ref());
    bytes
}

// === impl JoinToken ===

impl JoinToken {
    /// A token of this authority with a new secret.
    ///
    /// # Errors
    ///
    /// When the system gives no random bytes.
    pub fn new(authority: [u8; FINGERPRINT_BYTES]) -> Result<Self, ring::error::Unspecified> {
        let mut secret = [0; SECRET_BYTES];
        SystemRandom::new().fill(&mut secret)?;
        Ok(Self { secret, authority })
    }
}

impl fmt::Display for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(&self.secret))?;
        f.write_str(&to_hex(&self.authority))
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinToken")
    }
}

impl FromStr for JoinToken {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (secret, authority) = text.split_at_checked(2 * SECRET_BYTES).ok_or(())?;
        let (secret, authority) = (from_hex(secret).ok_or(())?, from_hex(authority).ok_or(())?);
        Ok(Self { secret, authority })
    }
}
