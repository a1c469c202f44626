use crate::commands::scenario_file;
use crate::sim_flags::SimFlags;
use tidegate_sim::shrink::Edits;

/// The command that simulates the same again with this seed and these edits, as it is typed. Where its report goes
/// does not matter for that.
pub fn again(flags: &SimFlags, seed: u64, edits: &Edits) -> String {
    // Each flag is named here, so that a new one can't be forgotten.
    let SimFlags {
        scenario,
        list: _,
        seed: _,
        seeds: _,
        short,
        json: _,
        html: _,
        // The edits have these.
        until: _,
        without_fault: _,
        without_class: _,
        rate: _,
        workers: _,
        plant,
        // Not of one scenario's run.
        compare: _,
        replay: _,
        set: _,
        executors: _,
        load: _,
        tasks: _,
    } = flags;
    let name = scenario_file::typed(scenario.as_deref().unwrap_or_default());
    let short = if *short { " --short" } else { "" };
    let plant = plant.map_or_else(String::new, |flaw| format!(" --plant {flaw}"));
    format!("tidegate sim {name} --seed {seed}{short}{edits}{plant}")
}
