use std::fmt;

/// Cause of the last change of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitMove {
    /// The limit is the configured start.
    Start,
    /// Demand grew while the limit was not binding: twice the peak in flight.
    Calm,
    /// Latency stayed at its baseline: raised.
    Flat,
    /// Throughput followed the limit: raised.
    Raised,
    /// Throughput did not follow the limit: lowered.
    Lowered,
    /// Latency was far above its baseline: halved.
    Overload,
    /// Requests timed out or failed: halved.
    Failures,
    /// The upstream refused at this concurrency: set one below it.
    Refused,
    /// The upstream reported its running and waiting requests: set to what it runs.
    Reported,
    /// The upstream does not respond: only probes are sent.
    BreakerOpen,
    /// A probe succeeded: half of the limit before the breaker opened.
    BreakerClosed,
}

// === impl LimitMove ===

impl LimitMove {
    /// Label in metrics and logs.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Calm => "calm",
            Self::Flat => "flat",
            Self::Raised => "raised",
            Self::Lowered => "lowered",
            Self::Overload => "overload",
            Self::Failures => "failures",
            Self::Refused => "refused",
            Self::Reported => "reported",
            Self::BreakerOpen => "breaker_open",
            Self::BreakerClosed => "breaker_closed",
        }
    }

    /// Returns `true` if the limit was cut without an experiment. Responses to requests from before the cut say
    /// nothing about the limit after it.
    pub(super) const fn is_cut(self) -> bool {
        matches!(self, Self::Overload | Self::Failures | Self::Refused)
    }
}

impl fmt::Display for LimitMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}
