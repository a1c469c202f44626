use super::options::Options;
use crate::failure::Failure;
use tidegate_sim::report::Report;
use tidegate_sim::scenario::Scenario;

/// Drills the ingestion pipeline.
pub fn run(scenario: &Scenario, _seed: u64, _options: &Options) -> Result<Report, Failure> {
    Err(Failure::Usage(format!(
        "{} is a scenario of the pipeline, which can't be drilled yet: tidegate sim {}",
        scenario.name, scenario.name
    )))
}
