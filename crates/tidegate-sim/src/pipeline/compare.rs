use super::{Fault, FaultKind, Load, PipelineReport, PipelineScenario, Spread, StageModel, run};
use std::time::Duration;
use tidegate_core::window::{Law, Stage, WindowConfigError};

/// A comparison of laws in the same scenarios. Displays as a table in Markdown.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// One for each scenario and law.
    pub rows: Vec<Row>,
}

/// The results of one scenario under one law.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The name of the scenario.
    pub scenario: &'static str,
    /// The law.
    pub law: Law,
    /// The time until windows stayed within 40 % of their final size; `None` if they did not.
    pub converged: Option<Duration>,
    /// The mean of the bottleneck's window in the last ten seconds.
    pub window: f64,
    /// The share of the backlogged time of a stage in which its occupancy was in the band.
    pub in_band: f64,
    /// The time from a blockage until all windows before it were at the minimum.
    pub least: Option<Duration>,
    /// The time from the end of the fault until the state was as before.
    pub recovered: Option<Duration>,
    /// Items that left, of those that would have with infinite windows.
    pub of_ideal: f64,
    /// The most bytes in all channels at once.
    pub bytes_max: u64,
    /// 99 % of items were at most this long in the pipeline.
    pub delay_p99: Duration,
}

/// A scenario of the comparison, and the parameters to read its results.
struct Named {
    name: &'static str,
    scenario: PipelineScenario,
    /// The time at which windows begin to converge.
    from: Duration,
}

/// The capacity of Store in all scenarios.
const CAPACITY_PER_S: f64 = 100_000.0;

/// Runs every scenario under each of these laws.
///
/// # Errors
///
/// None with the scenarios as they are: their configuration is valid.
pub fn compare(laws: &[Law], seed: u64) -> Result<Comparison, WindowConfigError> {
    let mut rows = Vec::new();
    for named in scenarios(seed) {
        for law in laws {
            let scenario = PipelineScenario { law: *law, ..named.scenario.clone() };
            let report = run(&scenario)?;
            rows.push(Row::new(named.name, named.from, &scenario, &report));
        }
    }
    Ok(Comparison { rows })
}

fn scenarios(seed: u64) -> Vec<Named> {
    let s = Duration::from_secs;
    let base = PipelineScenario { seed, ..PipelineScenario::overloaded(Law::Cubic, s(120)) };
    let (high_per_s, low_per_s) = (1.8 * CAPACITY_PER_S, 0.1 * CAPACITY_PER_S);
    let of_load = |name, load| {
        let from = if let Load::Step { at, .. } = load { at } else { Duration::ZERO };
        Named { name, scenario: PipelineScenario { load, ..base.clone() }, from }
    };
    let of_fault = |name, kind, from, until, duration| {
        let fault = Some(Fault { stage: Stage::Store, from: s(from), until: s(until), kind });
        let scenario = PipelineScenario { fault, duration: s(duration), ..base.clone() };
        Named { name, scenario, from: Duration::ZERO }
    };
    let (before_per_s, after_per_s) = (0.5 * CAPACITY_PER_S, 2.0 * CAPACITY_PER_S);
    vec![
        of_load("step to overload", Load::Step { before_per_s, after_per_s, at: s(10) }),
        of_load("square wave", Load::Square { high_per_s, low_per_s, period: s(10) }),
        of_load("sawtooth", Load::Sawtooth { peak_per_s: high_per_s, period: s(12) }),
        of_load("random bursts", Load::Bursts { high_per_s, low_per_s, mean: s(4) }),
        of_fault("blocked store", FaultKind::Blocked, 50, 70, 120),
        of_fault("slow drift, 2x", FaultKind::Drift(2.0), 40, 160, 180),
        of_fault("latency step, 5x", FaultKind::Slower(5.0), 50, 110, 180),
        Named { name: "store that commits", scenario: committing(&base), from: Duration::ZERO },
    ]
}

/// A Store that commits as much as it has, 20 ms each time, and is with 10,000 items at once as fast as the
/// others' is.
fn committing(base: &PipelineScenario) -> PipelineScenario {
    let mut scenario = base.clone();
    let store = &mut scenario.stages[Stage::Store.index()];
    *store = StageModel {
        items_per_s: 125_000.0,
        chunk_time: Duration::from_millis(20),
        chunk_items: 10_000,
        spread: Spread::Fixed,
        ..*store
    };
    scenario
}

// === impl Row ===

impl Row {
    fn new(
        name: &'static str,
        from: Duration,
        scenario: &PipelineScenario,
        report: &PipelineReport,
    ) -> Self {
        let fault = scenario.fault.as_ref();
        let is_drift = |fault: &&Fault| matches!(fault.kind, FaultKind::Drift(_));
        let until = fault.map_or(scenario.duration, |fault| fault.from);
        let bottleneck = scenario.bottleneck();
        let last = &report.ticks[report.ticks.len().saturating_sub(100)..];
        let windows: u64 = last.iter().map(|tick| tick.windows[bottleneck.index()]).sum();
        Self {
            scenario: name,
            law: scenario.law,
            converged: report.converged_after(bottleneck, scenario.load.period(), from, until),
            window: windows as f64 / last.len().max(1) as f64,
            in_band: report.in_band,
            least: fault
                .filter(|fault| fault.kind == FaultKind::Blocked)
                .and_then(|fault| report.least_after(fault, scenario.config.window_min)),
            recovered: fault
                .filter(|fault| !is_drift(fault))
                .and_then(|fault| report.recovered_after(fault)),
            of_ideal: report.delivered as f64 / report.ideal,
            bytes_max: report.bytes_max,
            delay_p99: Duration::from_millis(report.delay_p99_ms),
        }
    }
}
