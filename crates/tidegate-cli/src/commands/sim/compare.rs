use super::scenario;
use crate::failure::Failure;
use crate::sim_flags::{Comparison, SimFlags};
use tidegate::window::Law;
use tidegate_sim::executors::Policy;
use tidegate_sim::gateway::{self, Variant};
use tidegate_sim::scenario::World;
use tidegate_sim::{executors, pipeline};

/// Where picks differ most: one worker of eight is not like the others.
const FOR_PICKS: &str = "slow_destination";
/// Where sharing matters: priorities have limits of their own, and one of them wants more.
const FOR_SHARING: &str = "shared_limits";

/// What placements are compared with, where nothing else is typed.
const EXECUTORS: u32 = 3;
const LOAD: f64 = 0.8;
const TASKS: u64 = 20_000;

/// The settings side by side, as a table in Markdown.
pub fn table(comparison: &Comparison, flags: &SimFlags) -> Result<String, Failure> {
    let seed = flags.seed.unwrap_or(1);
    Ok(match comparison {
        Comparison::Laws(laws) => match &flags.scenario {
            Some(name) => of_pipeline(laws, name, flags)?,
            None => pipeline::compare(laws, seed)
                .map_err(|error| Failure::Runtime(format!("a scenario is not valid: {error}")))?
                .to_string(),
        },
        Comparison::Placements(policies) => match &flags.scenario {
            Some(name) => of_executors(policies, name, flags)?,
            None => {
                let executors = match flags.executors[..] {
                    [] => &[EXECUTORS],
                    ref given => given,
                };
                let (load, tasks) = (flags.load.unwrap_or(LOAD), flags.tasks.unwrap_or(TASKS));
                executors::compare(policies, executors, load, tasks, seed).to_string()
            }
        },
        Comparison::Picks(picks) => {
            let variants: Vec<_> = picks.iter().map(|pick| Variant::Pick(pick.0)).collect();
            of_gateways(&variants, FOR_PICKS, flags)?
        }
        Comparison::Sharings(sharings) => {
            let of = |sharing: &crate::sim_flags::SharingName| Variant::Sharing(sharing.0);
            let variants: Vec<_> = sharings.iter().map(of).collect();
            of_gateways(&variants, FOR_SHARING, flags)?
        }
    })
}

fn of_pipeline(laws: &[Law], name: &str, flags: &SimFlags) -> Result<String, Failure> {
    let scenario = scenario::read(name, flags)?.scenario;
    if !matches!(scenario.world(), Some(World::Pipeline(_))) {
        return Err(Failure::Usage(format!("{name} has no pipeline: laws size its windows")));
    }
    let seed = flags.seed.unwrap_or(scenario.seed);
    pipeline::compare_in(&scenario, laws, seed)
        .map(|comparison| comparison.to_string())
        .map_err(|violation| Failure::Runtime(violation.to_string()))
}

fn of_executors(policies: &[Policy], name: &str, flags: &SimFlags) -> Result<String, Failure> {
    let scenario = scenario::read(name, flags)?.scenario;
    if !matches!(scenario.world(), Some(World::Executors(_))) {
        return Err(Failure::Usage(format!("{name} has no executors: placements are for them")));
    }
    let seed = flags.seed.unwrap_or(scenario.seed);
    executors::compare_in(&scenario, policies, seed)
        .map(|comparison| comparison.to_string())
        .map_err(|violation| Failure::Runtime(violation.to_string()))
}

fn of_gateways(variants: &[Variant], usual: &str, flags: &SimFlags) -> Result<String, Failure> {
    let name = flags.scenario.as_deref().unwrap_or(usual);
    let scenario = scenario::read(name, flags)?.scenario;
    if !matches!(scenario.world(), Some(World::Gateway(_))) {
        return Err(Failure::Usage(format!(
            "{name} has no gateway: picks and sharing are its own"
        )));
    }
    let seed = flags.seed.unwrap_or(scenario.seed);
    gateway::compare(variants, &scenario, seed)
        .map(|comparison| comparison.to_string())
        .map_err(|violation| Failure::Runtime(violation.to_string()))
}
