use std::time::Duration;
use tidegate::routing::{RouteError, Threshold};
use tidegate::{MessagePriority, Reason, Refusal};

/// A request or connection that a limit refused before any of it was sent to an upstream.
///
/// The one type of a refusal from the decision to the response: metrics and the decision log count its
/// [reason](Self::reason), the response shows its numbers and the retry advice.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{cause}")]
pub struct Rejection {
    /// The limit that refused, with its numbers.
    pub cause: RejectionCause,
    /// The time after which a retry may succeed.
    pub retry_after: Duration,
    /// The upstream whose queue refused, if one did.
    pub upstream: Option<Box<str>>,
}

/// The limit that refused, with its numbers.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RejectionCause {
    /// The gateway is at its global limit.
    #[error("the gateway is at its global limit")]
    GlobalLimit {
        /// The priority of the request.
        priority: MessagePriority,
        /// Requests that may be in flight.
        limit: u16,
    },
    /// The priority is at its own limit.
    #[error("this priority is at its limit")]
    PriorityLimit {
        /// The priority of the request.
        priority: MessagePriority,
        /// Requests of the priority that may be in flight.
        limit: u16,
    },
    /// The client's requests use its whole share.
    #[error("this client's requests hold as much as they may")]
    ClientShare {
        /// The priority of the request.
        priority: MessagePriority,
        /// Requests that the share allows.
        limit: u16,
    },
    /// Every upstream is busy.
    #[error("All workers are busy")]
    AllBusy {
        /// Upstreams that are up and busy.
        busy: usize,
        /// All upstreams of the model.
        total: usize,
        /// The threshold that most of them exceed.
        threshold: Option<Threshold>,
        /// The wait that the request would have had, if requests may wait.
        queue: Option<WaitForecast>,
    },
    /// No upstream is up, or none is ready.
    #[error("{}", RouteError::NoUpstreams { total: *total, starting: *starting })]
    NoUpstreams {
        /// All upstreams of the model.
        total: usize,
        /// Those of them that are starting.
        starting: usize,
    },
    /// A request of a higher priority, or one of another client, took its position in the queue.
    #[error("another request took its position in the queue")]
    Displaced,
    /// The request waited in the queue for as long as it may.
    #[error("its turn did not come within {0:?}")]
    QueueTimeout(Duration),
    /// The upstream's requests use its whole share of the gateway.
    #[error("its requests hold as much of the gateway as one upstream's may")]
    UpstreamShare,
    /// The gateway is at its connection limit.
    #[error("the gateway is at its connection limit")]
    ConnectionLimit,
}

/// The wait that a refused request would have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitForecast {
    /// The position in the queue: 1 for the next to be served.
    pub position: usize,
    /// The time, once a service time is known.
    pub wait: Option<Duration>,
}

/// The name of a [`RejectionCause`] in metrics, the decision log and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionReason {
    /// The gateway is at its global limit.
    GlobalLimit,
    /// The priority is at its own limit.
    PriorityLimit,
    /// Every upstream is busy.
    AllBusy,
    /// No upstream is up, or none is ready.
    NoUpstreams,
    /// Another request took its position in the queue.
    QueueDisplaced,
    /// The request waited in the queue for as long as it may.
    QueueTimeout,
    /// The upstream's requests use its whole share of the gateway.
    UpstreamShare,
    /// The client's requests use its whole share of the gateway.
    ClientShare,
    /// The gateway is at its connection limit. Counted by connection, and so in no series of requests.
    ConnectionLimit,
}

// === impl Rejection ===

impl Rejection {
    /// A refusal that can be retried after this time.
    #[must_use]
    pub const fn new(cause: RejectionCause, retry_after: Duration) -> Self {
        Self { cause, retry_after, upstream: None }
    }

    /// The refusal of a connection beyond the limit: connections come and go within a second.
    #[must_use]
    pub const fn connection_limit() -> Self {
        Self::new(RejectionCause::ConnectionLimit, Duration::from_secs(1))
    }

    /// The reason's name in metrics, the decision log and responses.
    #[must_use]
    pub const fn reason(&self) -> RejectionReason {
        match self.cause {
            RejectionCause::GlobalLimit { .. } => RejectionReason::GlobalLimit,
            RejectionCause::PriorityLimit { .. } => RejectionReason::PriorityLimit,
            RejectionCause::ClientShare { .. } => RejectionReason::ClientShare,
            RejectionCause::AllBusy { .. } => RejectionReason::AllBusy,
            RejectionCause::NoUpstreams { .. } => RejectionReason::NoUpstreams,
            RejectionCause::Displaced => RejectionReason::QueueDisplaced,
            RejectionCause::QueueTimeout(_) => RejectionReason::QueueTimeout,
            RejectionCause::UpstreamShare => RejectionReason::UpstreamShare,
            RejectionCause::ConnectionLimit => RejectionReason::ConnectionLimit,
        }
    }
}

// === impl RejectionCause ===

impl RejectionCause {
    /// The limit of the gateway's that refused, of which there are so many slots.
    #[must_use]
    pub const fn of_admission(refusal: Refusal, limit: u16) -> Self {
        let priority = refusal.priority;
        match refusal.reason {
            Reason::GlobalLimit => Self::GlobalLimit { priority, limit },
            Reason::PriorityLimit => Self::PriorityLimit { priority, limit },
        }
    }
}

// === impl RejectionReason ===

impl RejectionReason {
    /// The reasons for which a request is refused.
    pub const ALL: [Self; 8] = [
        Self::GlobalLimit,
        Self::PriorityLimit,
        Self::AllBusy,
        Self::NoUpstreams,
        Self::QueueDisplaced,
        Self::QueueTimeout,
        Self::UpstreamShare,
        Self::ClientShare,
    ];

    /// The name used in labels, logs and responses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GlobalLimit => "global_limit",
            Self::PriorityLimit => "priority_limit",
            Self::AllBusy => "all_busy",
            Self::NoUpstreams => "no_upstreams",
            Self::QueueDisplaced => "queue_displaced",
            Self::QueueTimeout => "queue_timeout",
            Self::UpstreamShare => "upstream_share",
            Self::ClientShare => "client_share",
            Self::ConnectionLimit => "connection_limit",
        }
    }

    /// The reason's index in an array.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}
