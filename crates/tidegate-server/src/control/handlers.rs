use tidegate::admission::MessageKind;

/// Every endpoint that the gateway answers itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// Is the process alive.
    HealthLive,
    /// May it be sent work.
    HealthReady,
    /// Prometheus series.
    Metrics,
    /// The typed snapshots, as JSON.
    Stats,
    /// When workers count as busy.
    BusyThreshold,
    /// What was used, and what it costs.
    Usage,
    /// What is decided of requests, as it is. The operators' port alone has it.
    Decisions,
}

// === impl Handler ===

impl Handler {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::HealthLive,
        Self::HealthReady,
        Self::Metrics,
        Self::Stats,
        Self::BusyThreshold,
        Self::Usage,
        Self::Decisions,
    ];

    /// Where it answers.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::HealthLive => "/health/live",
            Self::HealthReady => "/health/ready",
            Self::Metrics => "/metrics",
            Self::Stats => "/v1/stats",
            Self::BusyThreshold => "/busy_threshold",
            Self::Usage => "/v1/usage",
            Self::Decisions => "/v1/decisions",
        }
    }

    /// What its requests are, for classification.
    #[must_use]
    pub const fn kind(self) -> MessageKind {
        match self {
            Self::HealthLive | Self::HealthReady => MessageKind::HealthProbe,
            Self::Metrics => MessageKind::MetricsScrape,
            Self::Stats => MessageKind::StatsRead,
            Self::Usage => MessageKind::UsageRead,
            Self::Decisions => MessageKind::DecisionsRead,
            Self::BusyThreshold => MessageKind::ThresholdChange,
        }
    }

    /// Whether it tells more than that the gateway is there.
    #[must_use]
    pub const fn is_telling(self) -> bool {
        match self {
            Self::HealthLive | Self::HealthReady => false,
            Self::Metrics | Self::Stats | Self::BusyThreshold => true,
            Self::Usage | Self::Decisions => true,
        }
    }

    /// Whether only operators are answered: what a stream holds is not for whoever reaches the data port, where
    /// its path is an upstream's.
    #[must_use]
    pub const fn is_operators_alone(self) -> bool {
        matches!(self, Self::Decisions)
    }

    /// The handler of this path.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|handler| handler.path() == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::{MessageClass, MessagePriority};

    #[test]
    fn every_registered_handler_is_control_and_so_critical() {
        for handler in Handler::ALL {
            assert_eq!(Handler::of(handler.path()), Some(handler));
            assert_eq!(handler.kind().class(), MessageClass::Control, "{handler:?}");
            assert_eq!(handler.kind().class().priority(), MessagePriority::Critical, "{handler:?}");
        }
    }

    #[test]
    fn paths_match_whole_and_only_so() {
        for path in ["/", "/metrics/", "/health", "/v1/stats/x", "//metrics", "/METRICS", ""] {
            assert_eq!(Handler::of(path), None, "{path}");
        }
    }
}
