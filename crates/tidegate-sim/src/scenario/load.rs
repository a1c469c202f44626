use serde::{Deserialize, Serialize};

/// The spacing of arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// Independently of each other.
    #[default]
    Poisson,
    /// Always as far from each other.
    Even,
}

/// A stretch of time with one load.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// The name in expectations and reports.
    pub name: String,
    /// The share of the duration, relative to the other phases.
    #[serde(default = "one")]
    pub part: f64,
    /// The factor of all rates, 0 or more.
    #[serde(default = "one")]
    pub load: f64,
}

/// A phase, and when it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseSpan {
    /// The name.
    pub name: String,
    /// The begin, in seconds from the start.
    pub from_s: f64,
    /// The end.
    pub until_s: f64,
    /// The factor of all rates.
    pub load: f64,
}

/// A periodic or random change of the load; a factor of the phase's load.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Wave {
    /// Half of the time high, half of the time low.
    Square {
        /// The factor in the first half.
        high: f64,
        /// The factor in the second half.
        low: f64,
        /// Both halves, in seconds.
        period_s: f64,
    },
    /// Rises from nothing and falls back at once.
    Sawtooth {
        /// The factor at the top.
        peak: f64,
        /// From one fall to the next, in seconds.
        period_s: f64,
    },
    /// Bursts and pauses of random length.
    Bursts {
        /// The factor in a burst.
        high: f64,
        /// The factor in a pause.
        low: f64,
        /// The mean length of either, exponentially distributed, in seconds.
        mean_s: f64,
    },
}

// === impl PhaseSpan ===

impl PhaseSpan {
    pub(super) fn of(phases: &[Phase], duration_s: f64) -> Vec<Self> {
        if phases.is_empty() {
            let name = "all".to_owned();
            return vec![Self { name, from_s: 0.0, until_s: duration_s, load: 1.0 }];
        }
        let parts: f64 = phases.iter().map(|phase| phase.part).sum();
        let mut begun = 0.0;
        let span = |phase: &Phase| {
            let from_s = begun / parts * duration_s;
            begun += phase.part;
            let until_s = begun / parts * duration_s;
            Self { name: phase.name.clone(), from_s, until_s, load: phase.load }
        };
        phases.iter().map(span).collect()
    }
}

// === impl Wave ===

impl Wave {
    /// The greatest factor that it has.
    #[must_use]
    pub fn peak(&self) -> f64 {
        match *self {
            Self::Square { high, low, .. } | Self::Bursts { high, low, .. } => high.max(low),
            Self::Sawtooth { peak, .. } => peak,
        }
    }
}

fn one() -> f64 {
    1.0
}
