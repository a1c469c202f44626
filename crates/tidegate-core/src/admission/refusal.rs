use super::MessagePriority;
use serde::Serialize;
use std::fmt;

/// Limit that caused a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The global limit over all priorities is reached.
    GlobalLimit,
    /// The limit of the message's own priority is reached.
    PriorityLimit,
}

/// Refusal of a message. Nothing was counted as in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Priority of the message.
    pub priority: MessagePriority,
    /// Limit that was reached.
    pub reason: Reason,
}

// === impl Reason ===

impl Reason {
    /// Every reason, in the order of the checks.
    pub const ALL: [Self; 2] = [Self::GlobalLimit, Self::PriorityLimit];

    /// Name in responses, labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GlobalLimit => "global_limit",
            Self::PriorityLimit => "priority_limit",
        }
    }

    /// Index into arrays over all reasons.
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
