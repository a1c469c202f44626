//! Refuses flags that would have no effect, and names what they are for.

use super::flags::{Comparison, SimFlags};
use crate::failure::Failure;

/// Refuses flags that would have no effect.
pub fn check(flags: &SimFlags) -> Result<(), Failure> {
    let compares_placements = matches!(flags.compare, Some(Comparison::Placements(_)));
    if let Some(flag) =
        of_placements(flags).filter(|_| !compares_placements || flags.scenario.is_some())
    {
        return wrong(&format!(
            "{flag} is for --compare placement=… without a scenario; a scenario sets it in [executors]"
        ));
    }
    if matches!(flags.compare, Some(Comparison::Limits(_))) && flags.scenario.is_some() {
        return wrong("--compare limit=… runs scenarios of its own: name no scenario");
    }
    if let Some(flag) = of_scenarios(flags)
        && let Some(why) = why_no_scenario(flags)
    {
        return wrong(&format!("{flag} needs a scenario, and {why}"));
    }
    Ok(())
}

fn wrong(message: &str) -> Result<(), Failure> {
    Err(Failure::Usage(message.to_owned()))
}

/// First flag that only comparisons of placements use.
fn of_placements(flags: &SimFlags) -> Option<&'static str> {
    first(&[
        ("--executors", !flags.executors.is_empty()),
        ("--load", flags.load.is_some()),
        ("--tasks", flags.tasks.is_some()),
    ])
}

/// First flag that edits a scenario.
fn of_scenarios(flags: &SimFlags) -> Option<&'static str> {
    first(&[
        ("--short", flags.short),
        ("--until", flags.until.is_some()),
        ("--without-fault", !flags.without_fault.is_empty()),
        ("--without-class", !flags.without_class.is_empty()),
        ("--rate", flags.rate.is_some()),
        ("--upstreams", flags.upstreams.is_some()),
    ])
}

fn first(flags: &[(&'static str, bool)]) -> Option<&'static str> {
    flags.iter().find(|(_, typed)| *typed).map(|(name, _)| *name)
}

/// Reason why no scenario is run, if none is.
fn why_no_scenario(flags: &SimFlags) -> Option<&'static str> {
    match &flags.compare {
        Some(Comparison::Placements(_)) if flags.scenario.is_none() => {
            Some("--compare placement=… generates its own tasks: name an executors scenario")
        }
        Some(Comparison::Laws(_)) if flags.scenario.is_none() => {
            Some("--compare law=… generates its own load: name a pipeline scenario")
        }
        Some(Comparison::Limits(_)) => Some("--compare limit=… has scenarios of its own"),
        None if flags.replay.is_some() => Some("--replay has the recorded load"),
        _ => None,
    }
}
