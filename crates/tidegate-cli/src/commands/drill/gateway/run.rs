use crate::commands::drill::options::Options;
use crate::failure::Failure;
use tidegate_sim::report::Report;
use tidegate_sim::scenario::Scenario;

/// Drills a gateway, or whatever else answers at the target.
pub fn run(scenario: &Scenario, _seed: u64, _options: &Options) -> Result<Report, Failure> {
    Err(Failure::Runtime(format!("{} waits for the generator", scenario.name)))
}
