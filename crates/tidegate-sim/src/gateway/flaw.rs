use std::fmt;
use std::str::FromStr;

/// A defect that is planted to test the checks. Each was seen in a real gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A limit is checked before it is counted: of two requests at once both are admitted.
    RacedLimit,
    /// The global limit refuses Critical.
    ShedCritical,
    /// Some requests end and keep their permit.
    LeakedPermit,
    /// The queue of the pool has no bound.
    UnboundedQueue,
    /// A busy upstream stays busy for ever.
    LatchedBusy,
    /// The queue serves Low first and High last.
    UpsideDown,
    /// A request whose client left stays in the queue.
    GhostWaiter,
    /// The queue is not served when a request ends.
    LostWakeup,
}

/// An unknown flaw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFlaw {
    /// The given name.
    pub given: String,
}

// === impl Flaw ===

impl Flaw {
    /// Every flaw.
    pub const ALL: [Self; 8] = [
        Self::RacedLimit,
        Self::ShedCritical,
        Self::LeakedPermit,
        Self::UnboundedQueue,
        Self::LatchedBusy,
        Self::UpsideDown,
        Self::GhostWaiter,
        Self::LostWakeup,
    ];

    /// Returns the name in flags.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RacedLimit => "raced_limit",
            Self::ShedCritical => "shed_critical",
            Self::LeakedPermit => "leaked_permit",
            Self::UnboundedQueue => "unbounded_queue",
            Self::LatchedBusy => "latched_busy",
            Self::UpsideDown => "upside_down",
            Self::GhostWaiter => "ghost_waiter",
            Self::LostWakeup => "lost_wakeup",
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Flaw {
    type Err = UnknownFlaw;

    fn from_str(given: &str) -> Result<Self, UnknownFlaw> {
        let found = Self::ALL.into_iter().find(|flaw| flaw.name() == given);
        found.ok_or_else(|| UnknownFlaw { given: given.to_owned() })
    }
}

// === impl UnknownFlaw ===

impl fmt::Display for UnknownFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Flaw::ALL.map(Flaw::name).join(", ");
        write!(f, "unknown flaw {:?}: known flaws are {names}", self.given)
    }
}

impl std::error::Error for UnknownFlaw {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flaw_is_read_by_its_name() {
        for flaw in Flaw::ALL {
            assert_eq!(flaw.to_string().parse(), Ok(flaw));
        }
        assert!("raced".parse::<Flaw>().unwrap_err().to_string().contains("raced_limit"));
    }
}
