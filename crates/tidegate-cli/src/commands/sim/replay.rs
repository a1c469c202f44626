use crate::sim_flags::SimFlags;
use std::fmt::Write as _;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::shrink::{Edits, Replay, shrink};
use tidegate_sim::{Violation, simulate};

/// What was found, the shortest replay of it, and the command that replays it.
pub fn explain(scenario: &Scenario, seed: u64, violation: &Violation, flags: &SimFlags) -> String {
    let replay = shrink(scenario, violation, |smaller| simulate(smaller, seed, flags.plant).err());
    let mut text = String::new();
    let _ = writeln!(text, "BROKEN with seed {seed}, {violation}");
    let Replay { edits, scenario: smaller, violation, tries } = &replay;
    if !edits.is_none() {
        let _ = writeln!(
            text,
            "shortest of {tries} replays: {} s, {}{}",
            smaller.duration_s,
            count(smaller.classes.len(), "class", "classes"),
            smaller.workers.map_or_else(String::new, |workers| format!(
                ", {}, {}",
                count(usize::from(workers.count), "worker", "workers"),
                count(smaller.faults.len(), "fault", "faults")
            ))
        );
        let _ = writeln!(text, "  {violation}");
    }
    let _ = writeln!(text, "replay it with:\n  {}", command(seed, edits, flags));
    text
}

/// The command that replays what is left of a scenario.
fn command(seed: u64, edits: &Edits, flags: &SimFlags) -> String {
    let name = flags.scenario.as_deref().unwrap_or_default();
    let short = if flags.short { " --short" } else { "" };
    let plant = flags.plant.map_or_else(String::new, |flaw| format!(" --plant {flaw}"));
    format!("tidegate sim {name} --seed {seed}{short}{}{plant}", with_flags(edits, flags))
}

/// The scenario was edited by flags before it was shrunk: one set of flags says both.
fn with_flags(edits: &Edits, flags: &SimFlags) -> Edits {
    let both = |given: Option<f64>, found: Option<f64>| match (given, found) {
        (Some(given), Some(found)) => Some(given.min(found)),
        (given, found) => given.or(found),
    };
    let mut left: Vec<usize> = Vec::new();
    // What was shrunk counts faults without those that the flags left out.
    for index in &edits.without_faults {
        let mut number = *index;
        let mut given = flags.without_fault.clone();
        given.sort_unstable();
        given.iter().filter(|out| **out <= *index).for_each(|_| number += 1);
        left.push(number);
    }
    Edits {
        until_s: both(flags.until, edits.until_s),
        without_faults: [&flags.without_fault[..], &left].concat(),
        without_classes: [&flags.without_class[..], &edits.without_classes].concat(),
        rate: flags.rate * edits.rate,
        workers: edits.workers.or(flags.workers),
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
