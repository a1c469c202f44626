use super::flags::{Comparison, SimFlags};
use super::scenario;
use crate::failure::Failure;
use tidegate_sim::gateway::{self, Variant};
use tidegate_sim::scenario::{Scenario, World};
use tidegate_sim::{executors, limit, pipeline};

/// Default scenario of picks: one upstream of eight is slow.
const FOR_PICKS: &str = "slow_upstream";
/// Default scenario of sharing: priorities have limits, and one of them wants more.
const FOR_SHARING: &str = "shared_limits";

/// Defaults of a comparison of placements without a scenario.
const EXECUTORS: u32 = 3;
const LOAD: f64 = 0.8;
const TASKS: u64 = 20_000;

/// Seeds of a comparison of limits: each scenario runs with so many, from the first on.
const LIMIT_SEEDS: u64 = 3;

/// Compares the settings; returns a Markdown table.
pub fn table(comparison: &Comparison, flags: &SimFlags) -> Result<String, Failure> {
    let name = flags.scenario.as_deref();
    match comparison {
        Comparison::Laws(laws) => match name {
            Some(name) => {
                let (scenario, seed) = scenario_for(comparison, name, flags)?;
                text(pipeline::compare_in(&scenario, laws, seed))
            }
            None => pipeline::compare(laws, flags.seed.unwrap_or(1))
                .map(|comparison| comparison.to_string())
                .map_err(|error| Failure::Runtime(format!("a scenario is not valid: {error}"))),
        },
        Comparison::Limits(laws) => {
            Ok(limit::compare(laws, flags.seed.unwrap_or(1), LIMIT_SEEDS).to_string())
        }
        Comparison::Placements(policies) => match name {
            Some(name) => {
                let (scenario, seed) = scenario_for(comparison, name, flags)?;
                text(executors::compare_in(&scenario, policies, seed))
            }
            None => {
                let executors = match flags.executors[..] {
                    [] => &[EXECUTORS],
                    ref given => given,
                };
                let (load, tasks) = (flags.load.unwrap_or(LOAD), flags.tasks.unwrap_or(TASKS));
                let seed = flags.seed.unwrap_or(1);
                Ok(executors::compare(policies, executors, load, tasks, seed).to_string())
            }
        },
        Comparison::Picks(picks) => {
            let variants: Vec<_> = picks.iter().map(|pick| Variant::Pick(pick.0)).collect();
            let (scenario, seed) = scenario_for(comparison, name.unwrap_or(FOR_PICKS), flags)?;
            text(gateway::compare(&variants, &scenario, seed))
        }
        Comparison::Sharings(sharings) => {
            let variants: Vec<_> = sharings.iter().map(|it| Variant::Sharing(it.0)).collect();
            let (scenario, seed) = scenario_for(comparison, name.unwrap_or(FOR_SHARING), flags)?;
            text(gateway::compare(&variants, &scenario, seed))
        }
    }
}

/// Reads the scenario and checks that it has the world of the comparison; returns it with its seed.
fn scenario_for(
    comparison: &Comparison,
    name: &str,
    flags: &SimFlags,
) -> Result<(Scenario, u64), Failure> {
    let scenario = scenario::read(name, flags)?.scenario;
    let missing = match (comparison, scenario.world()) {
        (Comparison::Laws(_), Some(World::Pipeline(_)))
        | (Comparison::Placements(_), Some(World::Executors(_)))
        | (Comparison::Picks(_) | Comparison::Sharings(_), Some(World::Gateway(_))) => {
            let seed = flags.seed.unwrap_or(scenario.seed);
            return Ok((scenario, seed));
        }
        (Comparison::Laws(_), _) => "no pipeline: laws size the windows of one",
        (Comparison::Limits(_), _) => "no limit to compare: limit=… has scenarios of its own",
        (Comparison::Placements(_), _) => "no executors: placements are for executors",
        (Comparison::Picks(_) | Comparison::Sharings(_), _) => {
            "no gateway: pick and sharing are settings of one"
        }
    };
    Err(Failure::Usage(format!("{name} has {missing}")))
}

fn text(comparison: Result<impl ToString, tidegate_sim::Violation>) -> Result<String, Failure> {
    comparison.map(|comparison| comparison.to_string()).map_err(Failure::runtime)
}
