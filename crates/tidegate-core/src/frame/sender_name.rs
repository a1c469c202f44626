use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Name of a sender. Its batches are numbered under this name.
///
/// ```
/// use tidegate_core::frame::SenderName;
///
/// let name: SenderName = "eu-1/worker-17:8080".parse()?;
/// assert_eq!(name.as_str(), "eu-1/worker-17:8080");
/// assert!("two words".parse::<SenderName>().is_err());
/// # Ok::<(), tidegate_core::frame::SenderNameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SenderName(Arc<str>);

/// Error for text that is no sender name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderNameError {
    /// Text that was given, truncated.
    pub given: String,
}

// === impl SenderName ===

impl SenderName {
    /// Maximum length, in bytes.
    pub const BYTES_MAX: usize = 128;

    pub(super) const RULE: &'static str = "1 to 128 of A-Z a-z 0-9 . _ - : @ /";

    /// Text of the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Shared text of the name.
    #[must_use]
    pub fn to_arc(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl FromStr for SenderName {
    type Err = SenderNameError;

    fn from_str(given: &str) -> Result<Self, SenderNameError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:@/".contains(&byte);
        if (1..=Self::BYTES_MAX).contains(&given.len()) && given.bytes().all(allowed) {
            Ok(Self(Arc::from(given)))
        } else {
            Err(SenderNameError { given: given.chars().take(Self::BYTES_MAX).collect() })
        }
    }
}

impl fmt::Display for SenderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl SenderNameError ===

impl fmt::Display for SenderNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a sender name: use {}", self.given, SenderName::RULE)
    }
}

impl std::error::Error for SenderNameError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_a_safe_set() {
        for good in ["a", "worker-17", "eu.1/w_2:8080@x", &"n".repeat(128)] {
            assert_eq!(good.parse::<SenderName>().unwrap().as_str(), good);
        }
        for wrong in ["", "a b", "a\n", "ä", "a\"b", "{a}", &"n".repeat(129)] {
            assert!(wrong.parse::<SenderName>().is_err(), "{wrong}");
        }
        let long = "x".repeat(100_000).parse::<SenderName>().unwrap_err();
        assert_eq!(long.given.len(), 128);
    }
}
