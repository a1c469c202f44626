use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How much a message matters when not everything can be done.
///
/// The order is by urgency: `Critical < High < Normal < Low`, as the numbers of the wire have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum MessagePriority {
    /// Probes, leadership, failure detection, health. Never refused, and never an outside client's to claim.
    Critical = 0,
    /// Dispatch, commands, state sync.
    High = 1,
    /// Status updates and ordinary requests.
    Normal = 2,
    /// Metrics, telemetry, logs, batch work. Refused first.
    Low = 3,
}

/// A word that names no priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPriority {
    /// What was given.
    pub given: String,
}

// === impl MessagePriority ===

impl MessagePriority {
    /// Every priority, most urgent first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Normal, Self::Low];

    /// The lower-case name used in headers, configuration, labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }

    /// The priority of that name, in any case and with spaces around it; `None` when there is none.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim();
        Self::ALL.into_iter().find(|priority| name.eq_ignore_ascii_case(priority.name()))
    }

    /// The less urgent of what was claimed and what may be claimed.
    ///
    /// ```
    /// use tidegate_core::admission::MessagePriority::{Critical, High, Low};
    /// assert_eq!(Critical.capped_at(High), High);
    /// assert_eq!(Low.capped_at(High), Low);
    /// ```
    #[must_use]
    pub fn capped_at(self, most_urgent: Self) -> Self {
        self.max(most_urgent)
    }

    /// This priority's place in an array of four.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for MessagePriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MessagePriority {
    type Err = UnknownPriority;

    fn from_str(given: &str) -> Result<Self, UnknownPriority> {
        Self::from_name(given).ok_or_else(|| UnknownPriority { given: given.to_owned() })
    }
}

// === impl UnknownPriority ===

impl fmt::Display for UnknownPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no priority: use critical, high, normal or low", self.given)
    }
}

impl std::error::Error for UnknownPriority {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_in_any_case() {
        for priority in MessagePriority::ALL {
            assert_eq!(priority.name().parse(), Ok(priority));
            assert_eq!(
                MessagePriority::from_name(&format!(" {} ", priority.name().to_uppercase())),
                Some(priority)
            );
        }
        assert!(
            "urgent".parse::<MessagePriority>().unwrap_err().to_string().contains("\"urgent\"")
        );
    }

    #[test]
    fn a_cap_only_ever_makes_less_urgent() {
        for claimed in MessagePriority::ALL {
            for allowed in MessagePriority::ALL {
                let capped = claimed.capped_at(allowed);
                assert!(capped >= claimed && capped >= allowed);
                assert!(capped == claimed || capped == allowed);
            }
        }
    }
}
