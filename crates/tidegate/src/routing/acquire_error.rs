use std::fmt;
use std::time::Duration;
use tidegate_core::routing::{Overload, RouteError};

/// The reason that a request got no upstream, although it could have waited. Nothing is reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireError {
    /// No upstream could take it, for another reason than load.
    Route(RouteError),
    /// All upstreams are busy, and it may not wait: the queue is full, or it would wait for too long.
    Busy {
        /// The load of the upstreams.
        overload: Overload,
        /// The position that it would have had: 1 for the next to be served.
        position: usize,
        /// The wait that it would have had, if that is known.
        wait: Option<Duration>,
    },
    /// A more urgent request, or one of another client, took its position in the queue.
    Displaced {
        /// The wait before a retry.
        retry_after: Duration,
    },
    /// No upstream had room within the time that it may wait.
    Expired {
        /// The time that it waited.
        waited: Duration,
        /// The wait before a retry.
        retry_after: Duration,
    },
}

// === impl AcquireError ===

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Route(error) => error.fmt(f),
            Self::Busy { overload, position, wait: Some(wait) } => {
                write!(f, "{overload}; at position {position} it would wait {wait:?}")
            }
            Self::Busy { overload, .. } => overload.fmt(f),
            Self::Displaced { .. } => f.write_str("another request took its position in the queue"),
            Self::Expired { waited, .. } => write!(f, "no upstream had room within {waited:?}"),
        }
    }
}

impl std::error::Error for AcquireError {}
