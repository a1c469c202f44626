use super::{
    Class, ExecutorsWorld, Expectation, Fault, GatewayWorld, Phase, PhaseSpan, PipelineWorld,
    Spacing, Wave, Workers,
};
use serde::{Deserialize, Serialize};

/// A scenario, as its file has it. Unknown keys are refused.
///
/// Exactly one of `[workers]` (a gateway in front of workers, with `[gateway]` where it is not as by default),
/// `[pipeline]` and `[executors]` says what the load is for.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is called: its file's name without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// What it shows, in a line.
    pub about: String,
    /// Where all chance comes from.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// How long it runs, in seconds.
    pub duration_s: f64,
    /// How much of the beginning of each phase is not judged, in seconds.
    #[serde(default)]
    pub settle_s: f64,
    /// Its short form, which tests run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<Short>,
    /// How arrivals are spaced.
    #[serde(default)]
    pub arrivals: Spacing,
    /// Stretches of time with one load each; without any there is one, called `all`, with a load of 1.
    #[serde(default, rename = "phase", skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// How the load goes up and down within a phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<Wave>,
    /// The gateway, where it is not as by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayWorld>,
    /// The workers behind the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<Workers>,
    /// Who asks the gateway for what.
    #[serde(default, rename = "class", skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
    /// The ingestion pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<PipelineWorld>,
    /// Managers and executors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executors: Option<ExecutorsWorld>,
    /// What goes wrong, and when.
    #[serde(default, rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// What must come of it.
    #[serde(default, rename = "expect", skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expectation>,
}

/// The short form of a scenario: its phases, faults and waves shrink alike, with all of it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Short {
    /// How long it runs, in seconds.
    pub duration_s: f64,
    /// How much of each phase is not judged, in seconds.
    #[serde(default)]
    pub settle_s: f64,
    /// Requests take so many times as long, so that so many times fewer are the same load: what is asked of the
    /// machine of a test must be something that it can do beside others. Deadlines, the first waits of retries and
    /// the gateway's `wait_max_ms` are as many times as long. The control plane is asked as often as ever.
    #[serde(default = "as_fast")]
    pub slower: f64,
}

/// What a scenario's load is for.
#[derive(Clone, Copy, Debug)]
pub enum World<'a> {
    /// Requests through a gateway to workers.
    Gateway(&'a Workers),
    /// Records into the ingestion pipeline.
    Pipeline(&'a PipelineWorld),
    /// Tasks on executors.
    Executors(&'a ExecutorsWorld),
}

// === impl Scenario ===

impl Scenario {
    /// What its load is for. A scenario that was [read](Self::read) has exactly one.
    #[must_use]
    pub fn world(&self) -> Option<World<'_>> {
        if let Some(workers) = &self.workers {
            return Some(World::Gateway(workers));
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

    /// How much of a phase, or of all of them, is judged, in seconds.
    #[must_use]
    pub fn judged_s(&self, phase: Option<&str>) -> f64 {
        let is_it = |span: &PhaseSpan| phase.is_none_or(|name| span.name == name);
        let judged_s = |span: PhaseSpan| (span.until_s - span.from_s - self.settle_s).max(0.0);
        self.phase_spans().into_iter().filter(is_it).map(judged_s).sum()
    }

    /// Requests a second that the workers can do, for the mix of its classes at a load of 1, or records a second
    /// that the store does; `None` where there is neither.
    #[must_use]
    pub fn capacity_per_s(&self) -> Option<f64> {
        if let Some(pipeline) = &self.pipeline {
            return Some(pipeline.store_per_s);
        }
        let workers = self.workers.as_ref()?;
        Some(workers.capacity_per_s(&self.classes))
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
