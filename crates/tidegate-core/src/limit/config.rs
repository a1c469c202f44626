use std::fmt;
use std::str::FromStr;

/// Settings of a [`ConcurrencyLimit`](super::ConcurrencyLimit).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitConfig {
    /// The trade between latency and throughput.
    pub goal: LimitGoal,
    /// First limit, 1 … `max`; 4 by default. A start above the capacity learns its baseline from a queue.
    pub start: u32,
    /// Maximum limit, at least 1; 20,000 by default. A configured concurrency is a maximum.
    pub max: u32,
    /// Gateways that share the upstream, at least 1; 1 by default. Each changes only its part of the load, so
    /// its effect on latency is that many times smaller.
    pub gateways: u32,
}

/// Trade between latency and throughput: the least elasticity of throughput that is worth a higher limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitGoal {
    /// Elasticity 0.5: 10 % more concurrency must give 5 % more throughput.
    Latency,
    /// Elasticity 0.3.
    #[default]
    Balanced,
    /// Elasticity 0.15.
    Throughput,
}

/// The name of a [`LimitGoal`] that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownGoal(String);

// === impl LimitConfig ===

impl Default for LimitConfig {
    fn default() -> Self {
        Self { goal: LimitGoal::Balanced, start: 4, max: 20_000, gateways: 1 }
    }
}

// === impl LimitGoal ===

impl LimitGoal {
    /// Least elasticity of throughput, d ln X / d ln L, that is worth a higher limit.
    #[must_use]
    pub const fn elasticity(self) -> f64 {
        match self {
            Self::Latency => 0.5,
            Self::Balanced => 0.3,
            Self::Throughput => 0.15,
        }
    }
}

impl FromStr for LimitGoal {
    type Err = UnknownGoal;

    fn from_str(name: &str) -> Result<Self, UnknownGoal> {
        match name {
            "latency" => Ok(Self::Latency),
            "balanced" => Ok(Self::Balanced),
            "throughput" => Ok(Self::Throughput),
            _ => Err(UnknownGoal(name.to_owned())),
        }
    }
}

impl fmt::Display for LimitGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Latency => "latency",
            Self::Balanced => "balanced",
            Self::Throughput => "throughput",
        })
    }
}

// === impl UnknownGoal ===

impl fmt::Display for UnknownGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a goal: latency, balanced or throughput", self.0)
    }
}

impl std::error::Error for UnknownGoal {}
