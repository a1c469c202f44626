use super::command;
use super::scenario::Chosen;
use crate::sim_flags::SimFlags;
use serde::Serialize;
use std::fmt;
use tidegate_sim::shrink::shrink;
use tidegate_sim::{Violation, simulate};

/// An invariant that broke, the shortest replay of it that was found, and the command that replays it.
#[derive(Debug, Serialize)]
pub struct Replayed {
    /// The scenario's name.
    scenario: String,
    seed: u64,
    violation: Violation,
    /// `None` where nothing could be left out.
    replay: Option<Shortest>,
    command: String,
}

/// What is left of a scenario that still breaks the same.
#[derive(Debug, Serialize)]
struct Shortest {
    /// How many runs were tried to find it.
    tries: u32,
    duration_s: f64,
    classes: usize,
    /// `None` where there are no workers.
    workers: Option<u16>,
    faults: usize,
    violation: Violation,
}

// === impl Replayed ===

impl Replayed {
    /// Looks for the shortest replay of what broke in this run.
    pub fn find(chosen: &Chosen, seed: u64, violation: Violation, flags: &SimFlags) -> Self {
        let run = |smaller: &_| simulate(smaller, seed, flags.plant).err();
        let found = shrink(&chosen.whole, &chosen.edits, &violation, run);
        let smaller = &found.scenario;
        let shortest = Shortest {
            tries: found.tries,
            duration_s: smaller.duration_s,
            classes: smaller.classes.len(),
            workers: smaller.workers.map(|workers| workers.count),
            faults: smaller.faults.len(),
            violation: found.violation,
        };
        Self {
            scenario: chosen.scenario.name.clone(),
            seed,
            violation,
            replay: (found.edits != chosen.edits).then_some(shortest),
            command: command::again(flags, seed, &found.edits),
        }
    }
}

impl fmt::Display for Replayed {
    /// What was found, the shortest replay of it, and in the last line the command.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "BROKEN with seed {}, {}", self.seed, self.violation)?;
        if let Some(shortest) = &self.replay {
            writeln!(f, "{shortest}\n  {}", shortest.violation)?;
        }
        writeln!(f, "replay it with:\n  {}", self.command)
    }
}

// === impl Shortest ===

impl fmt::Display for Shortest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shortest of {} replays: {} s", self.tries, self.duration_s)?;
        if let Some(workers) = self.workers {
            write!(f, ", {}", count(self.classes, "class", "classes"))?;
            write!(f, ", {}", count(usize::from(workers), "worker", "workers"))?;
        }
        write!(f, ", {}", count(self.faults, "fault", "faults"))
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
