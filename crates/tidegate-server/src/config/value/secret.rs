use ring::digest::{SHA256, digest};
use std::fmt;

/// SHA-256 of a token: the only form in which a process keeps one.
///
/// Tokens are found by their digest. The time of that search depends on the digest of a guess, which a guesser
/// can't steer towards a known one without inverting SHA-256, so it tells nothing about the token.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenDigest([u8; 32]);

/// The key of an upstream, in its `Authorization` header. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Box<str>);

// === impl TokenDigest ===

impl TokenDigest {
    /// The digest of a token.
    #[must_use]
    pub fn of(token: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, token).as_ref());
        Self(bytes)
    }

    /// The digest that 64 hexadecimal digits say.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()?;
        }
        Some(Self(bytes))
    }

    /// The digest in 64 hexadecimal digits, as `token_sha256` has it.
    #[must_use]
    pub fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Omits the digest: that of a weak token can be searched for.
impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest(***)")
    }
}

// === impl ApiKey ===

impl ApiKey {
    pub(crate) fn new(key: &str) -> Self {
        Self(key.into())
    }

    /// The key itself, for a request to its upstream alone.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Omits the key.
impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_the_standard_and_reads_back() {
        // FIPS 180-2, appendix B.1.
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let digest = TokenDigest::of(b"abc");
        assert_eq!(digest.to_hex(), hex);
        assert_eq!(TokenDigest::from_hex(&hex.to_uppercase()), Some(digest));
        for wrong in ["", &hex[1..], &format!("{hex}0"), &hex.replace('b', "g"), "\u{e9}"] {
            assert_eq!(TokenDigest::from_hex(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn nothing_is_printed() {
        let shown = format!("{:?} {:?}", TokenDigest::of(b"abc"), ApiKey::new("sk-secret"));
        assert!(!shown.contains("ba78") && !shown.contains("secret"), "{shown}");
    }
}
