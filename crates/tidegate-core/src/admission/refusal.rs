use super::MessagePriority;
use serde::Serialize;
use std::fmt;

/// Which limit refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// All priorities together are at the global limit.
    GlobalLimit,
    /// The message's own priority is at its limit.
    PriorityLimit,
}

/// A message was not admitted. Nothing was counted as in flight, and nothing has to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The priority that was asked for.
    pub priority: MessagePriority,
    /// The limit that was reached.
    pub reason: Reason,
}

// === impl Reason ===

impl Reason {
    /// Every reason, in the order in which the limits are checked.
    pub const ALL: [Self; 2] = [Self::GlobalLimit, Self::PriorityLimit];

    /// The name used in answers, labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GlobalLimit => "global_limit",
            Self::PriorityLimit => "priority_limit",
        }
    }

    /// This reason's place in an array.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl Refusal ===

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::GlobalLimit => {
                write!(f, "{} refused: the global limit is reached", self.priority)
            }
            Reason::PriorityLimit => {
                write!(f, "{0} refused: the limit of {0} is reached", self.priority)
            }
        }
    }
}

impl std::error::Error for Refusal {}
