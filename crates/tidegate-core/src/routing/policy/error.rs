use crate::routing::thresholds::Threshold;
use std::fmt;
use std::time::Duration;

/// The reason that no upstream took a request. Nothing is reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteError {
    /// All upstreams are busy.
    Overloaded(Overload),
    /// No upstream can take it: none is known, or none has finished starting.
    NoUpstreams {
        /// Upstreams that are known.
        total: usize,
        /// Upstreams of these that report that they are starting.
        starting: usize,
    },
    /// The caller excluded every upstream that could take it.
    Exhausted,
    /// The upstream that the request names does not serve this model.
    UnknownUpstream,
}

/// A refusal because all upstreams are busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overload {
    /// Upstreams that could take the request if they had room.
    pub busy: usize,
    /// All upstreams of the model, also those that are down or starting.
    pub total: usize,
    /// The threshold that most of them exceed. `None` when the rest is reserved for higher priorities, or silence
    /// counts as busy.
    pub threshold: Option<Threshold>,
    /// The wait before a retry, from the rate at which requests end; spread, so that clients do not return
    /// together.
    pub retry_after: Duration,
}

// === impl RouteError ===

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overloaded(overload) => overload.fmt(f),
            Self::NoUpstreams { total: 0, .. } => {
                f.write_str("no upstreams are known for this model")
            }
            Self::NoUpstreams { total, starting } => {
                write!(f, "no upstream is ready: {starting} of {total} are still starting")
            }
            Self::Exhausted => f.write_str("every upstream was tried"),
            Self::UnknownUpstream => {
                f.write_str("the upstream that the request names does not serve this model")
            }
        }
    }
}

impl std::error::Error for RouteError {}

// === impl Overload ===

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "all upstreams are busy: {} of {}", self.busy, self.total)?;
        if let Some(threshold) = self.threshold {
            write!(f, ", by their {threshold}")?;
        }
        write!(f, "; come back in {:?}", self.retry_after)
    }
}
