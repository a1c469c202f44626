//! A flag that changes nothing would be taken for one that did: it is refused with what it is for.

use crate::failure::Failure;
use crate::sim_flags::{Comparison, SimFlags};

/// Refuses flags that would not be heeded.
pub fn check(flags: &SimFlags) -> Result<(), Failure> {
    let places = matches!(flags.compare, Some(Comparison::Placements(_)));
    if let Some(flag) = of_placements(flags).filter(|_| !places || flags.scenario.is_some()) {
        return wrong(&format!(
            "{flag} is for --compare placement=… without a scenario; a scenario says it in its own [executors]"
        ));
    }
    if let Some(flag) = of_scenarios(flags)
        && let Some(why) = why_no_scenario(flags)
    {
        return wrong(&format!("{flag} is for a scenario, and {why}"));
    }
    Ok(())
}

fn wrong(message: &str) -> Result<(), Failure> {
    Err(Failure::Usage(message.to_owned()))
}

/// The first flag that only comparisons of placements heed.
fn of_placements(flags: &SimFlags) -> Option<&'static str> {
    first(&[
        ("--executors", !flags.executors.is_empty()),
        ("--load", flags.load.is_some()),
        ("--tasks", flags.tasks.is_some()),
    ])
}

/// The first flag that says which form of a scenario is run.
fn of_scenarios(flags: &SimFlags) -> Option<&'static str> {
    first(&[
        ("--short", flags.short),
        ("--until", flags.until.is_some()),
        ("--without-fault", !flags.without_fault.is_empty()),
        ("--without-class", !flags.without_class.is_empty()),
        ("--rate", flags.rate.is_some()),
        ("--workers", flags.workers.is_some()),
    ])
}

fn first(flags: &[(&'static str, bool)]) -> Option<&'static str> {
    flags.iter().find(|(_, typed)| *typed).map(|(name, _)| *name)
}

/// Why no scenario is run, if none is.
fn why_no_scenario(flags: &SimFlags) -> Option<&'static str> {
    match &flags.compare {
        Some(Comparison::Placements(_)) if flags.scenario.is_none() => {
            Some("--compare placement=… has tasks of its own: name a scenario of executors for it")
        }
        Some(Comparison::Laws(_)) if flags.scenario.is_none() => {
            Some("--compare law=… has loads of its own: name a scenario of a pipeline for it")
        }
        None if flags.replay.is_some() => Some("--replay has the load that was recorded"),
        _ => None,
    }
}
