use crate::failure::Failure;
use crate::sim_flags::SimFlags;
use tidegate_sim::catalog;
use tidegate_sim::scenario::{Scenario, ScenarioError, World};
use tidegate_sim::shrink::Edits;

/// The scenario that ships under this name or lies in this file, shortened and edited as the flags say.
pub fn read(name: &str, flags: &SimFlags) -> Result<Scenario, Failure> {
    let whole = find(name)?;
    let scenario = if flags.short { whole.shortened() } else { whole };
    let edits = edits(&scenario, flags)?;
    let scenario = edits.apply(&scenario);
    let mistakes = scenario.mistakes();
    if !mistakes.is_empty() {
        let error = ScenarioError::Mistakes(mistakes);
        return Err(Failure::Usage(format!("nothing is left of {name}: {error}")));
    }
    let is_gateway = matches!(scenario.world(), Some(World::Gateway(_)));
    if flags.plant.is_some() && !is_gateway {
        let message = "flaws can be planted in gateways: this scenario has none";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(scenario)
}

/// The scenario of this name or path, as it is.
pub fn find(name: &str) -> Result<Scenario, Failure> {
    let invalid = |error: ScenarioError| Failure::Usage(format!("{name}: {error}"));
    if let Some(shipped) = catalog::find(name) {
        return shipped.map_err(invalid);
    }
    let text = std::fs::read_to_string(name).map_err(|error| {
        let names: Vec<_> = catalog::shipped().map(|(name, _)| name).collect();
        Failure::Usage(format!(
            "{name:?} is no scenario that ships, and no file to read ({error}); there are {}",
            names.join(", ")
        ))
    })?;
    let stem = std::path::Path::new(name).file_stem().and_then(|stem| stem.to_str());
    Scenario::read(stem.unwrap_or(name), &text).map_err(invalid)
}

fn edits(scenario: &Scenario, flags: &SimFlags) -> Result<Edits, Failure> {
    let count = scenario.faults.len();
    if let Some(index) = flags.without_fault.iter().find(|index| **index >= count) {
        let message =
            format!("there is no fault {index}: they are counted from 0, and are {count}");
        return Err(Failure::Usage(message));
    }
    let known = |name: &String| scenario.classes.iter().any(|class| class.name == *name);
    if let Some(name) = flags.without_class.iter().find(|name| !known(name)) {
        return Err(Failure::Usage(format!("there is no class {name:?}")));
    }
    Ok(Edits {
        until_s: flags.until,
        without_faults: flags.without_fault.clone(),
        without_classes: flags.without_class.clone(),
        rate: flags.rate,
        workers: flags.workers,
    })
}
