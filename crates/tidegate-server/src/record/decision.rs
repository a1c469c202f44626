use crate::proxy::Rejection;
use std::time::{Duration, Instant};
use tidegate::MessagePriority;

/// What was decided of one request.
#[derive(Clone, Debug)]
pub struct Decision {
    /// When it was decided, or when it came if nobody recorded then.
    pub decided: Instant,
    /// How long it held its place; `None` when it never had one.
    pub took: Option<Duration>,
    /// What it asked to be admitted as.
    pub priority: MessagePriority,
    /// What became of it.
    pub verdict: Verdict,
    /// Who sent it, when that is known by a token, and was asked for when it came.
    pub client: Option<Box<str>>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was let through. Whether it then succeeded is not the gateway's decision.
    Admitted,
    /// A limit of ours refused it.
    Rejected(Rejection),
}

// === impl Verdict ===

impl Verdict {
    /// The name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Rejected(rejection) => rejection.name(),
        }
    }
}
