use super::flags::SimFlags;
use crate::scenario_file;
use tidegate_sim::shrink::Edits;

/// Command line that repeats a simulation with this seed and these edits, without flags of output.
pub fn again(flags: &SimFlags, seed: u64, edits: &Edits) -> String {
    // All flags are named here so that a new one can't be forgotten.
    let SimFlags {
        scenario,
        list: _,
        seed: _,
        seeds: _,
        short,
        json: _,
        html: _,
        // Contained in the edits.
        until: _,
        without_fault: _,
        without_class: _,
        rate: _,
        upstreams: _,
        plant,
        // Not for a run of one scenario.
        compare: _,
        replay: _,
        set: _,
        executors: _,
        load: _,
        tasks: _,
    } = flags;
    let name = scenario_file::shell_word(scenario.as_deref().unwrap_or_default());
    let short = if *short { " --short" } else { "" };
    let plant = plant.map_or_else(String::new, |flaw| format!(" --plant {flaw}"));
    format!("tidegate sim {name} --seed {seed}{short}{edits}{plant}")
}
