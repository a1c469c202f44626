use std::fmt;
use std::str::FromStr;

/// Token of a sender, which says whose records it may send. No debug output has it.
///
/// ```
/// use tidegate_core::frame::SenderToken;
///
/// let token: SenderToken = "tg_0123456789abcdef".parse()?;
/// assert_eq!(format!("{token:?}"), "SenderToken(***)");
/// assert!("too-short".parse::<SenderToken>().is_err());
/// # Ok::<(), tidegate_core::frame::SenderTokenError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SenderToken(Box<str>);

/// Error for text that can't be a token. It does not have the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderTokenError;

// === impl SenderToken ===

impl SenderToken {
    pub(super) const RULE: &'static str = "a token: 16 to 512 visible ASCII characters";

    /// The token itself, for a frame or a comparison alone.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl FromStr for SenderToken {
    type Err = SenderTokenError;

    fn from_str(given: &str) -> Result<Self, SenderTokenError> {
        let is_token =
            (16..=512).contains(&given.len()) && given.bytes().all(|b| b.is_ascii_graphic());
        if is_token { Ok(Self(given.into())) } else { Err(SenderTokenError) }
    }
}

/// Omits the token.
impl fmt::Debug for SenderToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SenderToken(***)")
    }
}

// === impl SenderTokenError ===

impl fmt::Display for SenderTokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", SenderToken::RULE)
    }
}

impl std::error::Error for SenderTokenError {}
