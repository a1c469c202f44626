use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Priority of a message under overload.
///
/// Ordered by urgency: `Critical < High < Normal < Low`, as the numbers on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum MessagePriority {
    /// Probes, leadership, failure detection, health. Never refused, and not available to outside clients.
    Critical = 0,
    /// Dispatch, commands, state sync.
    High = 1,
    /// Status updates and ordinary requests.
    Normal = 2,
    /// Metrics, telemetry, logs, batch work. Refused first.
    Low = 3,
}

/// Error for an unknown priority name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPriority {
    /// Name that was given.
    pub given: String,
}

// === impl MessagePriority ===

impl MessagePriority {
    /// Every priority, most urgent first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Normal, Self::Low];

    /// Lower-case name in headers, configuration, labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }

    /// Priority of a name, ignoring case and surrounding spaces; `None` if unknown.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim();
        Self::ALL.into_iter().find(|priority| name.eq_ignore_ascii_case(priority.name()))
    }

    /// The less urgent of a claimed priority and the allowed maximum.
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

    /// Index into arrays of four.
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
