use std::time::Duration;
use tidegate_core::admission::{PriorityLimits, RetryBounds, Sharing};

/// What is to be simulated. Complete: a run draws on nothing else.
#[derive(Clone, Debug)]
pub struct AdmissionScenario {
    /// Where all chance comes from.
    pub seed: u64,
    /// The tracker's limits.
    pub limits: PriorityLimits,
    /// The tracker's policy.
    pub sharing: Sharing,
    /// New messages a second at a load of 1, by priority, most urgent first. They arrive independently of
    /// each other (Poisson), and do not slow down when refused.
    pub arrivals_per_s: [f64; 4],
    /// How the load changes, one phase after the other. Their sum is the duration of the run.
    pub phases: Vec<Phase>,
    /// How long an admitted message takes.
    pub service: ServiceTime,
    /// How often a refused client comes back, each time when it was told to. 0: it gives up at once.
    pub returns_max: u32,
    /// The bounds of what it is told.
    pub retry: RetryBounds,
    /// Whether each client is told a wait of its own around the advice, or all of them the advice itself.
    pub spread: bool,
}

/// A stretch of time with one load.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// How long it lasts.
    pub duration: Duration,
    /// What the arrivals are multiplied with, 0 or more.
    pub load: f64,
}

/// How long an admitted message takes.
#[derive(Clone, Copy, Debug)]
pub enum ServiceTime {
    /// Always this long.
    Fixed(Duration),
    /// Exponentially distributed, with this mean.
    Exponential(Duration),
}

// === impl AdmissionScenario ===

impl AdmissionScenario {
    /// These arrivals for this long, on the default limits, each admitted message a second on average, and
    /// nobody who comes back.
    #[must_use]
    pub fn steady(arrivals_per_s: [f64; 4], duration: Duration) -> Self {
        Self {
            seed: 1,
            limits: PriorityLimits::default(),
            sharing: Sharing::default(),
            arrivals_per_s,
            phases: vec![Phase { duration, load: 1.0 }],
            service: ServiceTime::Exponential(Duration::from_secs(1)),
            returns_max: 0,
            retry: RetryBounds::default(),
            spread: true,
        }
    }

    /// How long the run is, in virtual time.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.phases.iter().map(|phase| phase.duration).sum()
    }
}
