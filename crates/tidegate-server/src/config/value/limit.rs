use tidegate::limit::{LimitConfig, LimitGoal};
use tidegate::routing::UpstreamLimit;

/// The concurrency limit of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSetting {
    /// Found from the requests themselves.
    Auto,
    /// At most this many requests at once.
    Fixed(u32),
    /// No limit.
    Off,
}

// === impl LimitSetting ===

impl LimitSetting {
    /// The limit of an upstream, with this goal if it is found.
    #[must_use]
    pub fn of_upstream(self, goal: LimitGoal) -> UpstreamLimit {
        match self {
            Self::Auto => UpstreamLimit::Auto(LimitConfig { goal, ..LimitConfig::default() }),
            Self::Fixed(limit) => UpstreamLimit::Fixed(limit),
            Self::Off => UpstreamLimit::Off,
        }
    }
}
