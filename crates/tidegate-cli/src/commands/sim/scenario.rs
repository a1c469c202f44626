use crate::commands::scenario_file;
use crate::failure::Failure;
use crate::sim_flags::SimFlags;
use tidegate_sim::scenario::{Mode, Scenario, ScenarioError, World};
use tidegate_sim::shrink::Edits;

/// The scenario that is run.
#[derive(Debug)]
pub struct Chosen {
    /// In the form that was asked for, with all that is in it.
    pub whole: Scenario,
    /// What the flags leave out of it.
    pub edits: Edits,
    /// What is left, which is run.
    pub scenario: Scenario,
}

/// The scenario that ships under this name or lies in this file, shortened and edited as the flags say.
pub fn read(name: &str, flags: &SimFlags) -> Result<Chosen, Failure> {
    let found = scenario_file::read(name, Mode::Sim)?;
    let whole = if flags.short { found.shortened() } else { found };
    let edits = edits(&whole, flags)?;
    let scenario = edits.apply(&whole);
    let mistakes = scenario.mistakes();
    if !mistakes.is_empty() {
        let error = ScenarioError::Mistakes(mistakes);
        return Err(Failure::Usage(format!("nothing is left of {name}: {error}")));
    }
    Ok(Chosen { whole, edits, scenario })
}

fn edits(scenario: &Scenario, flags: &SimFlags) -> Result<Edits, Failure> {
    let wrong = |message: String| Err(Failure::Usage(message));
    let count = scenario.faults.len();
    if let Some(index) = flags.without_fault.iter().find(|index| **index >= count) {
        return wrong(format!(
            "there is no fault {index}: they are counted from 0, and are {count}"
        ));
    }
    let known = |name: &String| scenario.classes.iter().any(|class| class.name == *name);
    if let Some(name) = flags.without_class.iter().find(|name| !known(name)) {
        return wrong(format!("there is no class {name:?}"));
    }
    let of_gateways = [
        ("--rate multiplies the rates of classes", flags.rate.is_some()),
        ("--workers keeps some of a gateway's workers", flags.workers.is_some()),
        ("--plant puts a mistake into a gateway", flags.plant.is_some()),
    ];
    let is_gateway = matches!(scenario.world(), Some(World::Gateway(_)));
    if let Some((does, _)) = of_gateways.iter().find(|(_, typed)| *typed && !is_gateway) {
        return wrong(format!("{does}, and {} has none: leave it out", scenario.name));
    }
    let mut without_faults = flags.without_fault.clone();
    without_faults.sort_unstable();
    without_faults.dedup();
    Ok(Edits {
        until_s: flags.until,
        without_faults,
        without_classes: flags.without_class.clone(),
        rate: flags.rate.unwrap_or(1.0),
        workers: flags.workers,
    })
}
