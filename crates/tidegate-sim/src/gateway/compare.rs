use super::simulate;
use crate::markdown;
use crate::report::Findings;
use crate::scenario::{GatewayWorld, Scenario, What};
use crate::violation::Violation;
use std::fmt;
use tidegate_core::admission::{MessagePriority, Sharing};
use tidegate_core::routing::Pick;

/// The setting of a gateway that a comparison varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The choice among upstreams.
    Pick(Pick),
    /// The use of limits beyond a priority's own.
    Sharing(Sharing),
}

/// A comparison of settings under the same load. Displays as a table in Markdown.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayComparison {
    /// One for each phase and setting.
    pub rows: Vec<GatewayRow>,
}

/// The results of one phase with one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayRow {
    /// The phase.
    pub phase: String,
    /// With what.
    pub variant: Variant,
    /// Good answers a second, of what the upstreams can do.
    pub goodput: Option<f64>,
    /// The share of what was offered that was refused, by priority.
    pub refused: [Option<f64>; 3],
    /// The median latency by priority, in milliseconds.
    pub p50_ms: [Option<f64>; 3],
    /// The 99th percentile.
    pub p99_ms: [Option<f64>; 3],
    /// The share of refusals that came beside an admitted lower priority.
    pub inversions: Option<f64>,
}

const HEAD: [&str; 7] =
    ["phase", "with", "goodput %", "refused % H/N/L", "p50 ms H/N/L", "p99 ms H/N/L", "inversions"];

/// The number of leading columns that are left-aligned; numbers are right-aligned.
const NAMES: usize = 2;

const PRIORITIES: [MessagePriority; 3] =
    [MessagePriority::High, MessagePriority::Normal, MessagePriority::Low];

/// Runs the same scenario of a gateway with each of these.
///
/// # Errors
///
/// The first thing that must never be, and was.
pub fn compare(
    variants: &[Variant],
    scenario: &Scenario,
    seed: u64,
) -> Result<GatewayComparison, Violation> {
    let mut of_variants = Vec::new();
    for variant in variants {
        of_variants.push((*variant, simulate(&variant.applied_to(scenario), seed, None)?));
    }
    let rows = scenario.phase_spans().into_iter().flat_map(|span| {
        let row = |(variant, findings): &(Variant, Findings)| {
            GatewayRow::of(findings, &span.name, *variant)
        };
        of_variants.iter().map(row).collect::<Vec<_>>()
    });
    Ok(GatewayComparison { rows: rows.collect() })
}

// === impl Variant ===

impl Variant {
    fn applied_to(self, scenario: &Scenario) -> Scenario {
        let gateway = scenario.gateway();
        let gateway = match self {
            Self::Pick(pick) => GatewayWorld { pick: Some(pick), ..gateway },
            Self::Sharing(sharing) => GatewayWorld { sharing: Some(sharing), ..gateway },
        };
        Scenario { gateway: Some(gateway), ..scenario.clone() }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pick(Pick::PowerOfTwo) => "power_of_two",
            Self::Pick(Pick::RoundRobin) => "round_robin",
            Self::Pick(Pick::Random) => "random",
            Self::Pick(Pick::LeastLoaded) => "least_loaded",
            Self::Pick(Pick::Direct) => "direct",
            Self::Sharing(Sharing::Strict) => "strict",
            Self::Sharing(Sharing::Borrow) => "borrow",
        })
    }
}

// === impl GatewayRow ===

impl GatewayRow {
    fn of(findings: &Findings, phase: &str, variant: Variant) -> Self {
        let value = |what, of: &str| findings.value(what, of, Some(phase));
        let by_priority =
            |what| PRIORITIES.map(|priority| value(what, &format!("priority:{priority}")));
        Self {
            phase: phase.to_owned(),
            variant,
            goodput: value(What::GoodputOfCapacity, "all"),
            refused: by_priority(What::RefusedShare),
            p50_ms: by_priority(What::LatencyP50Ms),
            p99_ms: by_priority(What::LatencyP99Ms),
            inversions: value(What::Inversions, "all"),
        }
    }

    fn cells(&self) -> [String; HEAD.len()] {
        let one = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let percent = |value: Option<f64>| one(value.map(|value| value * 100.0), 1);
        let ms = |values: [Option<f64>; 3]| values.map(|value| one(value, 0)).join("/");
        [
            self.phase.clone(),
            self.variant.to_string(),
            percent(self.goodput),
            self.refused.map(percent).join("/"),
            ms(self.p50_ms),
            ms(self.p99_ms),
            one(self.inversions, 3),
        ]
    }
}

// === impl GatewayComparison ===

impl fmt::Display for GatewayComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: Vec<_> = self.rows.iter().map(GatewayRow::cells).collect();
        markdown::table(f, HEAD, NAMES, &cells)
    }
}
