/// The expected cost of one request at an upstream, estimated from its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Blocks of the KV cache, at least one.
    pub blocks: u64,
    /// Tokens to prefill, at least one.
    pub prefill_tokens: u64,
}

/// The conversion of a request's size to a [`Charge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChargeRule {
    /// Bytes of a request's body for one token. English in JSON has about four.
    pub bytes_per_token: u64,
    /// Tokens in one block.
    pub tokens_per_block: u64,
}

// === impl Charge ===

impl Charge {
    /// The least that any request costs.
    pub const LEAST: Self = Self { blocks: 1, prefill_tokens: 1 };

    /// Returns the charge of this many blocks and tokens, and of at least one.
    #[must_use]
    pub fn new(blocks: u64, prefill_tokens: u64) -> Self {
        Self { blocks: blocks.max(1), prefill_tokens: prefill_tokens.max(1) }
    }
}

// === impl ChargeRule ===

impl Default for ChargeRule {
    fn default() -> Self {
        Self { bytes_per_token: 4, tokens_per_block: 16 }
    }
}

impl ChargeRule {
    /// Returns the charge of a body of this many bytes, or the least if the length is unknown.
    ///
    /// The length is a header: the body is neither read nor tokenized.
    ///
    /// ```
    /// use tidegate_core::routing::{Charge, ChargeRule};
    /// assert_eq!(ChargeRule::default().of_bytes(Some(4096)), Charge::new(64, 1024));
    /// assert_eq!(ChargeRule::default().of_bytes(None), Charge::LEAST);
    /// ```
    #[must_use]
    pub fn of_bytes(self, bytes: Option<u64>) -> Charge {
        let tokens = bytes.unwrap_or(0).div_ceil(self.bytes_per_token.max(1));
        Charge::new(tokens.div_ceil(self.tokens_per_block.max(1)), tokens)
    }
}
