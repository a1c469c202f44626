use std::fmt;
use std::str::FromStr;

/// A mistake that is planted on purpose, to see that the checks find it. Each is one that gateways were seen
/// with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A limit is checked first and counted after: who comes right behind another is let in beside it.
    RacedLimit,
    /// Critical meets the global limit as everybody else does.
    ShedCritical,
    /// Now and then a request ends and keeps its place.
    LeakedPermit,
    /// The line of a worker has no bound.
    UnboundedLine,
    /// A worker that was busy once stays so.
    LatchedBusy,
    /// Low may use all of a worker's thresholds, and High leaves room for it.
    UpsideDown,
}

/// A word that names no flaw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFlaw {
    /// What was given.
    pub given: String,
}

// === impl Flaw ===

impl Flaw {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::RacedLimit,
        Self::ShedCritical,
        Self::LeakedPermit,
        Self::UnboundedLine,
        Self::LatchedBusy,
        Self::UpsideDown,
    ];

    /// Its name in flags.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RacedLimit => "raced_limit",
            Self::ShedCritical => "shed_critical",
            Self::LeakedPermit => "leaked_permit",
            Self::UnboundedLine => "unbounded_line",
            Self::LatchedBusy => "latched_busy",
            Self::UpsideDown => "upside_down",
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
        write!(f, "{:?} is no flaw: there are {names}", self.given)
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
