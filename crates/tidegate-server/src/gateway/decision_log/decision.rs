use crate::http::RejectionReason;
use std::time::{Duration, Instant};
use tidegate::MessagePriority;
use tidegate::decision_log::DecisionRecord;

/// The decision on one request.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The time of the decision, or of the arrival if no client recorded then.
    pub decided: Instant,
    /// The time for which the request held a slot; `None` when it never had one.
    pub took: Option<Duration>,
    /// The priority that was asked for.
    pub priority: MessagePriority,
    /// The verdict.
    pub verdict: Verdict,
    /// The client, if a token names it and a client recorded when the request came.
    pub client: Option<Box<str>>,
}

/// The verdict on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Admitted. Its success is not the gateway's decision.
    Admitted,
    /// Refused by a limit of the gateway.
    Rejected(RejectionReason),
}

// === impl Verdict ===

impl Verdict {
    /// Returns the name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admitted => DecisionRecord::ADMITTED,
            Self::Rejected(rejection) => rejection.name(),
        }
    }
}
