use std::fmt;
use std::time::Duration;
use tidegate_core::routing::Threshold;

/// Why no worker took a request. Nothing was charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteError {
    /// Workers are there, and all of them are busy.
    Overloaded(Overload),
    /// Nobody is there who could take it: none is known, or none has finished starting.
    NoWorkers {
        /// How many are known.
        total: usize,
        /// Of these, how many say that they are starting.
        starting: usize,
    },
    /// Everyone who could take it was excluded by the caller.
    Exhausted,
    /// The worker that was asked for by name does not serve this model.
    UnknownWorker,
}

/// All workers are busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overload {
    /// Workers that could take the request if they had room.
    pub busy: usize,
    /// All workers of the model, also those that are down or starting.
    pub total: usize,
    /// The threshold that most of them exceed. `None` when what is left is kept for higher priorities, or
    /// silence counts as busy.
    pub threshold: Option<Threshold>,
    /// When to come back, from how fast requests end; already spread, so that not all return together.
    pub retry_after: Duration,
}

// === impl RouteError ===

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overloaded(overload) => overload.fmt(f),
            Self::NoWorkers { total: 0, .. } => f.write_str("no workers are known for this model"),
            Self::NoWorkers { total, starting } => {
                write!(f, "no worker is ready: {starting} of {total} are still starting")
            }
            Self::Exhausted => f.write_str("every worker was tried"),
            Self::UnknownWorker => {
                f.write_str("the worker that the request names does not serve this model")
            }
        }
    }
}

impl std::error::Error for RouteError {}

// === impl Overload ===

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "all workers are busy: {} of {}", self.busy, self.total)?;
        if let Some(threshold) = self.threshold {
            write!(f, ", by their {threshold}")?;
        }
        write!(f, "; come back in {:?}", self.retry_after)
    }
}
