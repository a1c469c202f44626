use std::fmt;
use std::str::FromStr;
use tidegate_core::capacity::Placement;

/// The policy that brings tasks to executors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The manager of Tidegate, with this placement.
    Ours(Placement),
    /// The workers of the seed, each with its own loop.
    Seed,
}

/// An unknown placement policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy {
    given: String,
}

// === impl Policy ===

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(placement) => placement.fmt(f),
            Self::Seed => f.write_str("seed"),
        }
    }
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(word: &str) -> Result<Self, UnknownPolicy> {
        match word {
            "seed" => Ok(Self::Seed),
            other => match other.parse() {
                Ok(placement) => Ok(Self::Ours(placement)),
                Err(_) => Err(UnknownPolicy { given: other.to_owned() }),
            },
        }
    }
}

// === impl UnknownPolicy ===

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Placement::ALL.map(Placement::name).join(", ");
        write!(f, "unknown placement {:?}: known placements are {names} and seed", self.given)
    }
}

impl std::error::Error for UnknownPolicy {}
