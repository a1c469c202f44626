use super::flags::SimFlags;
use crate::failure::Failure;
use crate::scenario_file;
use tidegate_sim::scenario::{Mode, Scenario, ScenarioError, World};
use tidegate_sim::shrink::Edits;

/// Scenario of a run, after its flags.
#[derive(Debug)]
pub struct SelectedScenario {
    /// Scenario before the edits.
    pub original: Scenario,
    /// Edits of the flags.
    pub edits: Edits,
    /// Scenario after the edits.
    pub scenario: Scenario,
}

/// Reads the scenario with this name or path; shortens and edits it as the flags say.
pub fn read(name: &str, flags: &SimFlags) -> Result<SelectedScenario, Failure> {
    let found = scenario_file::read(name, Mode::Sim)?;
    let original = if flags.short { found.shortened() } else { found };
    let edits = edits(&original, flags)?;
    let scenario = edits.apply(&original);
    let errors = scenario.errors();
    if !errors.is_empty() {
        let error = ScenarioError::Invalid(errors);
        return Err(Failure::Usage(format!("{name} is not valid with these flags: {error}")));
    }
    Ok(SelectedScenario { original, edits, scenario })
}

fn edits(scenario: &Scenario, flags: &SimFlags) -> Result<Edits, Failure> {
    let wrong = |message: String| Err(Failure::Usage(message));
    let count = scenario.faults.len();
    if let Some(index) = flags.without_fault.iter().find(|index| **index >= count) {
        return wrong(format!(
            "there is no fault {index}: the scenario has {count}, counted from 0"
        ));
    }
    let known = |name: &String| scenario.classes.iter().any(|class| class.name == *name);
    if let Some(name) = flags.without_class.iter().find(|name| !known(name)) {
        return wrong(format!("there is no class {name:?}"));
    }
    let of_gateways = [
        ("--rate multiplies the rates of a gateway's classes", flags.rate.is_some()),
        ("--upstreams limits a gateway's upstreams", flags.upstreams.is_some()),
        ("--plant puts a defect into a gateway", flags.plant.is_some()),
    ];
    let is_gateway = matches!(scenario.world(), Some(World::Gateway(_)));
    if let Some((does, _)) = of_gateways.iter().find(|(_, typed)| *typed && !is_gateway) {
        return wrong(format!("{does}; {} has no gateway", scenario.name));
    }
    let mut without_faults = flags.without_fault.clone();
    without_faults.sort_unstable();
    without_faults.dedup();
    Ok(Edits {
        until_s: flags.until,
        without_faults,
        without_classes: flags.without_class.clone(),
        rate: flags.rate.unwrap_or(1.0),
        upstreams: flags.upstreams,
    })
}
