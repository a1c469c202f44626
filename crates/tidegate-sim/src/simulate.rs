use crate::gateway::{self, Flaw};
use crate::report::Findings;
use crate::scenario::{Scenario, World};
use crate::violation::Violation;
use crate::{executors, pipeline};

/// Runs a scenario in virtual time over the decisions that ship, whatever its load is for.
///
/// A flaw can be planted in a gateway alone; elsewhere it changes nothing.
///
/// # Errors
///
/// The first thing that must never be, and was.
///
/// ```
/// use tidegate_sim::{catalog, simulate};
/// use tidegate_sim::scenario::What;
///
/// let scenario = catalog::find("load_sweep").expect("it ships")?.shortened();
/// let findings = simulate(&scenario, 1, None).expect("no invariant breaks");
/// let goodput = findings.value(What::GoodputOfCapacity, "all", Some("10x")).unwrap_or(0.0);
/// assert!(goodput > 0.9, "{goodput}");
/// # Ok::<(), tidegate_sim::scenario::ScenarioError>(())
/// ```
pub fn simulate(
    scenario: &Scenario,
    seed: u64,
    plant: Option<Flaw>,
) -> Result<Findings, Violation> {
    match scenario.world() {
        Some(World::Gateway(_)) => gateway::simulate(scenario, seed, plant),
        Some(World::Executors(_)) => executors::simulate(scenario, seed),
        Some(World::Pipeline(_)) => pipeline::simulate(scenario, seed),
        None => Ok(Findings::default()),
    }
}
