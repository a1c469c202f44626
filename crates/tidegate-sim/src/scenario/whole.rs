use super::{
    Class, ExecutorsWorld, Expectation, Fault, GatewayWorld, Phase, PhaseSpan, PipelineWorld,
    Spacing, Upstreams, Wave,
};
use serde::{Deserialize, Serialize};

/// A scenario, as its file has it. Unknown keys are refused.
///
/// Exactly one of `[upstreams]` (a gateway in front of upstreams, with `[gateway]` where it is not as by default),
/// `[pipeline]` and `[executors]` says what the load is for.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The name: the file name without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// The description, in a line.
    pub about: String,
    /// The seed of all random numbers.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// The duration in seconds.
    pub duration_s: f64,
    /// The begin of each phase that is not judged, in seconds.
    #[serde(default)]
    pub settle_s: f64,
    /// Its short form, which tests run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<Short>,
    /// The spacing of arrivals.
    #[serde(default)]
    pub arrivals: Spacing,
    /// Stretches of time with one load each; without any there is one, called `all`, with a load of 1.
    #[serde(default, rename = "phase", skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// The wave of the load within a phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<Wave>,
    /// The gateway, where it is not as by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayWorld>,
    /// The upstreams behind the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstreams: Option<Upstreams>,
    /// The classes of requests to the gateway.
    #[serde(default, rename = "class", skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
    /// The ingestion pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<PipelineWorld>,
    /// Managers and executors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executors: Option<ExecutorsWorld>,
    /// The faults.
    #[serde(default, rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// The expectations.
    #[serde(default, rename = "expect", skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expectation>,
}

/// The short form of a scenario: its phases, faults and waves shrink alike, with all of it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Short {
    /// The duration in seconds.
    pub duration_s: f64,
    /// The begin of each phase that is not judged, in seconds.
    #[serde(default)]
    pub settle_s: f64,
    /// Requests take so many times as long, so that so many times fewer are the same load: what is asked of the
    /// machine of a test must be something that it can do beside others. Deadlines, the first waits of retries and
    /// the gateway's `wait_max_ms` are as many times as long. The control plane is asked as often as ever.
    #[serde(default = "as_fast")]
    pub slower: f64,
}

/// The target of a scenario's load.
#[derive(Clone, Copy, Debug)]
pub enum World<'a> {
    /// Requests through a gateway to upstreams.
    Gateway(&'a Upstreams),
    /// Records into the ingestion pipeline.
    Pipeline(&'a PipelineWorld),
    /// Tasks on executors.
    Executors(&'a ExecutorsWorld),
}

// === impl Scenario ===

impl Scenario {
    /// Returns the target of its load. A scenario that was [read](Self::read) has exactly one.
    #[must_use]
    pub fn world(&self) -> Option<World<'_>> {
        if let Some(upstreams) = &self.upstreams {
            return Some(World::Gateway(upstreams));
        }
        if let Some(pipeline) = &self.pipeline {
            return Some(World::Pipeline(pipeline));
        }
        self.executors.as_ref().map(World::Executors)
    }

    /// The gateway's settings, or the defaults.
    #[must_use]
    pub fn gateway(&self) -> GatewayWorld {
        self.gateway.clone().unwrap_or_default()
    }

    /// Its phases, from when until when. There is at least one, and the last ends with the scenario.
    #[must_use]
    pub fn phase_spans(&self) -> Vec<PhaseSpan> {
        PhaseSpan::of(&self.phases, self.duration_s)
    }

    /// Returns the judged time of a phase, or of all phases, in seconds.
    #[must_use]
    pub fn judged_s(&self, phase: Option<&str>) -> f64 {
        let is_it = |span: &PhaseSpan| phase.is_none_or(|name| span.name == name);
        let judged_s = |span: PhaseSpan| (span.until_s - span.from_s - self.settle_s).max(0.0);
        self.phase_spans().into_iter().filter(is_it).map(judged_s).sum()
    }

    /// Requests a second that the upstreams can do, for the mix of its classes at a load of 1, or records a second
    /// that the store does; `None` where there is neither.
    #[must_use]
    pub fn capacity_per_s(&self) -> Option<f64> {
        if let Some(pipeline) = &self.pipeline {
            return Some(pipeline.store_per_s);
        }
        let upstreams = self.upstreams.as_ref()?;
        Some(upstreams.capacity_per_s(&self.classes))
    }

    /// When the last fault is over, in seconds; 0 without faults.
    #[must_use]
    pub fn faults_over_s(&self) -> f64 {
        self.faults.iter().map(|fault| fault.until_s).fold(0.0, f64::max)
    }
}

fn default_seed() -> u64 {
    1
}

fn as_fast() -> f64 {
    1.0
}
