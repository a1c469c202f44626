use super::LimitScenario;
use super::rivals::{Aimd, Gradient2, Vegas};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tidegate_core::limit::{ConcurrencyLimit, LimitConfig, Started, UpstreamOutcome};

/// Law that sets a concurrency limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitLaw {
    /// The law that ships: elasticity of throughput.
    Elastic,
    /// Queue estimate from the minimum latency, after Netflix's `VegasLimit`.
    Vegas,
    /// Short against long latency, after Netflix's `Gradient2Limit`.
    Gradient2,
    /// Additive increase, multiplicative decrease beyond a latency that an operator has to configure: here nine
    /// times the mean without load, twice the 99th percentile of exponential latencies.
    Aimd,
    /// The best static limit: the oracle.
    Static,
}

/// The name of a [`LimitLaw`] that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLimitLaw(String);

/// A limit under one of the laws.
#[derive(Debug)]
pub(super) enum Limiter {
    Elastic(Box<ConcurrencyLimit>),
    Vegas(Vegas),
    Gradient2(Gradient2),
    Aimd(Aimd),
    Static { best: Vec<(f64, u32)>, gateways: u32, limit: u32 },
}

// === impl LimitLaw ===

impl LimitLaw {
    /// All laws.
    pub const ALL: [Self; 5] =
        [Self::Elastic, Self::Vegas, Self::Gradient2, Self::Aimd, Self::Static];
}

impl fmt::Display for LimitLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Elastic => "elastic",
            Self::Vegas => "vegas",
            Self::Gradient2 => "gradient2",
            Self::Aimd => "aimd",
            Self::Static => "static",
        })
    }
}

impl FromStr for LimitLaw {
    type Err = UnknownLimitLaw;

    fn from_str(name: &str) -> Result<Self, UnknownLimitLaw> {
        let named = Self::ALL.into_iter().find(|law| law.to_string() == name);
        named.ok_or_else(|| UnknownLimitLaw(name.to_owned()))
    }
}

// === impl UnknownLimitLaw ===

impl fmt::Display for UnknownLimitLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a limit law: elastic, vegas, gradient2, aimd or static", self.0)
    }
}

impl std::error::Error for UnknownLimitLaw {}

// === impl Limiter ===

impl Limiter {
    pub(super) fn new(law: LimitLaw, scenario: &LimitScenario) -> Self {
        let gateways = scenario.gateways.max(1);
        match law {
            LimitLaw::Elastic => {
                let known = if scenario.gateways_known { gateways } else { 1 };
                let config =
                    LimitConfig { goal: scenario.goal, gateways: known, ..LimitConfig::default() };
                Self::Elastic(Box::new(ConcurrencyLimit::new(config)))
            }
            LimitLaw::Vegas => Self::Vegas(Vegas::default()),
            LimitLaw::Gradient2 => Self::Gradient2(Gradient2::default()),
            LimitLaw::Aimd => Self::Aimd(Aimd::new(9.0 * scenario.unloaded_s())),
            LimitLaw::Static => Self::Static { best: scenario.best.clone(), gateways, limit: 1 },
        }
    }

    pub(super) fn limit(&self) -> u32 {
        match self {
            Self::Elastic(limit) => limit.limit(),
            Self::Vegas(law) => law.limit(),
            Self::Gradient2(law) => law.limit(),
            Self::Aimd(law) => law.limit(),
            Self::Static { limit, .. } => *limit,
        }
    }

    pub(super) fn allows(&self, now: Duration, in_flight: u32) -> bool {
        match self {
            Self::Elastic(limit) => limit.allows(now),
            _ => in_flight < self.limit(),
        }
    }

    pub(super) fn on_start(&mut self, now: Duration) -> Option<Started> {
        let Self::Elastic(limit) = self else { return None };
        Some(limit.on_start(now))
    }

    pub(super) fn on_waiting(&mut self, now: Duration, is_awaited: bool) {
        if let Self::Elastic(limit) = self {
            limit.on_waiting(now, is_awaited);
        }
    }

    pub(super) fn on_end(
        &mut self,
        now: Duration,
        started: Option<Started>,
        latency_s: f64,
        in_flight: u32,
        outcome: UpstreamOutcome,
    ) {
        let is_ok = outcome == UpstreamOutcome::Success;
        match self {
            Self::Elastic(limit) => {
                if let Some(started) = started {
                    limit.on_end(now, started, outcome);
                }
            }
            Self::Vegas(law) => law.sample(latency_s, in_flight, is_ok),
            Self::Gradient2(law) => law.sample(now.as_secs_f64(), latency_s, in_flight),
            Self::Aimd(law) => law.sample(now.as_secs_f64(), latency_s, in_flight, is_ok),
            Self::Static { .. } => {}
        }
    }

    pub(super) fn tick(&mut self, now: Duration) {
        match self {
            Self::Elastic(limit) => limit.tick(now),
            Self::Static { best, gateways, limit } => {
                let begun = |(from_s, _): &&(f64, u32)| *from_s <= now.as_secs_f64();
                if let Some((_, all)) = best.iter().rfind(begun) {
                    *limit = (*all / *gateways).max(1);
                }
            }
            _ => {}
        }
    }
}
