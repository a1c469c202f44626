use serde::Serialize;
use std::fmt;

/// Load state of a tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadState {
    /// Every priority would be admitted.
    Healthy,
    /// Low is at its limit and is refused; the others are admitted.
    Pressured,
    /// Normal is at its limit too, or the global limit is reached.
    Overloaded,
}

// === impl LoadState ===

impl LoadState {
    /// Every state, least loaded first.
    pub const ALL: [Self; 3] = [Self::Healthy, Self::Pressured, Self::Overloaded];

    pub(super) const fn from_admission(low_admitted: bool, normal_admitted: bool) -> Self {
        match (low_admitted, normal_admitted) {
            (_, false) => Self::Overloaded,
            (false, true) => Self::Pressured,
            (true, true) => Self::Healthy,
        }
    }

    /// Name in responses, labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Pressured => "pressured",
            Self::Overloaded => "overloaded",
        }
    }
}

impl fmt::Display for LoadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
