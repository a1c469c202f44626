use serde::Serialize;
use std::fmt;

/// Reason why a batch was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RejectReason {
    /// Invalid length of a frame. The connection is closed.
    BadFraming,
    /// Unknown protocol version. The connection is closed.
    UnknownVersion,
    /// Unknown or unexpected kind of frame.
    UnknownKind,
    /// Unknown class, or one above that of a batch.
    ClassRefused,
    /// Invalid CBOR or an invalid record. No record of the batch was accepted.
    Malformed,
    /// More records or names than the receiver's hello allows.
    TooLarge,
    /// A batch before the hello.
    HelloExpected,
    /// A token is missing where one is needed, or unknown. The connection is closed.
    Unauthorized,
    /// A record of a tenant that the sender's client does not own. No record of the batch was accepted.
    TenantRefused,
    /// A newer connection serves this sender. This one is closed.
    SenderTaken,
    /// The sender's name belongs to another client. The connection is closed.
    SenderOwned,
    /// A number that skips more than the sender can have under way.
    SeqJump,
    /// A sum of the tenant's meter would be beyond what a decimal number holds.
    SumOverflow,
    /// More tenants and meters than the receiver lets the sender, or all senders, begin.
    TooManySeries,
    /// More than 1,024 ahead of the settled number, or more batches in flight than the hello allows.
    TooFar,
    /// The receiver is overloaded.
    Overloaded,
    /// A single update, although the signal asked for whole batches.
    Unbatched,
    /// The store is unavailable.
    StoreUnavailable,
    /// The receiver is shutting down.
    ShuttingDown,
    /// A reason unknown to this version: [`Reject::retry_after_ms`](super::Reject::retry_after_ms) still
    /// applies.
    Other,
}

// === impl RejectReason ===

impl RejectReason {
    /// Every reason.
    pub const ALL: [Self; 20] = [
        Self::BadFraming,
        Self::UnknownVersion,
        Self::UnknownKind,
        Self::ClassRefused,
        Self::Malformed,
        Self::TooLarge,
        Self::HelloExpected,
        Self::Unauthorized,
        Self::TenantRefused,
        Self::SenderTaken,
        Self::SenderOwned,
        Self::SeqJump,
        Self::SumOverflow,
        Self::TooManySeries,
        Self::TooFar,
        Self::Overloaded,
        Self::Unbatched,
        Self::StoreUnavailable,
        Self::ShuttingDown,
        Self::Other,
    ];

    /// Name in frames, labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BadFraming => "bad_framing",
            Self::UnknownVersion => "unknown_version",
            Self::UnknownKind => "unknown_kind",
            Self::ClassRefused => "class_refused",
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::HelloExpected => "hello_expected",
            Self::Unauthorized => "unauthorized",
            Self::TenantRefused => "tenant_refused",
            Self::SenderTaken => "sender_taken",
            Self::SenderOwned => "sender_owned",
            Self::SeqJump => "seq_jump",
            Self::SumOverflow => "sum_overflow",
            Self::TooManySeries => "too_many_series",
            Self::TooFar => "too_far",
            Self::Overloaded => "overloaded",
            Self::Unbatched => "unbatched",
            Self::StoreUnavailable => "store_unavailable",
            Self::ShuttingDown => "shutting_down",
            Self::Other => "other",
        }
    }

    /// Reason of a name in a frame; [`Other`](Self::Other) if unknown.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|reason| reason.name() == name).unwrap_or(Self::Other)
    }

    /// Index into arrays over all reasons.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
